package kvlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/examples/kvlog"
	"github.com/wholeblob/wholeblob/memblob"
)

// Several writers take one store from each other, at any call of any operation. Calls fail before or after they took effect, and writes that were
// given up take effect whenever they like. Nothing that was acknowledged is lost, nothing that was refused is found, and no writer is fenced
// without another one.
func TestWritersThatOvertakeEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, store: memblob.New(nil), possible: []state{{}}}
		t.Repeat(map[string]func(*rapid.T){
			"writer": func(*rapid.T) { w.step() },
			"land":   func(*rapid.T) { w.land() },
			"":       func(*rapid.T) { w.check() },
		})
		for len(w.late) > 0 {
			w.land()
			w.check()
		}
		db := open(t, w.store)
		n, err := db.CollectGarbage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.check()
		if again, err := db.CollectGarbage(t.Context()); again != 0 || err != nil {
			t.Fatalf("%d collected, then %d, %v", n, again, err)
		}
	})
}

// state is everything that is committed. Every commit has a value of its own, so no two are equal.
type state map[string]string

func in(states []state, s state) bool {
	return slices.ContainsFunc(states, func(o state) bool { return maps.Equal(o, s) })
}

type world struct {
	t        *rapid.T
	store    blob.Blob
	writers  [3]*writer
	possible []state  // what may be stored now: more than one while a commit is in doubt
	observed []state  // by each Open, in order
	acks     int      // operations that proved who owns the store
	last     *writer  // who wrote the manifest last
	late     []func() // writes that were given up and have not happened yet
	values   int
	inside   int // operations of one writer inside those of another
}

// check opens a copy of the store, which takes it from nobody.
func (w *world) check() {
	if got := contents(w.t, open(w.t, clone(w.t, w.store))); !in(w.possible, got) {
		w.t.Fatalf("stored is %v, possible are %v", got, w.possible)
	}
}

func clone(t *rapid.T, from blob.Blob) blob.Blob {
	to := memblob.New(nil)
	for info, err := range from.List(t.Context(), "", nil) {
		if err != nil {
			t.Fatal(err)
		}
		obj, err := from.Get(t.Context(), info.Key, nil)
		if err == nil {
			_, err = to.Set(t.Context(), info.Key, blob.Bytes(obj.Data), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func contents(t *rapid.T, db *kvlog.DB) state {
	s := state{}
	for _, key := range db.Keys() {
		value, err := db.Get(t.Context(), key)
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		s[key] = string(value)
	}
	return s
}

func (w *world) land() {
	if len(w.late) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.late)-1).Draw(w.t, "late")
	f := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	f()
}

// step lets one writer that is not in the middle of something do one thing.
func (w *world) step() {
	slot := rapid.IntRange(0, len(w.writers)-1).Draw(w.t, "writer")
	me := w.writers[slot]
	switch {
	case me != nil && me.busy:
		return
	case me == nil || rapid.IntRange(0, 5).Draw(w.t, "crash") == 0:
		me = &writer{Blob: w.store, world: w}
		w.writers[slot] = me
		if !me.open() {
			w.writers[slot] = nil
		}
		return
	}
	me.busy = true
	defer func() { me.busy = false }()
	acks := w.acks
	switch rapid.IntRange(0, 4).Draw(w.t, "operation") {
	case 0:
		me.maintained(acks, me.db.Compact(w.t.Context()))
	case 1:
		_, err := me.db.CollectGarbage(w.t.Context())
		me.maintained(acks, err)
	default:
		me.commit(acks)
	}
}

// writer is one process, what it believes, and the store as it sees it.
type writer struct {
	blob.Blob
	*world
	busy  bool // inside an operation
	quiet bool // neither faults nor other writers
	db    *kvlog.DB
	base  state // what it has committed
	view  state // with what is pending
}

func (me *writer) open() bool {
	me.busy = true
	acks := me.acks
	db, err := kvlog.Open(me.t.Context(), me)
	if me.busy = false; err != nil {
		return false
	}
	me.db, me.quiet = db, true
	me.base = contents(me.t, db)
	me.quiet = false
	me.view = maps.Clone(me.base)
	me.observed = append(me.observed, me.base)
	me.proved(acks, me.base)
	return true
}

func (me *writer) commit(acks int) {
	me.values++
	key, value := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(me.t, "key"), fmt.Sprint(me.values)
	me.db.Put(key, []byte(value))
	me.view[key] = value
	if rapid.Bool().Draw(me.t, "delete") {
		me.db.Delete("d")
		delete(me.view, "d")
	} else {
		me.db.Put("d", []byte{})
		me.view["d"] = ""
	}
	next, seen := maps.Clone(me.view), len(me.observed)
	me.possible = append(me.possible, next) // from now on, until it is known better
	err := me.db.Commit(me.t.Context())
	found := in(me.observed[seen:], next) // by a writer that opened the store meanwhile
	switch {
	case err == nil:
		if me.proved(acks, next) && !found {
			me.t.Fatalf("%v was committed, but those who took over meanwhile found %v", next, me.observed[seen:])
		}
		me.base = next
	case errors.Is(err, kvlog.ErrInDoubt):
	default:
		if found {
			me.t.Fatalf("%v was found, but the commit failed with %v", next, err)
		}
		me.possible = slices.DeleteFunc(me.possible, func(s state) bool { return maps.Equal(s, next) })
		me.fenced(err)
	}
}

// proved notes that s was stored by this writer, or found to be. It is what is stored now unless another one has written meanwhile, and
// overtaken says whether another one has proved as much.
func (me *writer) proved(acks int, s state) (overtaken bool) {
	if overtaken = me.acks != acks; !overtaken && me.last == me {
		me.possible = []state{s}
	}
	me.acks++
	return overtaken
}

// maintained judges an operation that changes nothing that can be seen.
func (me *writer) maintained(acks int, err error) {
	switch {
	case err == nil && me.last != me && len(me.base) == 0: // Compact of nothing makes no request
	case err == nil:
		me.proved(acks, me.base)
	case !errors.Is(err, kvlog.ErrInDoubt):
		me.fenced(err)
	}
}

func (me *writer) fenced(err error) {
	if errors.Is(err, kvlog.ErrFenced) && me.last == me {
		me.t.Fatalf("%v, but there is none", err)
	}
}

// around is called for each call to the store: others may do something first, and then the call may go wrong.
func (me *writer) around() (do fate) {
	if me.quiet {
		return works
	}
	me.interrupted()
	return rapid.SampledFrom([]fate{works, works, works, works, works, works, works, works, fails, lost, late}).Draw(me.t, "fate")
}

func (me *writer) interrupted() {
	if !me.quiet && me.inside < 2 && rapid.IntRange(0, 5).Draw(me.t, "interrupted") == 0 {
		me.inside++
		me.step()
		me.inside--
	}
}

type fate int

const (
	works fate = iota
	fails      // before anything has happened
	lost       // the reply, after it has happened
	late       // the request: it happens later, or never
)

// error is what the writer is told.
func (f fate) error(op, key string) error {
	if f == fails {
		return &blob.Error{Op: op, Key: key, Kind: blob.ErrUnavailable, Outcome: blob.NotApplied}
	}
	return &blob.Error{Op: op, Key: key, Kind: blob.ErrUnavailable, Outcome: blob.Unknown}
}

func (me *writer) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	if f := me.around(); f != works {
		return blob.Object{}, fails.error(blob.OpGet, key)
	}
	defer me.interrupted()
	return me.Blob.Get(ctx, key, opts)
}

func (me *writer) GetRanges(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
	if f := me.around(); f != works {
		return nil, fails.error(blob.OpGetRanges, key)
	}
	return me.Blob.GetRanges(ctx, key, rs, opts)
}

func (me *writer) List(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
	if f := me.around(); f != works {
		return func(yield func(blob.Info, error) bool) { yield(blob.Info{}, fails.error(blob.OpList, prefix)) }
	}
	return func(yield func(blob.Info, error) bool) {
		defer me.interrupted()
		me.Blob.List(ctx, prefix, opts)(yield)
	}
}

func (me *writer) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	f := me.around()
	data, err := io.ReadAll(src.Reader())
	if err != nil {
		me.t.Fatal(err)
	}
	set := func() (blob.Info, error) {
		info, err := me.Blob.Set(context.WithoutCancel(ctx), key, blob.Bytes(data), opts)
		if err == nil && key == "manifest" {
			me.last = me
		}
		return info, err
	}
	defer me.interrupted()
	switch f {
	case works:
		return set()
	case lost:
		_, _ = set()
	case late:
		me.late = append(me.late, func() { _, _ = set() })
	case fails:
	}
	return blob.Info{}, f.error(blob.OpSet, key)
}

func (me *writer) DeleteAll(ctx context.Context, keys []string) error {
	f := me.around()
	remove := func() error { return me.Blob.DeleteAll(context.WithoutCancel(ctx), keys) }
	switch f {
	case works:
		return remove()
	case lost:
		_ = remove()
	case late:
		me.late = append(me.late, func() { _ = remove() })
	case fails:
	}
	return f.error(blob.OpDeleteAll, "")
}
