package retry

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

func TestCountersTellRetriesByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(20)
		p.Counters = new(Counters)
		var errs []error
		for i, kind := range []error{blob.ErrThrottled, blob.ErrUnavailable, blob.ErrTruncated, blob.ErrCorrupt, blob.ErrConflict} {
			for range i + 1 {
				errs = append(errs, notApplied(kind))
			}
		}
		p.MaxDelay = 100 * ms
		if err := Do(t.Context(), p, Call{Op: blob.OpGet, Effect: None}, play(errs...).run); err != nil {
			t.Error(err)
		}
		p.Attempts = 2
		_ = Do(t.Context(), p, Call{Op: blob.OpGet, Effect: None}, always(notApplied(blob.ErrThrottled)).run)
		_ = Do(t.Context(), p, Call{Op: blob.OpGet, Effect: None}, always(notApplied(blob.ErrNotFound)).run)
		want := Counts{
			Calls: 3, Attempts: 16 + 2 + 1, Throttled: 2, Unavailable: 2, Truncated: 3, Corrupt: 4, Conflict: 5,
			GaveUp: 1, Slept: 1600 * ms,
		}
		if got := p.Counters.Snapshot(); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
		if n := want.Retries(); n != 16 {
			t.Errorf("Retries is %d, want 16", n)
		}
	})
}

func TestCountersAreSharedByManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Policy{Counters: new(Counters)}
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				_ = Do(t.Context(), p, Call{Op: blob.OpGet, Effect: None}, play(notApplied(blob.ErrUnavailable)).run)
				_ = p.Counters.Snapshot()
			})
		}
		wg.Wait()
		if got := p.Counters.Snapshot(); got.Calls != 16 || got.Attempts != 32 || got.Unavailable != 16 {
			t.Errorf("counted %+v", got)
		}
	})
}

func TestNoCountersCountNothing(t *testing.T) {
	var c *Counters
	c.attempt(true)
	c.retry(blob.ErrThrottled, false)
	c.giveUp()
	c.sleep(time.Second)
	if got := c.Snapshot(); got != (Counts{}) {
		t.Errorf("counted %+v", got)
	}
}
