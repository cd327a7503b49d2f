package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

func TestSuccessIsOneAttemptWithoutSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := play()
		if err := Do(t.Context(), Policy{}, Call{Op: blob.OpSet}, fn.run); err != nil {
			t.Error(err)
		}
		fn.wantCalls(t, 0)
	})
}

func TestRetriesSleepForTheDelaysOfThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := play(notApplied(blob.ErrUnavailable), notApplied(blob.ErrThrottled), notApplied(blob.ErrConflict))
		if err := Do(t.Context(), steady(4), Call{Op: blob.OpSet}, fn.run); err != nil {
			t.Error(err)
		}
		fn.wantCalls(t, 0, 100*ms, 300*ms, 700*ms)
	})
}

func TestGivingUpKeepsTheLastReplyAndSleepsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sdk := &foreignError{"SlowDown"}
		last := &blob.Error{
			Op: blob.OpGet, Store: "s3", Key: "k", Kind: blob.ErrThrottled, Outcome: blob.NotApplied,
			Status: 503, Code: "SlowDown", RequestID: "R3", RetryAfter: time.Millisecond, Err: fmt.Errorf("reply: %w", sdk),
		}
		kept := *last
		fn := play(notApplied(blob.ErrUnavailable), notApplied(blob.ErrUnavailable), last)
		err := Do(t.Context(), steady(3), Call{Op: blob.OpGet, Effect: None}, fn.run)
		fn.wantCalls(t, 0, 100*ms, 300*ms)
		if now := time.Since(fn.began); now != 300*ms {
			t.Errorf("Do returned after %v, want 300 ms: it slept after the last attempt", now)
		}
		e := wantError(t, err, blob.ErrThrottled, blob.NotApplied)
		wantAttempts(t, e, 3, true)
		if e.Status != 503 || e.Code != "SlowDown" || e.RequestID != "R3" || e.RetryAfter != time.Millisecond {
			t.Errorf("the last reply is lost: %+v", e)
		}
		if got, ok := errors.AsType[*foreignError](err); !ok || got != sdk {
			t.Errorf("the SDK's error is not in %v", err)
		}
		if *last != kept {
			t.Errorf("the error of the attempt itself was changed to %+v", last)
		}
	})
}

type foreignError struct{ text string }

func (e *foreignError) Error() string { return e.text }

func TestWhatIsNotRetriedComesBackAtOnce(t *testing.T) {
	exhausted := notApplied(blob.ErrUnavailable)
	exhausted.Exhausted, exhausted.Attempts = true, 7
	source := &blob.SourceError{Offset: 3, Err: io.ErrUnexpectedEOF}
	fromSource := notApplied(blob.ErrUnavailable)
	fromSource.Err = fmt.Errorf("send: %w", source)
	for _, tc := range []struct {
		name string
		err  error
		same bool // returned as it is
	}{
		{"not found", notApplied(blob.ErrNotFound), false},
		{"no container", notApplied(blob.ErrNoContainer), false},
		{"exists", notApplied(blob.ErrExists), false},
		{"precondition", notApplied(blob.ErrPrecondition), false},
		{"changed", notApplied(blob.ErrChanged), false},
		{"source length", notApplied(blob.ErrSourceLength), false},
		{"invalid key", notApplied(blob.ErrInvalidKey), false},
		{"invalid option", notApplied(blob.ErrInvalidOption), false},
		{"invalid range", notApplied(blob.ErrInvalidRange), false},
		{"too large", notApplied(blob.ErrTooLarge), false},
		{"permission", notApplied(blob.ErrPermission), false},
		{"unsupported", notApplied(blob.ErrUnsupported), false},
		{"closed", notApplied(blob.ErrClosed), false},
		{"no kind", notApplied(nil), false},
		{"another's deadline", &blob.Error{Op: blob.OpGet, Err: context.DeadlineExceeded}, false},
		{"exhausted", exhausted, false},
		{"source", fromSource, false},
		{"bare source", source, true},
		{"foreign", &foreignError{"throttled, try again, 503"}, true},
		{"foreign with a sentinel", fmt.Errorf("mine: %w", blob.ErrThrottled), true},
		{"several keys", &blob.DeleteError{Failed: []blob.KeyError{{Key: "k", Err: notApplied(blob.ErrThrottled)}}}, true},
		{"bare context error", context.Canceled, true},
	} {
		for _, effect := range []Effect{None, AtLeastOnce, Once} {
			fn := always(tc.err)
			err := Do(t.Context(), Policy{}, Call{Op: blob.OpGet, Effect: effect}, fn.run)
			if len(fn.calls) != 1 {
				t.Errorf("%s: %d attempts, want 1", tc.name, len(fn.calls))
			}
			if tc.same {
				if err != tc.err { //nolint:errorlint // the same error, not one like it
					t.Errorf("%s: error %v, want %v itself", tc.name, err, tc.err)
				}
				continue
			}
			e, ok := errors.AsType[*blob.Error](err)
			if kind := blob.KindOf(tc.err); !ok || blob.KindOf(err) != kind {
				t.Fatalf("%s: error %v, want of kind %v", tc.name, err, kind)
			}
			if e.Exhausted != (tc.name == "exhausted") {
				t.Errorf("%s: Exhausted is %v", tc.name, e.Exhausted)
			}
			if want := map[bool]int{true: 7, false: 1}[e.Exhausted]; e.Attempts != want {
				t.Errorf("%s: Attempts is %d, want %d", tc.name, e.Attempts, want)
			}
		}
	}
}

func TestDamagedRepliesOfReadsAreRetried(t *testing.T) {
	for _, kind := range []error{blob.ErrTruncated, blob.ErrCorrupt} {
		for effect, want := range map[Effect]int{None: 3, AtLeastOnce: 1, Once: 1} {
			synctest.Test(t, func(t *testing.T) {
				fn := always(notApplied(kind))
				err := Do(t.Context(), steady(3), Call{Op: blob.OpGet, Effect: effect}, fn.run)
				wantAttempts(t, wantError(t, err, kind, blob.NotApplied), want, effect == None)
				if len(fn.calls) != want {
					t.Errorf("%v with effect %v: %d attempts, want %d", kind, effect, len(fn.calls), want)
				}
			})
		}
	}
}

func TestAWrappedErrorIsRetriedAndKeepsItsWrapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrapped := &foreignWrap{unknown(blob.ErrUnavailable)}
		fn := always(wrapped)
		err := Do(t.Context(), steady(2), Call{Op: blob.OpSet, Effect: AtLeastOnce}, fn.run)
		wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.Unknown), 2, true)
		if got, ok := errors.AsType[*foreignWrap](err); !ok || got != wrapped {
			t.Errorf("the wrapping is lost from %v", err)
		}
	})
}

type foreignWrap struct{ err error }

func (e *foreignWrap) Error() string { return "wrapped: " + e.err.Error() }
func (e *foreignWrap) Unwrap() error { return e.err }

func TestProgressResetsTheCountAndTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := always(notApplied(blob.ErrTruncated))
		err := Do(t.Context(), steady(3), Call{Op: blob.OpGet, Effect: None}, func(ctx context.Context, a *Attempt) error {
			if n := a.Number(); n == 2 || n == 3 || n == 5 {
				a.Progress()
			}
			return fn.run(ctx, a)
		})
		// After each attempt with progress the delay is 100 ms again, and three without it end the call.
		fn.wantCalls(t, 0, 100*ms, 200*ms, 300*ms, 500*ms, 600*ms, 800*ms, 1200*ms)
		wantAttempts(t, wantError(t, err, blob.ErrTruncated, blob.NotApplied), 8, true)
	})
}

func TestProgressForEverStillEndsAtTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(3)
		p.Total = time.Second
		fn := always(notApplied(blob.ErrTruncated))
		err := Do(t.Context(), p, Call{Op: blob.OpGet, Effect: None}, func(ctx context.Context, a *Attempt) error {
			a.Progress()
			return fn.run(ctx, a)
		})
		wantAttempts(t, wantError(t, err, blob.ErrTruncated, blob.NotApplied), 10, true)
		if now := time.Since(fn.began); now != 900*ms {
			t.Errorf("Do returned after %v, want 900 ms: the next attempt would begin at Total", now)
		}
	})
}

func TestOffIsOneAttemptEvenAfterProgress(t *testing.T) {
	fn := always(notApplied(blob.ErrUnavailable))
	err := Do(t.Context(), Off(), Call{Op: blob.OpGet, Effect: None}, func(ctx context.Context, a *Attempt) error {
		a.Progress()
		if _, ok := ctx.Deadline(); ok {
			t.Error("the attempt has a deadline")
		}
		return fn.run(ctx, a)
	})
	wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.NotApplied), 1, true)
}

func TestFinalEndsTheCall(t *testing.T) {
	fn := always(notApplied(blob.ErrUnavailable))
	err := Do(t.Context(), Policy{}, Call{Op: blob.OpSet, Effect: AtLeastOnce}, func(ctx context.Context, a *Attempt) error {
		a.Final()
		return fn.run(ctx, a)
	})
	wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.NotApplied), 1, true)
}

func TestAPanicPassesThroughAndLeavesNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempt context.Context
		func() {
			defer func() {
				if v := recover(); v != "boom" {
					t.Errorf("recovered %v, want boom", v)
				}
			}()
			_ = Do(t.Context(), Policy{}, Call{Op: blob.OpGet}, func(ctx context.Context, _ *Attempt) error {
				attempt = ctx
				panic("boom")
			})
			t.Error("Do returned")
		}()
		if attempt.Err() != context.Canceled {
			t.Errorf("the context of the attempt is %v after the panic, want canceled", attempt.Err())
		}
	})
}

func TestEachAttemptHasItsOwnContextThatEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []context.Context
		_ = Do(t.Context(), Policy{Attempts: 3}, Call{Op: blob.OpGet, Effect: None}, func(ctx context.Context, _ *Attempt) error {
			if err := ctx.Err(); err != nil {
				t.Errorf("attempt begins with a context that is done: %v", err)
			}
			for _, before := range seen {
				if before.Err() == nil {
					t.Error("the context of an earlier attempt is alive")
				}
			}
			seen = append(seen, ctx)
			return notApplied(blob.ErrUnavailable)
		})
		if len(seen) != 3 {
			t.Errorf("%d attempts, want 3", len(seen))
		}
	})
}

func TestStackedLoopsDoNotMultiplyAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := always(notApplied(blob.ErrUnavailable))
		call := Call{Op: blob.OpGet, Effect: None}
		err := Do(t.Context(), steady(5), call, func(ctx context.Context, _ *Attempt) error {
			return Do(ctx, steady(4), call, func(ctx context.Context, _ *Attempt) error {
				return Do(ctx, steady(3), call, fn.run)
			})
		})
		if len(fn.calls) != 3 {
			t.Errorf("%d attempts, want the 3 of the innermost loop", len(fn.calls))
		}
		wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.NotApplied), 3, true)
	})
}
