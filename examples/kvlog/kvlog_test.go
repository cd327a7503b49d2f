package kvlog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/examples/kvlog"
	"github.com/wholeblob/wholeblob/memblob"
)

func open(t rapid.TB, store blob.Blob) *kvlog.DB {
	t.Helper()
	db, err := kvlog.Open(context.Background(), store)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// holds fails the test unless db has exactly these values.
func holds(t testing.TB, db *kvlog.DB, want map[string]string) {
	t.Helper()
	if keys := slices.Sorted(maps.Keys(want)); !slices.Equal(db.Keys(), keys) {
		t.Fatalf("keys %q, want %q", db.Keys(), keys)
	}
	for k, v := range want {
		got, err := db.Get(context.Background(), k)
		if err != nil || string(got) != v {
			t.Fatalf("%q is %q, want %q: %v", k, got, v, err)
		}
	}
}

func TestCommittedValuesAreFoundAgain(t *testing.T) {
	store := memblob.New(nil)
	db := open(t, store)
	db.Put("a", []byte("1"))
	db.Put("b", nil)
	db.Put("c", []byte("3"))
	if err := db.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.Put("a", []byte("2"))
	db.Delete("c")
	holds(t, db, map[string]string{"a": "2", "b": ""})
	holds(t, open(t, store), map[string]string{"a": "1", "b": "", "c": "3"}) // not committed yet
}

func TestAnOvertakenWriterIsFenced(t *testing.T) {
	store := memblob.New(nil)
	old := open(t, store)
	old.Put("k", []byte("old"))
	now := open(t, store)
	now.Put("k", []byte("new"))
	if err := now.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := old.Commit(t.Context()); !errors.Is(err, kvlog.ErrFenced) {
		t.Errorf("commit of the old writer: %v", err)
	}
	if _, err := old.CollectGarbage(t.Context()); !errors.Is(err, kvlog.ErrFenced) {
		t.Errorf("garbage collection of the old writer: %v", err)
	}
	holds(t, open(t, store), map[string]string{"k": "new"})
}

// A writer that does not know yet that it was overtaken collects no segments of the newer one.
func TestGarbageOfANewerWriterIsLeftAlone(t *testing.T) {
	store := memblob.New(nil)
	old := open(t, store)
	now := open(t, store)
	now.Put("k", []byte("v"))
	if err := now.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := old.CollectGarbage(t.Context()); n != 0 || !errors.Is(err, kvlog.ErrFenced) {
		t.Errorf("%d collected, %v", n, err)
	}
	holds(t, open(t, store), map[string]string{"k": "v"})
}

func TestDamagedSegmentsAreNoticed(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)-1] },
		"longer":  func(b []byte) []byte { return append(b, 0) },
		"one bit": func(b []byte) []byte { b[3] ^= 1; return b },
	} {
		t.Run(name, func(t *testing.T) {
			store := memblob.New(nil)
			db := open(t, store)
			db.Put("k", []byte("value"))
			if err := db.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			for info, err := range store.List(t.Context(), "segments/", nil) {
				if err != nil {
					t.Fatal(err)
				}
				obj, err := store.Get(t.Context(), info.Key, nil)
				if err == nil {
					_, err = store.Set(t.Context(), info.Key, blob.Bytes(damage(slices.Clone(obj.Data))), nil)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := kvlog.Open(t.Context(), store); !errors.Is(err, blob.ErrCorrupt) && !errors.Is(err, blob.ErrTruncated) {
				t.Errorf("opened with %v", err)
			}
		})
	}
}

func TestCompactionKeepsWhatLivesAndGarbageGoes(t *testing.T) {
	store := memblob.New(nil)
	db := open(t, store)
	want := map[string]string{}
	for i := range 5 {
		for j := range 10 {
			k, v := fmt.Sprint("k", j), fmt.Sprint(i, " ", j)
			db.Put(k, []byte(v))
			want[k] = v
		}
		db.Delete("k3")
		delete(want, "k3")
		if err := db.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	db.Put("pending", []byte("p"))
	want["pending"] = "p"
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := db.CollectGarbage(t.Context()); n != 5 || err != nil {
		t.Errorf("%d collected, %v", n, err)
	}
	holds(t, db, want)
	if err := db.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds(t, open(t, store), want)
}

// Whichever call of whichever operation fails, before or after it took effect: a commit that was acknowledged is found again, one that failed is
// found whole or not at all, and the garbage of it goes.
func TestEveryCallMayFail(t *testing.T) {
	for _, do := range []blobtest.Action{blobtest.FailBefore, blobtest.FailAfter} {
		for _, op := range []string{blob.OpGet, blob.OpGetRanges, blob.OpSet, blob.OpList, blob.OpDeleteAll} {
			for call := 1; ; call++ {
				faulty, ended := crash(t, blobtest.Fault{Do: do, Op: op, Call: call})
				if len(faulty.Injected()) == 0 {
					if call == 1 {
						t.Errorf("no %s was failed", op)
					}
					break
				}
				if t.Failed() {
					t.Fatalf("%v of %s %d, ended by %v", do, op, call, ended)
				}
			}
		}
	}
}

// crash runs a fixed sequence of commits, compactions and collections until the first error, and judges what is found then.
func crash(t *testing.T, fault blobtest.Fault) (*blobtest.Faulty, error) {
	store := memblob.New(nil)
	faulty := blobtest.NewFaults(store, fault)
	acked, tried := map[string]string{}, map[string]string{}
	ended := func() error {
		db, err := kvlog.Open(t.Context(), faulty)
		if err != nil {
			return err
		}
		for i := range 4 {
			for j := range 3 {
				k, v := fmt.Sprint("k", j), fmt.Sprint("v", i)
				db.Put(k, []byte(v))
				tried[k] = v
			}
			db.Delete(fmt.Sprint("k", i))
			delete(tried, fmt.Sprint("k", i))
			if err := db.Commit(t.Context()); err != nil {
				return err
			}
			acked = maps.Clone(tried)
			if i%2 == 1 {
				if err := db.Compact(t.Context()); err != nil {
					return err
				}
				if _, err := db.CollectGarbage(t.Context()); err != nil {
					return err
				}
			}
			for k := range acked {
				if _, err := db.Get(t.Context(), k); err != nil {
					return err
				}
			}
		}
		return nil
	}()
	db := open(t, store)
	if slices.Equal(db.Keys(), slices.Sorted(maps.Keys(tried))) && !maps.Equal(tried, acked) {
		if v, err := db.Get(t.Context(), "k0"); err == nil && string(v) == tried["k0"] || errors.Is(err, kvlog.ErrNotFound) && tried["k0"] == "" {
			acked = tried // it happened, though nobody heard
		}
	}
	holds(t, db, acked)
	if _, err := db.CollectGarbage(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds(t, db, acked)
	objects := 0
	for _, err := range store.List(t.Context(), "", nil) {
		if err != nil {
			t.Fatal(err)
		}
		objects++
	}
	if n, err := db.CollectGarbage(t.Context()); n != 0 || err != nil || objects > 1+4 {
		t.Errorf("%d objects after the garbage was collected, %d more collected, %v", objects, n, err)
	}
	return faulty, ended
}

// Any sequence of operations, with a crash anywhere, against a map.
func TestAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := memblob.New(nil)
		db, err := kvlog.Open(context.Background(), store)
		if err != nil {
			t.Fatal(err)
		}
		durable, seen := map[string]string{}, map[string]string{}
		key := rapid.SampledFrom([]string{"", "a", "b", "key with spaces", "é"})
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.SliceOf(rapid.Byte()).Draw(t, "value")
				db.Put(k, v)
				seen[k] = string(v)
			},
			"delete":  func(t *rapid.T) { k := key.Draw(t, "key"); db.Delete(k); delete(seen, k) },
			"commit":  func(*rapid.T) { must(db.Commit(context.Background())); durable = maps.Clone(seen) },
			"compact": func(*rapid.T) { must(db.Compact(context.Background())) },
			"collect": func(*rapid.T) { _, err := db.CollectGarbage(context.Background()); must(err) },
			"crash": func(*rapid.T) {
				db, err = kvlog.Open(context.Background(), store)
				must(err)
				seen = maps.Clone(durable)
			},
			"": func(t *rapid.T) {
				if keys := slices.Sorted(maps.Keys(seen)); !slices.Equal(db.Keys(), keys) {
					t.Fatalf("keys %q, want %q", db.Keys(), keys)
				}
				for k, v := range seen {
					if got, err := db.Get(context.Background(), k); err != nil || string(got) != v {
						t.Fatalf("%q is %q, want %q: %v", k, got, v, err)
					}
				}
			},
		})
	})
}
