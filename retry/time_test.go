package retry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// hang is the request of a store that hears nothing until its context ends, and reports that in the given way.
func hang(report func(ctx context.Context) error) func(context.Context, *Attempt) error {
	return func(ctx context.Context, _ *Attempt) error {
		<-ctx.Done()
		return report(ctx)
	}
}

// reports are the ways in which stores report the end of a context.
var reports = map[string]func(ctx context.Context) error{
	"bare":    func(ctx context.Context) error { return ctx.Err() },
	"cause":   context.Cause,
	"wrapped": func(ctx context.Context) error { return fmt.Errorf("roundtrip: %w", ctx.Err()) },
	"no kind": func(ctx context.Context) error { return &blob.Error{Op: blob.OpGet, Key: "k", Err: ctx.Err()} },
	"kind": func(ctx context.Context) error {
		return &blob.Error{Op: blob.OpGet, Kind: blob.ErrUnavailable, Err: ctx.Err()}
	},
	"cut body": func(ctx context.Context) error {
		return &blob.Error{Op: blob.OpGet, Kind: blob.ErrTruncated, Err: ctx.Err()}
	},
	"as cause": func(ctx context.Context) error { return &blob.Error{Op: blob.OpGet, Err: context.Cause(ctx)} },
}

func TestAnAttemptThatTakesTooLongIsUnavailableAndRetried(t *testing.T) {
	for name, report := range reports {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := Policy{Jitter: NoJitter, Attempts: 3, Attempt: time.Second, Counters: new(Counters)}
				began := time.Now()
				err := Do(t.Context(), p, Call{Op: blob.OpGet, Store: "s3", Key: "k", Effect: None}, hang(report))
				wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.NotApplied), 3, true)
				if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					t.Errorf("error %q matches the error of a context, but the caller's is alive", err)
				}
				if now := time.Since(began); now != 3300*ms {
					t.Errorf("three attempts of 1 s took %v, want 3.3 s", now)
				}
				if c := p.Counters.Snapshot(); c.Timeout != 2 || c.Retries() != 2 {
					t.Errorf("counted %+v, want 2 timeouts", c)
				}
			})
		})
	}
}

func TestAnAttemptCutOffByTheCallersDeadlineIsTheCallersError(t *testing.T) {
	for name, report := range reports {
		for _, limit := range []time.Duration{5 * time.Second, 2 * time.Second, NoLimit} { // 2 s: both end at the same instant
			t.Run(fmt.Sprintf("%s, limit %v", name, limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					err := Do(ctx, Policy{Attempt: limit}, Call{Op: blob.OpGet, Effect: None}, hang(report))
					if !errors.Is(err, context.DeadlineExceeded) || blob.KindOf(err) != context.DeadlineExceeded {
						t.Errorf("error %v of kind %v, want the caller's deadline", err, blob.KindOf(err))
					}
				})
			})
		}
	}
}

func TestATimeoutOfAMutationIsUnknown(t *testing.T) {
	for effect, want := range map[Effect]int{Once: 1, AtLeastOnce: 3} {
		for _, name := range []string{"bare", "no kind", "kind"} {
			synctest.Test(t, func(t *testing.T) {
				p := Policy{Attempts: 3, Attempt: time.Second}
				err := Do(t.Context(), p, Call{Op: blob.OpSet, Effect: effect}, hang(reports[name]))
				wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.Unknown), want, true)
			})
		}
	}
}

func TestATimeoutThatTheStoreKnowsDidNothingIsRetriedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Policy{Attempts: 3, Attempt: time.Second}
		err := Do(t.Context(), p, Call{Op: blob.OpSet, Effect: Once}, hang(func(ctx context.Context) error {
			return &blob.Error{Op: blob.OpSet, Kind: blob.ErrUnavailable, Outcome: blob.NotApplied, Err: ctx.Err()}
		}))
		wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.NotApplied), 3, true)
	})
}

func TestADeadlineOfTheTransportIsNotTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// net's own timeouts match context.DeadlineExceeded although no context has ended.
		err := Do(t.Context(), steady(2), Call{Op: blob.OpGet, Effect: None}, func(context.Context, *Attempt) error {
			return &blob.Error{Op: blob.OpGet, Kind: blob.ErrUnavailable, Err: errors.Join(os.ErrDeadlineExceeded, context.DeadlineExceeded, &foreignError{"i/o"})}
		})
		wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.NotApplied), 2, true)
		if _, ok := errors.AsType[*foreignError](err); !ok {
			t.Errorf("the transport's error is not in %v", err)
		}
		if errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("error %v: want the transport's timeout, and not that of a context", err)
		}
	})
}

func TestALateReplyIsStillAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Do(t.Context(), Policy{Attempt: time.Second}, Call{Op: blob.OpGet, Effect: None}, hang(func(context.Context) error {
			return notApplied(blob.ErrNotFound)
		}))
		wantAttempts(t, wantError(t, err, blob.ErrNotFound, blob.NotApplied), 1, false)
	})
}

func TestTheContextOfAnAttemptSaysWhyItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_ = Do(t.Context(), Policy{Attempts: 1, Attempt: time.Second}, Call{Op: blob.OpGet}, hang(func(ctx context.Context) error {
			if cause := context.Cause(ctx); cause != errCutOff { //nolint:errorlint // itself
				t.Errorf("cause is %v, want %v", cause, errCutOff)
			}
			return ctx.Err()
		}))
	})
}

func TestASlowTransferIsLeftAloneAtMinRate(t *testing.T) {
	for bytes, wantLimit := range map[int64]time.Duration{0: time.Second, 5 << 20: 6 * time.Second, -1: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			p := Policy{Attempts: 1, Attempt: time.Second, Total: 20 * time.Second, MinRate: 1 << 20}
			began := time.Now()
			err := Do(t.Context(), p, Call{Op: blob.OpGet, Effect: None, Bytes: bytes}, func(ctx context.Context, _ *Attempt) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Hour):
					return nil
				}
			})
			if now := time.Since(began); now != wantLimit {
				t.Errorf("an attempt of %d bytes ended after %v, want %v", bytes, now, wantLimit)
			}
			if (err == nil) != (bytes < 0) {
				t.Errorf("an attempt of %d bytes: %v", bytes, err)
			}
		})
	}
}

func TestTotalCutsOffTheLastAttempt(t *testing.T) {
	for _, attempt := range []time.Duration{NoLimit, 600 * ms} {
		synctest.Test(t, func(t *testing.T) {
			p := Policy{Jitter: NoJitter, Total: time.Second, Attempt: attempt}
			began := time.Now()
			err := Do(t.Context(), p, Call{Op: blob.OpGet, Effect: None}, hang(reports["bare"]))
			e := wantError(t, err, blob.ErrUnavailable, blob.NotApplied)
			wantAttempts(t, e, map[time.Duration]int{NoLimit: 1, 600 * ms: 2}[attempt], true)
			if now := time.Since(began); now != time.Second {
				t.Errorf("Do returned after %v, want Total", now)
			}
		})
	}
}

func TestNoSleepReachesBeyondTotalOrTheCallersDeadline(t *testing.T) {
	limits := map[string]func(*Policy, context.Context) (context.Context, context.CancelFunc){
		"total": func(p *Policy, ctx context.Context) (context.Context, context.CancelFunc) {
			p.Total = time.Second
			return context.WithCancel(ctx)
		},
		"deadline": func(_ *Policy, ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	}
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := steady(9)
				ctx, cancel := limit(&p, t.Context())
				defer cancel()
				fn := always(notApplied(blob.ErrUnavailable))
				err := Do(ctx, p, Call{Op: blob.OpGet, Effect: None}, fn.run)
				fn.wantCalls(t, 0, 100*ms, 300*ms, 700*ms) // the next would be at 1.5 s
				if now := time.Since(fn.began); now != 700*ms {
					t.Errorf("Do returned after %v, want 700 ms: it slept in vain", now)
				}
				wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.NotApplied), 4, true)
			})
		})
	}
}

func TestTheLongestRetryAfterDoesNotOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := always(throttledFor(1<<63 - 1))
		err := Do(t.Context(), Policy{}, Call{Op: blob.OpSet}, fn.run)
		wantAttempts(t, wantError(t, err, blob.ErrThrottled, blob.NotApplied), 1, true)
	})
}

func throttledFor(d time.Duration) *blob.Error {
	e := notApplied(blob.ErrThrottled)
	e.RetryAfter = d
	return e
}

func TestRetryAfterIsTheLeastThatIsWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := play(throttledFor(3*time.Second), throttledFor(50*ms), throttledFor(time.Minute), throttledFor(-time.Second))
		if err := Do(t.Context(), steady(9), Call{Op: blob.OpSet}, fn.run); err != nil {
			t.Error(err)
		}
		// The second asks for less than the delay of 200 ms, the third for more than MaxDelay.
		fn.wantCalls(t, 0, 3000*ms, 3200*ms, 63200*ms, 64000*ms)
	})
}

func TestRetryAfterBeyondTheLimitGivesUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(9)
		p.Total = time.Minute
		for _, tc := range []struct {
			ask  time.Duration
			want int
		}{{59 * time.Second, 2}, {time.Minute, 1}, {time.Hour, 1}, {1<<63 - 1, 1}} {
			fn := always(throttledFor(tc.ask))
			err := Do(t.Context(), p, Call{Op: blob.OpSet}, fn.run)
			e := wantError(t, err, blob.ErrThrottled, blob.NotApplied)
			wantAttempts(t, e, tc.want, true)
			if now := time.Since(fn.began); tc.want == 1 && now != 0 {
				t.Errorf("asked to wait for %v, Do slept for %v", tc.ask, now)
			}
			if e.RetryAfter != tc.ask {
				t.Errorf("RetryAfter is %v, want %v", e.RetryAfter, tc.ask)
			}
		}
	})
}

func TestJitterDoesNotPushRetryAfterBeyondTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			fn := play(throttledFor(10 * time.Second))
			p := Policy{Jitter: 1, Total: 11 * time.Second}
			if err := Do(t.Context(), p, Call{Op: blob.OpSet}, fn.run); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestSleepersDoNotWakeTogether(t *testing.T) {
	for name, err := range map[string]error{"delay": notApplied(blob.ErrThrottled), "Retry-After": throttledFor(time.Second)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const sleepers = 64
				began := time.Now()
				var mu sync.Mutex
				var woken []time.Duration
				var wg sync.WaitGroup
				for range sleepers {
					wg.Go(func() {
						fn := play(err)
						_ = Do(t.Context(), Policy{}, Call{Op: blob.OpSet}, fn.run)
						mu.Lock()
						defer mu.Unlock()
						woken = append(woken, time.Since(began))
					})
				}
				wg.Wait()
				slices.Sort(woken)
				least, most := 50*ms, 100*ms
				if name == "Retry-After" {
					least, most = time.Second, 1500*ms
				}
				if woken[0] < least || woken[sleepers-1] > most {
					t.Errorf("woken from %v to %v, want within [%v, %v]", woken[0], woken[sleepers-1], least, most)
				}
				if spread := woken[sleepers-1] - woken[0]; spread < (most-least)/2 {
					t.Errorf("all woken within %v", spread)
				}
				if n := len(slices.Compact(woken)); n < sleepers-4 {
					t.Errorf("%d sleepers woke at %d instants", sleepers, n)
				}
			})
		})
	}
}

func TestACancelEndsTheSleepAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		err  *blob.Error
		want blob.Outcome
	}{
		"not applied": {notApplied(blob.ErrUnavailable), blob.NotApplied},
		"unknown":     {unknown(blob.ErrUnavailable), blob.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(50*ms, cancel)
				counters := new(Counters)
				p := steady(3)
				p.Counters = counters
				tc.err.Status, tc.err.Code, tc.err.RequestID = 503, "SlowDown", "R1"
				fn := play(tc.err)
				err := Do(ctx, p, Call{Op: blob.OpSet, Store: "s3", Key: "k", Effect: AtLeastOnce}, fn.run)
				fn.wantCalls(t, 0)
				if now := time.Since(fn.began); now != 50*ms {
					t.Errorf("Do returned after %v, want 50 ms", now)
				}
				e := wantError(t, err, context.Canceled, tc.want)
				wantAttempts(t, e, 1, false)
				if errors.Is(err, blob.ErrUnavailable) || e.Status != 503 || e.Code != "SlowDown" || e.RequestID != "R1" || e.Op != blob.OpSet || e.Key != "k" || e.Store != "s3" {
					t.Errorf("error %+v", e)
				}
				if c := counters.Snapshot(); c.Slept != 50*ms || c.Retries() != 0 || c.GaveUp != 0 {
					t.Errorf("counted %+v", c)
				}
			})
		})
	}
}

func TestAContextThatIsDoneMeansNoAttempt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fn := play()
	err := Do(ctx, Policy{}, Call{Op: blob.OpSet, Key: "k", Effect: AtLeastOnce}, fn.run)
	wantAttempts(t, wantError(t, err, context.Canceled, blob.NotApplied), 0, false)
	if len(fn.calls) != 0 {
		t.Errorf("%d attempts, want none", len(fn.calls))
	}
}

func TestCommittedWorkIsNoErrorWhenTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := Do(ctx, Policy{}, Call{Op: blob.OpSet}, func(context.Context, *Attempt) error {
		cancel()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestACancelDuringAnAttempt(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error // what the attempt returns after the cancel
		kind error
		want blob.Outcome
	}{
		"reply that is retried":      {notApplied(blob.ErrThrottled), context.Canceled, blob.NotApplied},
		"reply that is final":        {notApplied(blob.ErrExists), blob.ErrExists, blob.NotApplied},
		"lost reply":                 {&blob.Error{Kind: blob.ErrUnavailable, Err: context.Canceled}, context.Canceled, blob.Unknown},
		"context's error":            {&blob.Error{Err: context.Canceled}, context.Canceled, blob.Unknown},
		"context's error, unstarted": {&blob.Error{Err: context.Canceled, Outcome: blob.NotApplied}, context.Canceled, blob.NotApplied},
	} {
		for _, effect := range []Effect{Once, AtLeastOnce} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := Do(ctx, Policy{}, Call{Op: blob.OpSet, Effect: effect}, func(context.Context, *Attempt) error {
					cancel()
					return tc.err
				})
				wantAttempts(t, wantError(t, err, tc.kind, tc.want), 1, false)
			})
		}
	}
}

func TestTheSDKsErrorOfACancelIsKept(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Do(ctx, Policy{}, Call{Op: blob.OpGet, Effect: None}, func(context.Context, *Attempt) error {
		cancel()
		return &blob.Error{Op: blob.OpGet, Err: errors.Join(&foreignError{"request canceled"}, context.Canceled)}
	})
	_ = wantError(t, err, context.Canceled, blob.NotApplied)
	if _, ok := errors.AsType[*foreignError](err); !ok {
		t.Errorf("the SDK's error is not in %v", err)
	}
}

func TestTheCauseOfACancelIsNotTakenForAnotherError(t *testing.T) {
	for _, kind := range []error{nil, blob.ErrUnavailable} {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := Do(ctx, Policy{}, Call{Op: blob.OpGet, Effect: None}, func(ctx context.Context, _ *Attempt) error {
			cancel(errors.New("shutting down"))
			return &blob.Error{Op: blob.OpGet, Kind: kind, Err: context.Cause(ctx)}
		})
		wantAttempts(t, wantError(t, err, context.Canceled, blob.NotApplied), 1, false)
	}
}

func TestRestartedTotalCountsFromTheLastProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(3)
		p.Total = time.Second
		fn := play()
		err := Do(t.Context(), p, Call{Op: blob.OpList, Effect: None, Bytes: -1, restart: true}, func(ctx context.Context, a *Attempt) error {
			_ = fn.run(ctx, a)
			if a.Number() == 5 {
				return nil
			}
			<-time.After(time.Minute) // a consumer that takes its time
			a.Progress()
			return notApplied(blob.ErrUnavailable)
		})
		if err != nil || len(fn.calls) != 5 {
			t.Errorf("%d attempts and error %v, want 5 and none", len(fn.calls), err)
		}
	})
}
