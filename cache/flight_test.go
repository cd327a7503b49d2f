package cache

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

func TestColdKeyCostsOneRequestHoweverManyWait(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<10) // 16 KiB
	for name, o := range map[string]*blob.GetOptions{
		"whole":  nil,
		"range":  {Range: blob.Span(5000, 100)},
		"blocks": {Range: blob.Span(3000, 6000)},
		"tail":   {Range: blob.Last(100)},
		"want":   {Want: blob.Want{Size: 16 << 10, HasSize: true}},
		"dst":    {Dst: nil}, // each has its own, see below
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHooked()
				set(t, h.inner, key, string(content))
				c := over(t, h, Options{Block: 4 << 10})
				defer mustClose(t, c)
				g := hold(blob.OpGet)
				h.hook(g.at, nil)
				var wg sync.WaitGroup
				for range 64 {
					wg.Go(func() {
						own := blob.GetOptions{}
						if o != nil {
							own = *o
						}
						if name == "dst" {
							own.Dst = make([]byte, len(content))
						}
						obj, err := c.Get(t.Context(), key, &own)
						if err != nil || !bytes.Equal(obj.Data, content[obj.Offset:][:len(obj.Data)]) || len(obj.Data) < 100 {
							t.Errorf("Get: %d bytes from %d, %v", len(obj.Data), obj.Offset, err)
						}
						if name == "dst" && &obj.Data[0] != &own.Dst[0] {
							t.Error("Data is not in Dst")
						}
					})
				}
				<-g.reached
				synctest.Wait()
				close(g.release)
				wg.Wait()
				wantCalls(t, h, blob.OpGet, 1)
				if n := c.Stats().Joined; n != 63 {
					t.Errorf("%d reads joined, want 63", n)
				}
				stateless(t, c)
			})
		})
	}
}

// Without anything that holds the first request up: those who come when it has just ended find what it brought.
func TestNoSecondRequestFollowsOneThatHasJustEnded(t *testing.T) {
	for _, r := range []blob.Range{{}, blob.Span(5000, 100)} {
		h := newHooked()
		c := over(t, h, Options{Block: 4 << 10})
		set(t, h.inner, key, string(make([]byte, 10<<10)))
		for range 200 {
			before := h.count(blob.OpGet)
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					if _, err := c.Get(t.Context(), key, &blob.GetOptions{Range: r}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if n := h.count(blob.OpGet) - before; n != 1 {
				t.Fatalf("%v: 16 readers sent %d requests: %+v", r, n, c.Stats())
			}
			c.invalidate(key)
		}
		mustClose(t, c)
	}
}

func TestCallerThatGivesUpFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{})
		defer mustClose(t, c)
		g := hold(blob.OpGet)
		h.hook(g.at, nil)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan string, 1)
		go func() { _, err := c.Get(ctx, key, nil); first <- err }()
		<-g.reached
		go func() { second <- get(t, c, key) }()
		synctest.Wait()
		cancel()
		err := <-first // while the request still hangs
		var e *blob.Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Op != blob.OpGet || e.Key != key || e.Outcome != blob.NotApplied {
			t.Errorf("the caller that gave up: %#v", err)
		}
		close(g.release)
		if v := <-second; v != "v1" {
			t.Errorf("the other reads %q", v)
		}
		wantCalls(t, h, blob.OpGet, 1)
		stateless(t, c)
	})
}

func TestLastCallerToLeaveCancelsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		g := hold(blob.OpGet)
		h.hook(nil, g.at) // a request that ends is an error if it was cancelled: see hooked.Get
		for range 3 {
			wg.Go(func() {
				if _, err := c.Get(ctx, key, nil); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		<-g.reached
		synctest.Wait()
		cancel()
		wg.Wait()
		// Nobody can join what was cancelled.
		wantGet(t, c, key, "v1")
		wantCalls(t, h, blob.OpGet, 2)
		close(g.release)
		mustClose(t, c)
		stateless(t, c)
	})
}

func TestCloseWaitsForRequestsThatNobodyWaitsForAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{})
		g := hold(blob.OpGet)
		h.hook(nil, g.at)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _, _ = c.Get(ctx, key, nil); close(done) }()
		<-g.reached
		cancel()
		<-done
		short, stop := context.WithCancel(t.Context())
		stop()
		var owed *blob.OwedError
		if err := c.Close(short); !errors.As(err, &owed) || !errors.Is(err, context.Canceled) {
			t.Errorf("Close whose context ends: %v", err)
		}
		closed := make(chan error, 1)
		go func() { closed <- c.Close(t.Context()) }()
		synctest.Wait()
		wantCalls(t, h, blob.OpClose, 0)
		close(g.release)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		wantCalls(t, h, blob.OpClose, 1)
		if _, err := c.Get(t.Context(), key, nil); !errors.Is(err, blob.ErrClosed) {
			t.Errorf("Get after Close: %v", err)
		}
	})
}

func TestFillsBeyondTheLimitGoStraightThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		for _, k := range []string{"a", "b"} {
			set(t, h.inner, k, string(make([]byte, 8<<10)))
		}
		c := over(t, h, Options{FillBytes: 8 << 10, Block: 4 << 10})
		defer mustClose(t, c)
		g := hold(blob.OpGet)
		h.hook(g.at, nil)
		want := &blob.GetOptions{Range: blob.Span(0, 5000)}
		done := make(chan error, 1)
		go func() { _, err := c.Get(t.Context(), "a", want); done <- err }()
		<-g.reached
		if _, err := c.Get(t.Context(), "b", want); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); s.FillsSkipped != 1 || s.Bypassed != 1 {
			t.Errorf("%+v", s)
		}
		close(g.release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		before := h.count(blob.OpGet)
		if _, err := c.Get(t.Context(), "b", want); err != nil { // there is room again
			t.Error(err)
		}
		if _, err := c.Get(t.Context(), "b", want); err != nil {
			t.Error(err)
		}
		wantCalls(t, h, blob.OpGet, before+1)
		stateless(t, c)
	})
}

// An object of unknown size that turns out too large for what is left is delivered, and not kept.
func TestFillOfUnknownSizeBeyondTheLimitIsNotKept(t *testing.T) {
	inner := memblob.New(nil)
	c := over(t, inner, Options{FillBytes: 16 << 10, Block: 4 << 10})
	defer mustClose(t, c)
	set(t, inner, key, string(make([]byte, 20<<10)))
	if v := get(t, c, key); len(v) != 20<<10 {
		t.Errorf("%d bytes", len(v))
	}
	if h := c.memory.peek(key); h == nil || h.whole || h.blocks.Load() != nil {
		t.Errorf("kept: %+v, want what is current and no bytes", h)
	}
	stateless(t, c)
}

// hung is a store whose Get ends with its context.
type hung struct {
	blob.Blob
	began, ended chan struct{}
}

func (h *hung) Get(ctx context.Context, _ string, _ *blob.GetOptions) (blob.Object, error) {
	close(h.began)
	<-ctx.Done()
	close(h.ended)
	return blob.Object{}, ctx.Err()
}

// A request that hangs ends with the last of those who wait for it, and not with the one before.
func TestRequestThatHangsEndsWithTheLastWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hung{memblob.New(nil), make(chan struct{}), make(chan struct{})}
		c := over(t, h, Options{})
		var leave [2]context.CancelFunc
		var gone [2]chan error
		for i := range leave {
			ctx, cancel := context.WithCancel(t.Context())
			leave[i], gone[i] = cancel, make(chan error, 1)
			go func() { _, err := c.Get(ctx, key, nil); gone[i] <- err }()
			synctest.Wait()
		}
		for i := range leave {
			select {
			case <-h.ended:
				t.Error("ended while someone waits")
			default:
			}
			leave[i]()
			if err := <-gone[i]; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		<-h.ended
		mustClose(t, c)
		stateless(t, c)
	})
}
