package faultsweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
)

// Beneath is a store without requests beneath decorators: its calls are made to fail.
type Beneath struct {
	// Part is a size in bytes at which the decorators change their ways.
	Part int
	// Open opens an empty store that keeps what is deleted.
	Open func(t *testing.T) blob.Blob
	// Over puts the decorators in front of it, which close it.
	Over func(ctx context.Context, st blob.Blob) (blob.Blob, error)
	// Retries says that Over tries a call again that failed once.
	Retries bool
	// Warm reads everything through Over before the operation begins. False: it knows nothing yet.
	Warm bool
	// Revalidates says that Over asks the store before each answer.
	Revalidates bool
}

// Calls fails call i of each operation that reaches the store, for i = 1, 2, 3 ... until the operation comes to its end before, in
// every way in which a Blob can fail: it is not done, it is done and the reply is lost, the answer to a read is not what was asked for, or it
// panics. Whatever happened, the outcome is true, and afterwards what the decorators say is what the store says.
func Calls(t *testing.T, b *Beneath) {
	for _, op := range b.ops() {
		t.Run(op.name, func(t *testing.T) {
			op.after = b.settled(t, op)
			faults := 0
			for _, w := range woes() {
				if w.lie != nil && op.writes || w.panics() && !op.writes { // the call of a read need not be in the caller's goroutine
					continue
				}
				for i := 1; b.fail(t, op, w, i); i++ {
					faults++
				}
				if faults == 0 {
					break // nothing reaches the store
				}
			}
			t.Log(faults, "calls failed")
		})
	}
}

// call is an operation on theKey, which holds the object old unless it says otherwise.
type call struct {
	name   string
	absent bool // nothing is there, but a deleted object
	writes bool
	once   bool // it is not tried again once its outcome is unknown
	many   bool // it is about other keys too, whose failures its error does not name
	run    func(ctx context.Context, st blob.Blob, old blob.Info) error
	after  string
}

// otherKey is there too.
const otherKey = "a"

func (b *Beneath) old() []byte { return content(3*b.Part + 100) }

func (b *Beneath) ops() []call {
	p := int64(b.Part)
	var ops []call
	for _, r := range []blob.Range{{}, blob.Span(5, 100), blob.Span(p/2, 2*p), blob.From(p), blob.Last(p + 5), blob.Span(5, 0)} {
		ops = append(ops, b.get(fmt.Sprint("get ", r), blob.GetOptions{Range: r}))
	}
	ops = append(ops,
		b.get("get of a known size", blob.GetOptions{Want: blob.Want{Size: 3*p + 100, HasSize: true}}),
		b.get("get into Dst", blob.GetOptions{Range: blob.Span(p/2, 2*p), Dst: make([]byte, 4*p)}),
	)
	rs := []blob.Range{blob.Span(0, 100), blob.Span(105, 100), blob.Span(p, 2*p), blob.Last(7), blob.Span(10, 0)}
	ops = append(ops, call{name: "getranges", run: func(ctx context.Context, st blob.Blob, _ blob.Info) error {
		objs, err := st.GetRanges(ctx, theKey, rs, nil)
		for i := range objs {
			err = errors.Join(err, b.right(rs[i], objs[i]))
		}
		return err
	}}, call{name: "stat", run: func(ctx context.Context, st blob.Blob, old blob.Info) error {
		info, err := st.Stat(ctx, theKey)
		if err == nil && (info.Size != old.Size || info.Version != old.Version) {
			err = errWrong
		}
		return err
	}})
	return slices.Concat(ops, b.sets(), b.removals())
}

func (b *Beneath) get(name string, o blob.GetOptions) call {
	return call{name: name, run: func(ctx context.Context, st blob.Blob, _ blob.Info) error {
		obj, err := st.Get(ctx, theKey, &o)
		if err != nil {
			return err
		}
		return b.right(o.Range, obj)
	}}
}

func (b *Beneath) right(r blob.Range, obj blob.Object) error {
	off, n, _ := r.Resolve(int64(len(b.old())))
	if obj.Key != theKey || obj.Offset != off || !bytes.Equal(obj.Data, b.old()[off:off+n]) {
		return errWrong
	}
	return nil
}

func (b *Beneath) sets() []call {
	var ops []call
	for _, size := range []int{0, 10, 2*b.Part + 1} {
		for name, c := range map[string]call{"": {}, "IfAbsent": {absent: true, once: true}, "IfVersion": {once: true}, "AtMostOnce": {once: true}, "as a Stream": {once: true}} {
			c.name, c.writes = fmt.Sprintf("set %d %s", size, name), true
			c.run = func(ctx context.Context, st blob.Blob, old blob.Info) error {
				o := &blob.SetOptions{Metadata: map[string]string{"of": "new"}, AtMostOnce: name == "AtMostOnce"}
				src := blob.Bytes(content(size))
				switch name {
				case "IfAbsent":
					o.If = blob.IfAbsent()
				case "IfVersion":
					o.If = blob.IfVersion(old.Version)
				case "as a Stream":
					src = blob.Stream(bytes.NewReader(content(size)), -1)
				}
				_, err := st.Set(ctx, theKey, src, o)
				return err
			}
			ops = append(ops, c)
		}
	}
	return ops
}

func (b *Beneath) removals() []call {
	return []call{
		{name: "delete", writes: true, run: func(ctx context.Context, st blob.Blob, _ blob.Info) error { return st.Delete(ctx, theKey, nil) }},
		{name: "delete IfVersion", writes: true, once: true, run: func(ctx context.Context, st blob.Blob, old blob.Info) error {
			return st.Delete(ctx, theKey, &blob.DeleteOptions{If: blob.IfVersion(old.Version)})
		}},
		{name: "deleteall", writes: true, many: true, run: func(ctx context.Context, st blob.Blob, _ blob.Info) error {
			err := st.DeleteAll(ctx, []string{otherKey, theKey, "z"})
			if de := (*blob.DeleteError)(nil); errors.As(err, &de) {
				for _, f := range de.Failed {
					if f.Key == theKey {
						return f.Err
					}
				}
				return nil
			}
			return err
		}},
		{name: "restore", writes: true, absent: true, run: func(ctx context.Context, st blob.Blob, _ blob.Info) error {
			_, err := st.Restore(ctx, theKey)
			return err
		}},
	}
}

// prepared opens a store on which op can be done, and returns what Stat says of the key.
func (b *Beneath) prepared(t *testing.T, op call) (blob.Blob, blob.Info) {
	t.Helper()
	st := b.Open(t)
	old, err := st.Set(t.Context(), theKey, blob.Bytes(b.old()), nil)
	for _, k := range []string{otherKey, "z"} {
		if err == nil {
			_, err = st.Set(t.Context(), k, blob.Bytes(content(b.Part)), nil)
		}
	}
	if err == nil && op.absent {
		err = st.Delete(t.Context(), theKey, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return st, old
}

// settled returns the state in which op leaves the store when nothing fails.
func (b *Beneath) settled(t *testing.T, op call) string {
	t.Helper()
	st, old := b.prepared(t, op)
	before := held(t, st)
	err := op.run(t.Context(), st, old)
	after := held(t, st)
	if closed := st.Close(t.Context()); err != nil || closed != nil || op.writes == (before == after) {
		t.Fatalf("without a fault: %v, %v, and the state changes from %s to %s", err, closed, before, after)
	}
	return after
}

// held describes what the store has under theKey.
func held(t *testing.T, st blob.Blob) string {
	t.Helper()
	obj, err := st.Get(t.Context(), theKey, nil)
	if errors.Is(err, blob.ErrNotFound) {
		return "absent"
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d bytes, sum %x, metadata %v", obj.Size, sum(obj.Data), slices.Sorted(maps.Keys(obj.Metadata)))
}

// fail does op with call i of the store in woe, and reports whether there was such a call.
func (b *Beneath) fail(t *testing.T, op call, w woe, i int) bool {
	t.Helper()
	store, old := b.prepared(t, op)
	wrecked := w.wreck(store, i)
	st, err := b.Over(t.Context(), wrecked)
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{theKey, otherKey, "z"}
	if b.Warm {
		warm(t, st, store, wrecked.looks, b.Revalidates, keys...)
	}
	before := held(t, store)
	wrecked.armed.Store(true)
	panicked, err := caught(func() error { return op.run(t.Context(), st, old) })
	wrecked.armed.Store(false)
	hit := wrecked.hit.Load()
	what := fmt.Sprintf("%s, call %d: %s", op.name, i, w.name)
	for _, bad := range []error{
		b.judge(op, w, hit, panicked, err, before, held(t, store)),
		asked(t.Context(), op, st, wrecked, err != nil || panicked),
		Agree(t.Context(), st, store, keys...),
	} {
		if bad != nil {
			t.Errorf("%s: %v\nerror of the operation: %v, panicked: %t", what, bad, err, panicked)
		}
	}
	if err := st.Close(t.Context()); err != nil {
		t.Errorf("%s: close: %v", what, err)
	}
	return hit
}

func caught(f func() error) (panicked bool, err error) {
	defer func() {
		if r := recover(); r == errWoe { //nolint:errorlint // a panic's value
			panicked = true
		} else if r != nil {
			panic(r)
		}
	}()
	return false, f()
}

// judge checks the result of an operation, and what it says of its effect.
func (b *Beneath) judge(op call, w woe, hit, panicked bool, err error, before, after string) error {
	switch {
	case errors.Is(err, errWrong):
		return err
	case panicked != (hit && w.panics()):
		return errors.New("a panic that went astray")
	case panicked && w.do == 0 && after != op.after, panicked && w.do != 0 && after != before:
		return fmt.Errorf("after a panic the store holds %s", after)
	case panicked:
		return nil
	case err == nil && hit && !b.Retries && w.do != 0 && op.writes && !op.many:
		return errors.New("no error, though a call failed that nobody repeated")
	case err == nil && after != op.after:
		return fmt.Errorf("no error, and the store holds %s", after)
	case err == nil:
		return nil
	case !hit, b.Retries && w.do != 0 && !(op.once && w.do == blobtest.FailAfter):
		return errors.New("an error that another attempt would have mended")
	case w.do != 0 && !errors.Is(err, blob.ErrUnavailable) && !errors.Is(err, blob.ErrThrottled):
		return errors.New("not the error that happened")
	case blob.OutcomeOf(err) == blob.NotApplied && after != before:
		return fmt.Errorf("not applied, and the store holds %s", after)
	case after != before && after != op.after:
		return fmt.Errorf("the store holds %s", after)
	}
	return nil
}

// asked checks that after a write that failed the first read asks the store.
func asked(ctx context.Context, op call, st blob.Blob, w *wreck, failed bool) error {
	if !failed || !op.writes {
		return nil
	}
	var err error
	looks := w.looks(func() { _, err = st.Stat(ctx, theKey) })
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	if looks == 0 {
		return errors.New("after a write that failed, a read did not ask the store")
	}
	return nil
}
