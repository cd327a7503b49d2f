package retry

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Do runs fn, and again while it fails in a way that another attempt may mend and p allows one. fn is run by the caller's
// goroutine, one attempt after the other; its context ends with ctx and when the attempt is cut off.
//
// Do returns nil as soon as fn did, even if ctx is done by then. Otherwise:
//
//   - An error of fn that is no *blob.Error, or is a *blob.DeleteError, is returned as it is, unless it says that p
//     cut the attempt off.
//   - A *blob.Error is returned as a copy, with Attempts set. It has Exhausted set if its kind is one that is
//     retried, but not this time: attempts or time have run out, Final was called, or the outcome of a Once is
//     Unknown. Everything else about the last reply, and the errors it wraps, is kept.
//   - If ctx ends between attempts, or cuts one off, the error is a *blob.Error that matches ctx.Err().
//   - An attempt cut off by p is a blob.ErrUnavailable that does not match context.DeadlineExceeded. Nor does any
//     other error of a kind that is retried, unless ctx has ended: its deadline was somebody else's.
//   - If the outcome of any attempt was Unknown, the outcome of the call is Unknown, whatever came after it.
//
// Retried are ErrConflict, ErrThrottled and ErrUnavailable, and if call.Effect is None also ErrTruncated and ErrCorrupt: what
// came may be damaged where what is stored is not. Nothing is retried that wraps a *blob.SourceError or is
// Exhausted already. A Once is not retried after an Unknown outcome.
//
// Between attempts Do sleeps, for as long as p says and at least for RetryAfter, and wakes at once when ctx ends. A sleep
// that would reach beyond Total or the deadline of ctx is not begun: the error is returned at once.
//
// A panic of fn passes through.
func Do(ctx context.Context, p Policy, call Call, fn func(ctx context.Context, a *Attempt) error) error {
	l := loop{policy: p.WithDefaults(), call: call, ctx: ctx}
	if err := l.policy.check(); err != nil {
		return err
	}
	if err := ended(ctx); err != nil {
		return l.interrupted(err, nil)
	}
	l.start = time.Now()
	a := new(Attempt)
	for {
		err := l.try(a, fn)
		if err == nil {
			return nil
		}
		if err = l.next(a, err); err != nil {
			return err
		}
	}
}

// loop is the state of one Do. It stays on the stack, for the sake of calls that succeed at once.
type loop struct {
	policy Policy
	call   Call
	ctx    context.Context //nolint:containedctx // lives as long as the call

	start   time.Time // Policy.Total counts from here
	tries   int       // attempts so far
	idle    int       // of these the last ones, without progress
	unknown bool      // the outcome of one of them was Unknown
	cutOff  bool      // the last one ended no sooner than its limit
	delays  *backoff.ExponentialBackOff
}

// try runs one attempt.
func (l *loop) try(a *Attempt, fn func(context.Context, *Attempt) error) error {
	l.tries++
	l.cutOff = false
	l.policy.Counters.attempt(l.tries == 1)
	a.begin(l.tries)
	limit := l.limit()
	if limit == NoLimit {
		return fn(l.ctx, a)
	}
	deadline := time.Now().Add(limit)
	ctx, cancel := context.WithDeadlineCause(l.ctx, deadline, errCutOff)
	defer cancel()
	err := fn(ctx, a)
	// By the clock, for fn may have taken the deadline from ctx and have noticed it before ctx did.
	l.cutOff = !time.Now().Before(deadline)
	return err
}

// limit returns the time the next attempt may take.
func (l *loop) limit() time.Duration {
	if l.call.Bytes < 0 {
		return NoLimit
	}
	limit := NoLimit
	if !l.call.Guarded {
		limit = l.policy.extend(l.policy.Attempt, l.call.Bytes)
	}
	if total := l.total(); total != NoLimit {
		left := max(1, total-time.Since(l.start))
		if limit == NoLimit || left < limit {
			limit = left
		}
	}
	return limit
}

// total returns the limit of the whole call.
func (l *loop) total() time.Duration { return l.policy.extend(l.policy.Total, l.call.Bytes) }

// left returns the time that is left for sleeping.
func (l *loop) left() time.Duration {
	left := time.Duration(math.MaxInt64)
	if total := l.total(); total != NoLimit {
		left = total - time.Since(l.start)
	}
	if d, ok := l.ctx.Deadline(); ok {
		left = min(left, time.Until(d))
	}
	return left
}

// next decides what follows the error of an attempt: nil, after the sleep, is another attempt; any other
// error is that of the call.
func (l *loop) next(a *Attempt, err error) error {
	f := l.judge(err, a.final.Load())
	if f.err == nil {
		return err
	}
	if ctxErr := ended(l.ctx); ctxErr != nil && (f.transient || l.onlyCause(err, ctxErr)) {
		return l.interrupted(ctxErr, f.err)
	}
	if !f.retry {
		return l.giveUp(f)
	}
	l.count(a.progress.Load())
	if l.idle >= l.policy.Attempts || l.policy.Attempts == 1 {
		return l.giveUp(f)
	}
	wait, ok := l.wait(f.err.RetryAfter)
	if !ok {
		return l.giveUp(f)
	}
	if ctxErr := l.sleep(wait); ctxErr != nil {
		return l.interrupted(ctxErr, f.err)
	}
	l.policy.Counters.retry(f.kind, f.timeout)
	return nil
}

func (l *loop) count(progress bool) {
	if l.delays == nil {
		l.delays = l.policy.delays()
	}
	l.idle++
	if progress {
		l.idle = 0
		l.delays.Reset()
		if l.call.restart {
			l.start = time.Now()
		}
	}
}

// wait returns how long to sleep before the next attempt. ok is false if there is no time for that.
func (l *loop) wait(retryAfter time.Duration) (wait time.Duration, ok bool) {
	wait = l.delays.NextBackOff()
	left := l.left()
	if retryAfter <= 0 {
		return wait, wait < left
	}
	// All who were refused in one second were told the same time: spread them behind it.
	spread := time.Duration(rand.Float64() * l.policy.jitter() * float64(min(retryAfter, l.policy.MaxDelay)))
	wait = max(wait, retryAfter+min(spread, math.MaxInt64-retryAfter))
	if wait >= left {
		wait = retryAfter
	}
	return wait, wait < left
}

// sleep returns the error of the call's context if that ended first.
func (l *loop) sleep(d time.Duration) error {
	began := time.Now()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.ctx.Done():
	}
	l.policy.Counters.sleep(time.Since(began))
	return ended(l.ctx)
}

// giveUp returns the error of a call that fails for good. One that another loop could mistake for a reason to
// try again is marked.
func (l *loop) giveUp(f failure) error {
	if f.transient {
		f.err.Exhausted = true
		l.policy.Counters.giveUp()
	}
	return f.err
}

// onlyCause reports whether err says that the caller's context ended, but by its cause alone: net/http does.
func (l *loop) onlyCause(err, ctxErr error) bool {
	return !errors.Is(err, ctxErr) && errors.Is(err, context.Cause(l.ctx))
}

// ended returns ctx.Err(), and knows that ctx has ended even before its timer has run.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return nil
}
