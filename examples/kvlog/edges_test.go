package kvlog_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/examples/kvlog"
	"github.com/wholeblob/wholeblob/memblob"
)

// between is a store that does something before the first Set of a key.
type between struct {
	blob.Blob
	key string
	do  func()
}

func (b *between) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	if key == b.key && b.do != nil {
		do := b.do
		b.do = nil
		do()
	}
	return b.Blob.Set(ctx, key, src, opts)
}

func TestOfTwoThatOpenAtOnceTheLaterOneCanCommit(t *testing.T) {
	store := memblob.New(nil)
	var first *kvlog.DB
	later := open(t, &between{Blob: store, key: "manifest", do: func() { first = open(t, store) }})
	later.Put("k", []byte("v"))
	if err := later.Commit(t.Context()); err != nil {
		t.Errorf("the later one: %v", err)
	}
	first.Put("k", []byte("w"))
	if err := first.Commit(t.Context()); !errors.Is(err, kvlog.ErrFenced) {
		t.Errorf("the first one: %v", err)
	}
	holds(t, open(t, store), map[string]string{"k": "v"})
}

// Without its manifest a store must not pass for a new one, whose garbage its segments would be.
func TestALostManifestIsNoNewStore(t *testing.T) {
	store := memblob.New(nil)
	db := open(t, store)
	db.Put("k", []byte("v"))
	if err := db.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), "manifest", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := kvlog.Open(t.Context(), store); !errors.Is(err, blob.ErrNotFound) || !strings.Contains(err.Error(), "segments/") {
		t.Errorf("opened with %v", err)
	}
	if _, err := db.CollectGarbage(t.Context()); err == nil {
		t.Error("garbage was collected without a manifest")
	}
}

// listed is a store in which something happens before a listing.
type listed struct {
	blob.Blob
	do func()
}

func (l *listed) List(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
	if l.do != nil {
		l.do()
	}
	return l.Blob.List(ctx, prefix, opts)
}

func TestANewStoreThatAnotherHasBegunMeanwhileIsTakenOver(t *testing.T) {
	store := memblob.New(nil)
	db := open(t, &listed{store, func() {
		other := open(t, store)
		other.Put("k", []byte("v"))
		if err := other.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}})
	holds(t, db, map[string]string{"k": "v"})
}

// A writer that is overtaken in the middle of a collection leaves the newer one's segments, and those it took over.
func TestACollectionThatIsOvertakenTakesNothingThatLives(t *testing.T) {
	store := &listed{Blob: memblob.New(nil)}
	old := open(t, store)
	for _, k := range []string{"a", "b"} {
		old.Put(k, []byte("1"))
		if err := old.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var now *kvlog.DB
	store.do = func() {
		now = open(t, store.Blob)
		now.Put("b", []byte("2"))
		if err := now.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n, err := old.CollectGarbage(t.Context()); n != 0 || err != nil {
		t.Errorf("%d collected, %v", n, err)
	}
	want := map[string]string{"a": "1", "b": "2"}
	holds(t, now, want)
	holds(t, open(t, store.Blob), want)
}

// giveUp is a store that loses every write of the manifest after the first, of which the last one happens when it is told to.
type giveUp struct {
	blob.Blob
	sets int
	land func() error
}

func (g *giveUp) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	if key != "manifest" {
		return g.Blob.Set(ctx, key, src, opts)
	}
	if g.sets++; g.sets == 1 {
		return g.Blob.Set(ctx, key, src, opts)
	}
	g.land = func() error {
		_, err := g.Blob.Set(context.WithoutCancel(ctx), key, src, opts)
		return err
	}
	return blob.Info{}, &blob.Error{Op: blob.OpSet, Key: key, Kind: blob.ErrUnavailable, Outcome: blob.Unknown}
}

// While a commit is in doubt its segment is no garbage: a manifest that names it can still come.
func TestAWriterInDoubtDoesNothingMore(t *testing.T) {
	store := &giveUp{Blob: memblob.New(nil)}
	db := open(t, store)
	db.Put("k", []byte("v"))
	if err := db.Commit(t.Context()); !errors.Is(err, kvlog.ErrInDoubt) || !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("commit: %v", err)
	}
	if n, err := db.CollectGarbage(t.Context()); n != 0 || !errors.Is(err, kvlog.ErrInDoubt) {
		t.Errorf("%d collected, %v", n, err)
	}
	for name, do := range map[string]func(context.Context) error{"commit": db.Commit, "compact": db.Compact} {
		if err := do(t.Context()); !errors.Is(err, kvlog.ErrInDoubt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := store.land(); err != nil {
		t.Fatal(err)
	}
	holds(t, open(t, store.Blob), map[string]string{"k": "v"})
}

func TestAnotherProgramsManifestIsLeftAlone(t *testing.T) {
	for _, text := range []string{`{}`, `null`, `{"epoch":1}`, `{"name":"app"}`, `[]`, ``, `{"epoch":1,"write":"x"`} {
		store := memblob.New(nil)
		before, err := store.Set(t.Context(), "manifest", blob.Bytes([]byte(text)), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = kvlog.Open(t.Context(), store)
		after, statErr := store.Stat(t.Context(), "manifest")
		if err == nil || statErr != nil || after.Version != before.Version {
			t.Errorf("%s: opened with %v, replaced %t, %v", text, err, after.Version != before.Version, statErr)
		}
	}
}

// What is acknowledged can be read back, however much it is: no segment is larger than what one Get returns.
func TestMuchCanBeReadBack(t *testing.T) {
	store := memblob.New(&memblob.Options{MaxGet: 10 << 20})
	db := open(t, store)
	want := map[string]string{"small": "1"}
	for _, k := range []string{"a", "b", "c"} {
		want[k] = strings.Repeat(k, 5<<20)
	}
	for k, v := range want {
		db.Put(k, []byte(v))
	}
	if err := db.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds(t, db, want)
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.CollectGarbage(t.Context()); err != nil {
		t.Fatal(err)
	}
	db = open(t, store)
	holds(t, db, want)

	db.Put("d", make([]byte, 8<<20))
	if err := db.Commit(t.Context()); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("commit of a value that is too large: %v", err)
	}
	db.Delete("d")
	if err := db.Commit(t.Context()); err != nil {
		t.Errorf("and without it: %v", err)
	}
}

// What Get returns belongs to the caller.
func TestAValueIsACopy(t *testing.T) {
	store := memblob.New(nil)
	db := open(t, store)
	value := []byte("value")
	db.Put("k", value)
	value[0] = 'x'
	for range 2 {
		got, err := db.Get(t.Context(), "k")
		if err != nil || !bytes.Equal(got, []byte("value")) {
			t.Fatalf("%q, %v", got, err)
		}
		got[0] = 'x'
		if err := db.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	holds(t, db, map[string]string{"k": "value"})
}

// given is a store that notes where each Get is to read into.
type given struct {
	blob.Blob
	without []string
}

func (g *given) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	obj, err := g.Blob.Get(ctx, key, opts)
	if n := len(obj.Data); key != "manifest" && n > 0 && (len(opts.Dst) < n || &obj.Data[0] != &opts.Dst[0]) {
		g.without = append(g.without, key)
	}
	return obj, err
}

// Data that is not in the caller's own buffer can be shared with a cache: neither may the next segment be read over it, nor the value be handed out.
func TestSharedDataIsNotWrittenTo(t *testing.T) {
	store := &given{Blob: memblob.New(nil)}
	db := open(t, store)
	for _, v := range []string{"long value", "v", "longer value than any"} {
		db.Put(v, []byte(v))
		if err := db.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	holds(t, open(t, store), map[string]string{"long value": "long value", "v": "v", "longer value than any": "longer value than any"})
	if len(store.without) > 0 {
		t.Errorf("read without a buffer: %q", store.without)
	}
}

// A writer that was overtaken is told so when what it knew has been collected: the key is not missing.
func TestAReadOfWhatANewerWriterCollectedIsFenced(t *testing.T) {
	store := memblob.New(nil)
	old := open(t, store)
	old.Put("k", []byte("v"))
	if err := old.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := open(t, store)
	if err := now.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds(t, old, map[string]string{"k": "v"})
	if n, err := now.CollectGarbage(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d collected, %v", n, err)
	}
	if _, err := old.Get(t.Context(), "k"); !errors.Is(err, kvlog.ErrFenced) || errors.Is(err, kvlog.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if err := old.Compact(t.Context()); !errors.Is(err, kvlog.ErrFenced) {
		t.Errorf("compact: %v", err)
	}
	holds(t, now, map[string]string{"k": "v"})
}
