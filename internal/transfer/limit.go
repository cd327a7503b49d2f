package transfer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// limiter is the view of the endpoint that all operations of a Store share: how many requests are in flight, and
// whether the service has asked for fewer.
//
// A reply that says so puts on the brake for everybody: no attempt begins before the time it named, or before a delay that
// doubles with every further such reply and halves with every success. Those who waited start spread over the delay, not
// all at once. INVARIANT: nobody holds a permit while waiting for the brake, or asleep between attempts.
type limiter struct {
	permits     chan struct{} // one token for each request in flight
	first, most time.Duration // the least and the greatest delay

	mu struct {
		sync.Mutex
		until time.Time
		delay time.Duration // 0: the brake is off
	}
}

// longestBrake bounds how long one reply can stop all others: a Retry-After of hours, for one caller's request or by mistake, must
// not. The loop of the call that got it obeys the whole of it.
const longestBrake = time.Minute

var errBraked = errors.New("the endpoint has asked for fewer requests, and there is no time to wait")

func newLimiter(inFlight int, first, most time.Duration) *limiter {
	return &limiter{permits: make(chan struct{}, inFlight), first: first, most: most}
}

// acquire waits for the brake and for a permit.
func (l *limiter) acquire(ctx context.Context) error {
	for {
		if err := l.brake(ctx); err != nil {
			return err
		}
		select {
		case l.permits <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		if l.wait(time.Now()) <= 0 {
			return nil
		}
		l.release() // the brake came on while we waited
	}
}

func (l *limiter) release() { <-l.permits }

// brake sleeps until the brake is off, and a random part of the delay longer.
func (l *limiter) brake(ctx context.Context) error {
	for spread := time.Duration(0); ; {
		d := l.wait(time.Now())
		if d <= 0 && spread == 0 {
			return nil
		}
		if d > 0 {
			spread = l.spread()
		} else {
			d, spread = spread, 0
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
			return &blob.Error{Kind: blob.ErrThrottled, Outcome: blob.NotApplied, RetryAfter: d, Err: errBraked}
		}
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

func (l *limiter) wait(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.until.Sub(now)
}

func (l *limiter) spread() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return 1 + rand.N(max(l.mu.delay, 1))
}

// report tells what became of a request.
func (l *limiter) report(err error) {
	throttled := errors.Is(err, blob.ErrThrottled)
	if err != nil && !throttled {
		return // it says nothing about the load
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !throttled {
		if l.mu.delay /= 2; l.mu.delay < l.first {
			l.mu.delay = 0
		}
		return
	}
	now := time.Now()
	if now.Before(l.mu.until) {
		return // sent before the brake came on: it has been heard
	}
	l.mu.delay = min(max(2*l.mu.delay, l.first), l.most)
	wait := l.mu.delay
	var e *blob.Error
	if errors.As(err, &e) {
		wait = max(wait, min(e.RetryAfter, longestBrake))
	}
	l.mu.until = now.Add(wait)
}
