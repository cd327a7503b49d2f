package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// hooked is a store that lets a test change what single methods do. nil: nothing.
type hooked struct {
	blob.Blob
	get    func(blob.Object, error) (blob.Object, error)
	set    func(key string, set func() (blob.Info, error)) (blob.Info, error)
	delete func(key string) error
	list   func(blob.Info) (blob.Info, bool)
}

func (h hooked) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	obj, err := h.Blob.Get(ctx, key, opts)
	if h.get != nil {
		return h.get(obj, err)
	}
	return obj, err
}

func (h hooked) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	set := func() (blob.Info, error) { return h.Blob.Set(ctx, key, src, opts) }
	if h.set != nil {
		return h.set(key, set)
	}
	return set()
}

func (h hooked) Delete(ctx context.Context, key string, opts *blob.DeleteOptions) error {
	if h.delete != nil {
		if err := h.delete(key); err != nil {
			return err
		}
	}
	return h.Blob.Delete(ctx, key, opts)
}

func (h hooked) DeleteAll(ctx context.Context, keys []string) error {
	var failed []blob.KeyError
	for _, key := range keys {
		if err := h.Delete(ctx, key, nil); err != nil {
			failed = append(failed, blob.KeyError{Key: key, Err: err})
		}
	}
	if failed != nil {
		return &blob.DeleteError{Failed: failed}
	}
	return nil
}

func (h hooked) List(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
	if h.list == nil {
		return h.Blob.List(ctx, prefix, opts)
	}
	return func(yield func(blob.Info, error) bool) {
		for info, err := range h.Blob.List(ctx, prefix, opts) {
			if info, keep := h.list(info); keep && !yield(info, err) {
				return
			}
		}
	}
}

func keysOf(t *testing.T, store blob.Blob) []string {
	t.Helper()
	keys := []string{}
	for info, err := range store.List(context.WithoutCancel(t.Context()), "", nil) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func wantEmpty(t *testing.T, store blob.Blob) {
	t.Helper()
	if keys := keysOf(t, store); len(keys) > 0 {
		t.Errorf("left in the store: %q", keys)
	}
}

func parseReport(t *testing.T, o outcome) *Report {
	t.Helper()
	r := new(Report)
	d := json.NewDecoder(strings.NewReader(o.stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		t.Fatal(err)
	}
	return r
}

func permission(op, key string) error {
	return &blob.Error{Op: op, Key: key, Kind: blob.ErrPermission, Outcome: blob.NotApplied}
}

func TestBenchVerifiesEveryObjectAndLeavesNothing(t *testing.T) {
	for _, args := range [][]string{{}, {"--dst"}, {"--source=readerat"}, {"--dst", "--source=readerat", "--concurrency=1"}, {"--concurrency=100", "--seed=7"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			store := memblob.New(nil)
			mine := "wholeblob-bench/mine"
			if _, err := store.Set(t.Context(), mine, blob.Bytes([]byte("x")), nil); err != nil {
				t.Fatal(err)
			}
			o := runStore(t, t.Context(), store, append(args, "--json", "--sizes=0,1,4095,64KiB", "--count=10")...)
			o.want(t, exitOK)
			r := parseReport(t, o)
			if r.Store != "memory" || r.URL != "mem://" || r.Embedded || r.Fault != "" || r.Errors != 0 || r.Mismatch != nil || r.Failures != nil || r.Left != nil {
				t.Errorf("report %+v", r)
			}
			i := 0
			for _, size := range []int64{0, 1, 4095, 64 << 10} {
				for _, phase := range []string{phaseSet, phaseList, phaseGet, phaseDelete} {
					p := r.Phases[i]
					i++
					want := Phase{Phase: phase, Size: size, Ops: 10, Attempts: 10}
					switch phase {
					case phaseSet, phaseGet:
						want.Bytes = 10 * size
					case phaseList:
						want.Ops, want.Attempts, want.Keys = listings, listings, 10
					}
					got := Phase{Phase: p.Phase, Size: p.Size, Ops: p.Ops, Keys: p.Keys, Bytes: p.Bytes, Attempts: p.Attempts, Retries: p.Retries, Errors: p.Errors}
					if got != want {
						t.Errorf("got  %+v\nwant %+v", got, want)
					}
				}
			}
			if len(r.Phases) != i {
				t.Errorf("%d phases, want %d", len(r.Phases), i)
			}
			if keys := keysOf(t, store); !slices.Equal(keys, []string{mine}) {
				t.Errorf("left in the store: %q", keys)
			}
		})
	}
}

func TestWrongRepliesEndTheRunLoudly(t *testing.T) {
	var calls atomic.Int64
	third := func() bool { return calls.Add(1) == 3 }
	get := func(change func(*blob.Object)) hooked {
		return hooked{get: func(obj blob.Object, err error) (blob.Object, error) {
			if third() {
				change(&obj)
			}
			return obj, err
		}}
	}
	list := func(change func(*blob.Info) bool) hooked {
		return hooked{list: func(info blob.Info) (blob.Info, bool) {
			keep := true
			if third() {
				keep = change(&info)
			}
			return info, keep
		}}
	}
	for name, c := range map[string]struct {
		store  hooked
		phase  string
		offset int64
		want   []string
	}{
		"corrupt": {get(func(o *blob.Object) {
			o.Data = slices.Clone(o.Data)
			o.Data[1234] ^= 1
		}), phaseGet, 1234, []string{"at byte 1234: want ", ", got "}},
		"last byte": {get(func(o *blob.Object) {
			o.Data = slices.Clone(o.Data)
			o.Data[4094] ^= 1
		}), phaseGet, 4094, []string{"at byte 4094"}},
		"truncated":     {get(func(o *blob.Object) { o.Data = o.Data[:4094] }), phaseGet, 4094, []string{"want 4095 bytes, got 4094 bytes"}},
		"longer":        {get(func(o *blob.Object) { o.Data = append(slices.Clone(o.Data), 0) }), phaseGet, 4095, []string{"got 4096 bytes"}},
		"size":          {get(func(o *blob.Object) { o.Size = 17 }), phaseGet, -1, []string{"of 17 bytes"}},
		"offset":        {get(func(o *blob.Object) { o.Offset = 1 }), phaseGet, -1, nil},
		"other object":  {get(func(o *blob.Object) { o.Key = "other" }), phaseGet, -1, []string{`got "other"`}},
		"list lacks":    {list(func(*blob.Info) bool { return false }), phaseList, -1, []string{`want "4095/000002" of 4095 bytes, got "4095/000003"`}},
		"list size":     {list(func(i *blob.Info) bool { i.Size--; return true }), phaseList, -1, []string{"of 4094 bytes"}},
		"list has more": {list(func(i *blob.Info) bool { i.Key = i.Key[:len(i.Key)-1] + "1x"; return true }), phaseList, -1, []string{"no such key here"}},
		"set size": {hooked{set: func(_ string, set func() (blob.Info, error)) (blob.Info, error) {
			info, err := set()
			if third() {
				info.Size++
			}
			return info, err
		}}, phaseSet, -1, []string{"of 4096 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls.Store(0)
			mem := memblob.New(nil)
			c.store.Blob = mem
			o := runStore(t, t.Context(), c.store, "--json", "--sizes=4095", "--count=20", "--concurrency=1")
			o.want(t, exitFail, append(c.want, "MISMATCH: "+c.phase, "wholeblob-bench-")...)
			r := parseReport(t, o)
			if r.Mismatch == nil || r.Mismatch.Phase != c.phase || r.Mismatch.Offset != c.offset || !strings.HasPrefix(r.Mismatch.Key, r.Prefix) || r.Fault == "" {
				t.Errorf("mismatch %+v", r.Mismatch)
			}
			if last := r.Phases[len(r.Phases)-1]; last.Phase != c.phase || last.Ops > 3 {
				t.Errorf("the run went on: %+v", last)
			}
			wantEmpty(t, mem)
		})
	}
}

func TestAListingThatEndsEarlyIsAMismatch(t *testing.T) {
	mem := memblob.New(nil)
	o := runStore(t, t.Context(), hooked{Blob: mem, list: func(info blob.Info) (blob.Info, bool) {
		return info, !strings.HasSuffix(info.Key, "9")
	}}, "--sizes=1", "--count=10")
	o.want(t, exitFail, "MISMATCH: list", `000009"`, "the end of the listing")
}

func TestFailedOperationsAreCountedAndTheRunGoesOn(t *testing.T) {
	mem := memblob.New(nil)
	store := hooked{
		Blob: mem,
		set: func(key string, set func() (blob.Info, error)) (blob.Info, error) {
			if strings.HasSuffix(key, "3") { // takes effect all the same, so a listing has it
				_, err := set()
				return blob.Info{}, errors.Join(permission(blob.OpSet, key), err)
			}
			if strings.HasSuffix(key, "4") {
				return blob.Info{}, permission(blob.OpSet, key)
			}
			return set()
		},
		get: func(obj blob.Object, err error) (blob.Object, error) {
			if strings.HasSuffix(obj.Key, "5") {
				return blob.Object{}, permission(blob.OpGet, obj.Key)
			}
			return obj, err
		},
	}
	o := runStore(t, t.Context(), store, "--json", "--sizes=1KiB", "--count=10")
	o.want(t, exitFail, `000003": set`, `000004": set`, `000005": get`, "permission denied")
	r := parseReport(t, o)
	var got []string
	for _, p := range r.Phases {
		got = append(got, fmt.Sprintf("%s %d ok %d errors", p.Phase, p.Ops, p.Errors))
	}
	want := []string{"set 8 ok 2 errors", "list 3 ok 0 errors", "get 7 ok 1 errors", "delete 8 ok 0 errors"}
	if !slices.Equal(got, want) || r.Errors != 3 || len(r.Failures) != 3 || r.Fault != "" {
		t.Errorf("got %q, %d errors, %d failures, fault %q", got, r.Errors, len(r.Failures), r.Fault)
	}
	wantEmpty(t, mem)
}

func TestAPhaseIsGivenUpAfterSomeErrors(t *testing.T) {
	mem := memblob.New(nil)
	o := runStore(t, t.Context(), hooked{Blob: mem, get: func(obj blob.Object, _ error) (blob.Object, error) {
		return blob.Object{}, permission(blob.OpGet, obj.Key)
	}}, "--json", "--sizes=1KiB", "--count=100", "--concurrency=1")
	o.want(t, exitFail, "get given up after 10 errors")
	if r := parseReport(t, o); r.Errors != maxErrors || r.Fault == "" || r.Phases[len(r.Phases)-1].Phase != phaseGet {
		t.Errorf("%d errors, fault %q, %d phases", r.Errors, r.Fault, len(r.Phases))
	}
	wantEmpty(t, mem)
}

func TestRetriesAreCountedByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		fail := func(op, key string, kind error) error {
			return &blob.Error{Op: op, Key: key, Kind: kind, Outcome: blob.NotApplied}
		}
		o := runStore(t, t.Context(), hooked{
			Blob: memblob.New(nil),
			set: func(key string, set func() (blob.Info, error)) (blob.Info, error) {
				if n := calls.Add(1); n == 2 || n == 3 {
					return blob.Info{}, fail(blob.OpSet, key, blob.ErrThrottled)
				}
				return set()
			},
			get: func(obj blob.Object, err error) (blob.Object, error) {
				if calls.Add(1) == 10 {
					return blob.Object{}, fail(blob.OpGet, obj.Key, blob.ErrUnavailable)
				}
				return obj, err
			},
		}, "--json", "--sizes=1KiB", "--count=5", "--concurrency=1")
		o.want(t, exitOK)
		r := parseReport(t, o)
		set, get := r.Phases[0], r.Phases[2]
		if set.Attempts != 7 || set.Retries != (Retries{Throttled: 2}) || get.Attempts != 6 || get.Retries != (Retries{Unavailable: 1}) {
			t.Errorf("set %+v, get %+v", set, get)
		}
		if r.Retries != (Retries{Throttled: 2, Unavailable: 1}) || r.SleptSeconds == 0 {
			t.Errorf("in all %+v, slept %v", r.Retries, r.SleptSeconds)
		}
	})
}

func TestAnInterruptedRunDeletesItsObjects(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	mem := memblob.New(nil)
	o := runStore(t, ctx, hooked{Blob: mem, get: func(blob.Object, error) (blob.Object, error) {
		cancel(errors.New("Ctrl-C"))
		<-ctx.Done()
		return blob.Object{}, &blob.Error{Op: blob.OpGet, Err: ctx.Err()}
	}}, "--json", "--sizes=1KiB,4KiB", "--count=10")
	o.want(t, exitFail, "stopped: Ctrl-C", "cleaned up: deleted 10 objects under", "none left")
	if r := parseReport(t, o); r.Fault == "" || r.Errors != 0 || len(r.Phases) != 3 {
		t.Errorf("fault %q, %d errors, %d phases", r.Fault, r.Errors, len(r.Phases))
	}
	wantEmpty(t, mem)
}

func TestASetThatLandsDuringTheCleanupIsDeletedToo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	mem := memblob.New(nil)
	late := func() {}
	o := runStore(t, ctx, hooked{
		Blob: mem,
		set: func(key string, set func() (blob.Info, error)) (blob.Info, error) {
			info, err := set()
			if strings.HasSuffix(key, "5") {
				late = func() { // the same request, as the server sees it again
					if _, err := mem.Set(t.Context(), key+"-late", blob.Bytes(nil), nil); err != nil {
						t.Error(err)
					}
				}
				cancel()
				return blob.Info{}, &blob.Error{Op: blob.OpSet, Key: key, Err: context.Canceled}
			}
			return info, err
		},
		delete: func(string) error { late(); late = func() {}; return nil },
	}, "--sizes=1KiB", "--count=10", "--concurrency=1")
	o.want(t, exitFail, "deleted 7 objects", "none left")
	wantEmpty(t, mem)
}

func TestTheTimeoutEndsARunOnAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memblob.New(nil)
		o := runStore(t, t.Context(), hanging{mem}, "--sizes=1KiB", "--count=10", "--timeout=90s")
		o.want(t, exitFail, "stopped: --timeout of 1m30s", "deleted 10 objects")
		wantEmpty(t, mem)
	})
}

// hanging is a store whose reads last until their context ends.
type hanging struct{ blob.Blob }

func (h hanging) Get(ctx context.Context, key string, _ *blob.GetOptions) (blob.Object, error) {
	<-ctx.Done()
	return blob.Object{}, &blob.Error{Op: blob.OpGet, Key: key, Err: ctx.Err()}
}

func TestObjectsThatCannotBeDeletedAreReported(t *testing.T) {
	mem := memblob.New(nil)
	store := hooked{Blob: mem, delete: func(key string) error {
		if strings.HasSuffix(key, "7") {
			return permission(blob.OpDelete, key)
		}
		return nil
	}}
	o := runStore(t, t.Context(), store, "--json", "--sizes=1KiB", "--count=10")
	r := parseReport(t, o)
	key := r.Prefix + "1KiB/000007"
	o.want(t, exitFail, "clean-up failed", fmt.Sprintf("left behind: %q", key), "permission denied")
	if !slices.Equal(r.Left, []string{key}) || !slices.Equal(keysOf(t, mem), r.Left) {
		t.Errorf("reported %q, in the store %q", r.Left, keysOf(t, mem))
	}
}

// forgetful is a store whose single deletes, or all of them, do nothing.
type forgetful struct {
	blob.Blob
	all bool
}

func (forgetful) Delete(context.Context, string, *blob.DeleteOptions) error { return nil }

func (f forgetful) DeleteAll(ctx context.Context, keys []string) error {
	if f.all {
		return nil
	}
	return f.Blob.DeleteAll(ctx, keys)
}

func TestDeletesThatDoNothingAreAFault(t *testing.T) {
	mem := memblob.New(nil)
	o := runStore(t, t.Context(), forgetful{mem, false}, "--sizes=1KiB", "--count=10")
	o.want(t, exitFail, "still had 10 objects after it had deleted them")
	wantEmpty(t, mem)
	o = runStore(t, t.Context(), forgetful{mem, true}, "--sizes=1KiB", "--count=10")
	o.want(t, exitFail, "in each of 3 listings", "left behind", `000009"`)
}

func TestACleanupThatHangsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		o := runStore(t, ctx, stuck{hanging{memblob.New(nil)}, cancel}, "--sizes=1KiB", "--count=10")
		o.want(t, exitFail, "clean-up failed", "wholeblob-bench-", context.DeadlineExceeded.Error())
		if d := time.Since(start); d != cleanupLimit { // the bubble's clock: exact
			t.Errorf("ended after %v, want %v", d, cleanupLimit)
		}
	})
}

// stuck is a store that cancels the run at its first delete and deletes nothing.
type stuck struct {
	hanging
	cancel context.CancelFunc
}

func (s stuck) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	s.cancel()
	return s.hanging.Get(ctx, key, opts)
}

func (s stuck) DeleteAll(ctx context.Context, _ []string) error {
	<-ctx.Done()
	return &blob.Error{Op: blob.OpDeleteAll, Err: ctx.Err()}
}

func TestDefaultCountsStayWithinTheirBounds(t *testing.T) {
	c, _, err := parseFlags(nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, size := range append(c.sizes, 0, 1<<30) {
		got = append(got, c.countOf(size))
	}
	if want := []int{1000, 1000, 128, 16, 4, 1000, 4}; !slices.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}
