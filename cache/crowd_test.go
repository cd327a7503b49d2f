package cache

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/wholeblob/wholeblob/blob"
)

// crowd is how many ask at once for what is not in the cache.
const crowd = 64

// Each asks in its own way for bytes of one block: whole calls, ranges of Get and of GetRanges. The first of all gives up.
func TestCrowdIsServedByOneRequestEvenIfTheFirstGivesUp(t *testing.T) {
	content := []byte(pattern(4 * block))
	for name, ask := range map[string]func(ctx context.Context, c *Cache, i int) ([]blob.Object, error){
		"whole": func(ctx context.Context, c *Cache, _ int) ([]blob.Object, error) {
			o, err := c.Get(ctx, key, nil)
			return []blob.Object{o}, err
		},
		"ranges of one block": func(ctx context.Context, c *Cache, i int) ([]blob.Object, error) {
			o, err := c.Get(ctx, key, &blob.GetOptions{Range: blob.Span(block+int64(i), 50+int64(i))})
			return []blob.Object{o}, err
		},
		"GetRanges": func(ctx context.Context, c *Cache, i int) ([]blob.Object, error) {
			return c.GetRanges(ctx, key, []blob.Range{blob.Span(block+int64(i), 10), blob.Span(2*block-int64(i)-1, 1)}, nil)
		},
		"each in a way of its own": func(ctx context.Context, c *Cache, i int) ([]blob.Object, error) {
			if i%2 == 0 {
				return c.GetRanges(ctx, key, []blob.Range{blob.Span(block, 10), blob.Span(block+20, 10)}, nil)
			}
			o, err := c.Get(ctx, key, &blob.GetOptions{Range: blob.Span(block+5, 100), Dst: make([]byte, 100)})
			return []blob.Object{o}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHooked()
				set(t, h.inner, key, string(content))
				c := over(t, h, Options{Block: block})
				defer mustClose(t, c)
				g := hold(blob.OpGet)
				h.hook(g.at, nil)
				ctx, cancel := context.WithCancel(t.Context())
				gone := make(chan error, 1)
				go func() { _, err := ask(ctx, c, 0); gone <- err }()
				<-g.reached // it is this one's request
				var wg sync.WaitGroup
				for i := range crowd - 1 {
					wg.Go(func() {
						objs, err := ask(t.Context(), c, i)
						if err != nil {
							t.Error(err)
						}
						for _, o := range objs {
							if len(o.Data) == 0 || !bytes.Equal(o.Data, content[o.Offset:][:len(o.Data)]) {
								t.Errorf("%d bytes from %d are not those of the store", len(o.Data), o.Offset)
							}
						}
					})
				}
				synctest.Wait()
				cancel()
				if err := <-gone; !errors.Is(err, context.Canceled) {
					t.Errorf("the one that gave up: %v", err)
				}
				close(g.release)
				wg.Wait()
				wantCalls(t, h, blob.OpGet, 1)
				wantCalls(t, h, blob.OpGetRanges, 0)
				if n := c.Stats().Joined; n != crowd-1 {
					t.Errorf("%d joined", n)
				}
				stateless(t, c)
			})
		})
	}
}
