package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// Close comes while everything goes on, callers give up among it: calls end well or say why, nothing is owed and no goroutine stays.
func TestCloseBesideEverything(t *testing.T) {
	for round := range 20 {
		inner := memblob.New(&memblob.Options{Restore: true})
		for i := range 4 {
			set(t, inner, fmt.Sprint(i), pattern(10*block+i))
		}
		c := over(t, inner, Options{Memory: 64 * block, Block: block, FillBytes: 32 * block, Dir: t.TempDir(), Disk: 1 << 20})
		var begun, wg sync.WaitGroup
		for g := range 8 {
			begun.Add(1)
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(round), uint64(g)))
				for n := 0; ; n++ {
					if n == 20 {
						begun.Done()
					}
					ctx, cancel := context.WithCancel(t.Context())
					if rnd.IntN(4) == 0 {
						go cancel()
					}
					err := anyCall(ctx, c, rnd)
					cancel()
					switch {
					case errors.Is(err, blob.ErrClosed):
						if n < 20 {
							t.Error("closed before Close")
						}
						return
					case err == nil, errors.Is(err, context.Canceled), errors.Is(err, blob.ErrNotFound):
					default:
						t.Error(err)
					}
				}
			})
		}
		begun.Wait()
		short, stop := context.WithCancel(t.Context())
		stop()
		_ = c.Close(short) // may owe something
		mustClose(t, c)
		wg.Wait()
		stateless(t, c)
	}
}

func anyCall(ctx context.Context, c *Cache, rnd *rand.Rand) (err error) {
	k := fmt.Sprint(rnd.IntN(4))
	switch rnd.IntN(8) {
	case 0:
		_, err = c.Set(ctx, k, blob.Bytes([]byte(pattern(10*block+rnd.IntN(9)))), nil)
	case 1:
		_, err = c.Stat(ctx, k)
	case 2:
		err = c.Delete(ctx, k, nil)
	case 3:
		_, err = c.Restore(ctx, k)
	case 4:
		_, err = c.GetRanges(ctx, k, []blob.Range{blob.Span(0, 10), blob.Last(5), blob.Span(rnd.Int64N(9*block), 2*block)}, nil)
	case 5:
		_, err = c.Get(ctx, k, &blob.GetOptions{Dst: make([]byte, 11*block)})
	default:
		_, err = c.Get(ctx, k, &blob.GetOptions{Range: blob.Span(rnd.Int64N(9*block), rnd.Int64N(3*block)), Dst: make([]byte, rnd.IntN(2*block))})
	}
	return err
}
