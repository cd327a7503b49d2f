package cache

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/wholeblob/wholeblob/blob"
)

// A request runs in a goroutine of the cache, where a panic of the store would end the program: those who wait for it get it instead, in theirs, where
// it would have come without a cache.
func TestPanicOfTheStoreIsThatOfThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, pattern(10*block))
		c := over(t, h, Options{Block: block})
		g := hold(blob.OpGet)
		h.hook(func(op string) {
			if op == blob.OpGet {
				g.at(op)
				panic("boom")
			}
		}, nil)
		var wg sync.WaitGroup
		for _, ask := range []func(ctx context.Context) error{
			func(ctx context.Context) error { _, err := c.Get(ctx, key, nil); return err },
			func(ctx context.Context) error { _, err := c.Get(ctx, key, nil); return err },
			func(ctx context.Context) error {
				_, err := c.GetRanges(ctx, key, []blob.Range{blob.Span(0, 10), blob.Span(9*block, 10)}, nil)
				return err
			},
		} {
			wg.Go(func() {
				defer func() {
					if v := recover(); v != "boom" {
						t.Errorf("recovered %v, want the store's panic", v)
					}
				}()
				t.Errorf("returned %v", ask(t.Context()))
			})
		}
		<-g.reached
		synctest.Wait()
		close(g.release)
		wg.Wait()
		h.hook(nil, nil)
		wantGet(t, c, key, pattern(10*block))
		stateless(t, c)
		mustClose(t, c)
	})
}

// What nobody waits for any more may panic as it likes.
func TestPanicOfAFetchThatWasGivenUpIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{})
		g := hold(blob.OpGet)
		h.hook(func(op string) {
			if op == blob.OpGet {
				g.at(op)
				panic("boom")
			}
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _, _ = c.Get(ctx, key, nil); close(done) }()
		<-g.reached
		cancel()
		<-done
		close(g.release)
		synctest.Wait()
		stateless(t, c)
		mustClose(t, c)
	})
}

// A store that ends its goroutine, as a test's does that gives up, ends those of the callers and leaves nobody waiting.
func TestStoreThatEndsItsGoroutineLeavesNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{})
		h.hook(func(op string) {
			if op == blob.OpGet {
				runtime.Goexit()
			}
		}, nil)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, err := c.Get(t.Context(), key, nil)
			t.Errorf("returned %v", err)
		}()
		<-ended
		stateless(t, c)
		mustClose(t, c)
	})
}

// Nor does a panic leave anything behind in a read that has more to do than to wait.
func TestPanicInTheMiddleOfAnObjectLeavesNothingBehind(t *testing.T) {
	h := newHooked()
	set(t, h.inner, key, pattern(10*block))
	c := over(t, h, Options{Block: block})
	defer mustClose(t, c)
	wantRange(t, c, blob.Span(0, 5*block), pattern(10*block))
	h.hook(func(op string) {
		if op == blob.OpGet {
			panic("boom")
		}
	}, nil)
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("recovered %v", v)
			}
		}()
		_, err := c.Get(t.Context(), key, nil) // of which some blocks are there
		t.Errorf("returned %v", err)
	}()
	stateless(t, c)
	h.hook(nil, nil)
	wantGet(t, c, key, pattern(10*block))
}
