package faultsweep

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/retry"
)

// Block is the block of the caches of Tiers: small, so that reads of a few kilobytes are of many blocks.
const Block = 4 << 10

// Tiers returns caches that are small enough to be in all their ways, by name. The map is the caller's.
func Tiers() map[string]cache.Options {
	return map[string]cache.Options{
		"memory":          {Memory: 1 << 20, Block: Block},
		"memory and disk": {Memory: 64 << 10, Disk: 8 << 20, Block: Block},
		"disk":            {Memory: -1, Disk: 8 << 20, Block: Block},
		"always":          {Memory: 1 << 20, Block: Block, Revalidate: cache.Always},
	}
}

// Stack returns what makes the full stack of a store: a cache over retries over the store. Each cache with a disk has a directory of its own.
func Stack(t *testing.T, o cache.Options, policy retry.Policy) func(context.Context, blob.Blob) (blob.Blob, error) {
	t.Helper()
	dir := t.TempDir()
	var opened atomic.Int64
	return func(ctx context.Context, st blob.Blob) (blob.Blob, error) {
		tried, err := retry.New(st, policy)
		if err != nil {
			return nil, err
		}
		own := o
		if o.Disk > 0 {
			own.Dir = filepath.Join(dir, fmt.Sprint(opened.Add(1)))
		}
		return cache.New(ctx, tried, &own)
	}
}

// fullStack is a full stack, whose store is reached past it.
type fullStack struct {
	blob.Blob
	store blob.Blob
}

// Conform runs the conformance suite on the full stack: through caches of these tiers over retries over stores without requests. open opens an empty
// store with that MaxGet, and foreign writes to one behind the backs of those in front of it.
func Conform(t *testing.T, open func(t *testing.T, maxGet int64) blob.Blob, foreign func(t *testing.T, store blob.Blob, key string, data []byte), tiers ...string) {
	for _, name := range tiers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := func(t *testing.T, maxGet int64) blob.Blob {
				t.Helper()
				o, store := Tiers()[name], open(t, maxGet)
				o.MaxGet = maxGet
				b, err := Stack(t, o, retry.Policy{FirstDelay: time.Microsecond})(t.Context(), store)
				if err != nil {
					t.Fatal(err)
				}
				return fullStack{b, store}
			}
			blobtest.Run(t, func(t *testing.T) blob.Blob { return over(t, 0) }, &blobtest.Config{
				MaxGet:  over,
				Foreign: func(t *testing.T, b blob.Blob, key string, data []byte) { foreign(t, b.(fullStack).store, key, data) },
				Pending: map[string]string{"set/sha256": "stored checksums"},
			})
		})
	}
}

// Stacks sweeps the calls of a store beneath the full stack: through caches of these tiers, with retries and without, cold and warm.
func Stacks(t *testing.T, open func(t *testing.T) blob.Blob, tiers ...string) {
	for _, tier := range tiers {
		o := Tiers()[tier]
		for how, policy := range map[string]retry.Policy{"retried": quick(3), "not retried": retry.Off()} {
			if o.Disk > 0 && (how == "retried" || testing.Short()) {
				continue // from above, a fault that is mended is none, and that is shown without a disk
			}
			for _, warm := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/warm %t", tier, how, warm), func(t *testing.T) {
					t.Parallel()
					Calls(t, &Beneath{Part: Block, Open: open, Over: Stack(t, o, policy), Retries: how == "retried", Warm: warm, Revalidates: o.Revalidate == cache.Always})
				})
			}
		}
	}
}
