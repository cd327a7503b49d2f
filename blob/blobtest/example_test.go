package blobtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

// A store's own test is one call. This store stands for yours.
func ExampleRun() {
	conformance := func(t *testing.T) {
		blobtest.Run(t, func(*testing.T) blob.Blob { return memblob.New(nil) }, &blobtest.Config{
			PartSize: 4 << 10,
			MaxGet:   func(_ *testing.T, n int64) blob.Blob { return memblob.New(&memblob.Options{MaxGet: n}) },
			Pending:  map[string]string{"set/sha256": "stored checksums"},
		})
	}
	_ = conformance // func TestConformance(t *testing.T)
	// Output:
}

// Concurrent handles of one store, each behind replies that get lost.
func ExampleLinearizable() {
	test := func(t *testing.T) {
		seed := blobtest.RandomSeed(t)
		store := memblob.New(nil)
		lossy := func(seed uint64) blob.Blob {
			return blobtest.NewFaults(store, blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpSet, Chance: 0.1}).Seed(seed)
		}
		blobtest.Linearizable(t, []blob.Blob{lossy(seed), lossy(seed + 1)}, &blobtest.LinearOptions{Tolerate: true, Deletes: true, Seed: seed})
	}
	_ = test // func TestLinearizable(t *testing.T)
	// Output:
}

// The second Set happens, and its reply is lost.
func ExampleNewFaults() {
	ctx := context.Background()
	store := blobtest.NewFaults(memblob.New(nil), blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpSet, Call: 2})
	for _, key := range []string{"a", "b"} {
		_, err := store.Set(ctx, key, blob.Bytes([]byte("content")), nil)
		fmt.Println(key, err)
	}
	_, err := store.Stat(ctx, "b")
	fmt.Println("b is there:", err == nil)
	fmt.Println(store.Injected())
	// Output:
	// a <nil>
	// b memory: set "b": unavailable (outcome unknown)
	// b is there: true
	// [set "b", call 1: FailAfter]
}

func ExampleRules() {
	for _, r := range blobtest.Rules()[:3] {
		fmt.Println(r.Name + ": " + r.Says)
	}
	// Output:
	// capabilities/named: Capabilities names the store.
	// capabilities/same-always: Capabilities gives the same answer always, without I/O.
	// capabilities/max-object: MaxObject is 0 or the largest object; a larger one is ErrTooLarge before any I/O.
}
