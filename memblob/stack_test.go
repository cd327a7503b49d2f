package memblob

import (
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
	"github.com/wholeblob/wholeblob/retry"
)

// stacked is a cache over retries over a store, which the tests reach past them.
type stacked struct {
	blob.Blob
	store *Store
}

// The whole contract holds for the full stack, the rules of concurrency and linearizability among it.
func TestStackConformance(t *testing.T) {
	for name, o := range faultsweep.Tiers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := func(t *testing.T, opts Options) blob.Blob {
				t.Helper()
				tiers, store := o, New(&opts)
				tiers.MaxGet = opts.MaxGet
				b, err := faultsweep.Stack(t, tiers, retry.Policy{FirstDelay: time.Microsecond})(t.Context(), store)
				if err != nil {
					t.Fatal(err)
				}
				return stacked{b, store}
			}
			blobtest.Run(t, func(t *testing.T) blob.Blob { return open(t, Options{Restore: true}) }, &blobtest.Config{
				MaxGet: func(t *testing.T, n int64) blob.Blob { return open(t, Options{MaxGet: n}) },
				Foreign: func(t *testing.T, store blob.Blob, key string, data []byte) {
					foreign(t, store.(stacked).store, key, data)
				},
				Pending: map[string]string{"set/sha256": "stored checksums"},
			})
		})
	}
}

func TestStackFaultSweep(t *testing.T) {
	faultsweep.Stacks(t, func(*testing.T) blob.Blob { return New(&Options{Restore: true}) }, "memory", "always", "disk", "memory and disk")
}
