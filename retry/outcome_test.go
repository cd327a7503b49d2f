package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/blob"
)

// TestOutcomeTable is the rule for mutations in full: what one failed attempt leads to, and what
// the call says about its outcome if the next attempt fails as well.
func TestOutcomeTable(t *testing.T) {
	const na, un = blob.NotApplied, blob.Unknown
	for _, tc := range []struct {
		name       string
		cond       blob.Condition
		atMostOnce bool
		first      *blob.Error
		then       *blob.Error
		attempts   int
		kind       error
		outcome    blob.Outcome
	}{
		// Nothing happened: everybody may try again.
		{"plain, refused", blob.Condition{}, false, reply(blob.ErrThrottled, na), nil, 2, nil, 0},
		{"IfAbsent, refused", blob.IfAbsent(), false, reply(blob.ErrThrottled, na), nil, 2, nil, 0},
		{"IfVersion, refused", blob.IfVersion("1"), false, reply(blob.ErrUnavailable, na), nil, 2, nil, 0},
		{"AtMostOnce, refused", blob.Condition{}, true, reply(blob.ErrUnavailable, na), nil, 2, nil, 0},
		{"IfAbsent, race in flight", blob.IfAbsent(), false, reply(blob.ErrConflict, na), nil, 2, nil, 0},
		{"IfAbsent, race lost", blob.IfAbsent(), false, reply(blob.ErrConflict, na), reply(blob.ErrExists, na), 2, blob.ErrExists, na},
		{"IfVersion, race lost", blob.IfVersion("1"), false, reply(blob.ErrConflict, na), reply(blob.ErrPrecondition, na), 2, blob.ErrPrecondition, na},
		{"plain, refused for good", blob.Condition{}, false, reply(blob.ErrThrottled, na), reply(blob.ErrPermission, na), 2, blob.ErrPermission, na},

		// It may have happened: only a plain mutation is tried again, and what comes later proves nothing about the first.
		{"plain, lost", blob.Condition{}, false, reply(blob.ErrUnavailable, un), nil, 2, nil, 0},
		{"plain, lost, refused", blob.Condition{}, false, reply(blob.ErrUnavailable, un), reply(blob.ErrPermission, na), 2, blob.ErrPermission, un},
		{"plain, lost, throttled", blob.Condition{}, false, reply(blob.ErrUnavailable, un), reply(blob.ErrThrottled, na), 3, blob.ErrThrottled, un},
		{"plain, refused, lost", blob.Condition{}, false, reply(blob.ErrThrottled, na), reply(blob.ErrPermission, un), 2, blob.ErrPermission, un},
		{"IfAbsent, lost", blob.IfAbsent(), false, reply(blob.ErrUnavailable, un), nil, 1, blob.ErrUnavailable, un},
		{"IfAbsent, unclear conflict", blob.IfAbsent(), false, reply(blob.ErrConflict, un), nil, 1, blob.ErrConflict, un},
		{"IfVersion, lost", blob.IfVersion("1"), false, reply(blob.ErrUnavailable, un), nil, 1, blob.ErrUnavailable, un},
		{"AtMostOnce, lost", blob.Condition{}, true, reply(blob.ErrUnavailable, un), nil, 1, blob.ErrUnavailable, un},
		{"IfAbsent, refused, lost", blob.IfAbsent(), false, reply(blob.ErrThrottled, na), reply(blob.ErrUnavailable, un), 2, blob.ErrUnavailable, un},

		// Final at once.
		{"exists", blob.IfAbsent(), false, reply(blob.ErrExists, na), nil, 1, blob.ErrExists, na},
		{"unclassified", blob.Condition{}, false, reply(blob.ErrPermission, un), nil, 1, blob.ErrPermission, un},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fn := play(tc.first)
				if tc.then != nil {
					fn.errs = append(fn.errs, tc.then, tc.then)
				}
				err := Do(t.Context(), steady(3), Call{Op: blob.OpSet, Effect: Mutation(tc.cond, tc.atMostOnce)}, fn.run)
				if len(fn.calls) != tc.attempts {
					t.Errorf("%d attempts, want %d", len(fn.calls), tc.attempts)
				}
				if tc.kind == nil {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantAttempts(t, wantError(t, err, tc.kind, tc.outcome), tc.attempts, retryable(tc.kind, AtLeastOnce))
			})
		})
	}
}

func TestAReadHasNoUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Do(t.Context(), steady(2), Call{Op: blob.OpGet, Effect: None}, always(unknown(blob.ErrUnavailable)).run)
		wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.NotApplied), 2, true)
	})
}

// step is what one attempt does in the model.
type step struct {
	kind       error
	outcome    blob.Outcome
	progress   bool
	final      bool
	foreign    bool
	source     bool
	exhausted  bool
	retryAfter time.Duration
	takes      time.Duration
}

var kinds = []error{
	blob.ErrConflict, blob.ErrThrottled, blob.ErrUnavailable, blob.ErrTruncated, blob.ErrCorrupt,
	blob.ErrNotFound, blob.ErrExists, blob.ErrPermission, blob.ErrSourceLength,
}

func steps(t *rapid.T) []step {
	rare := rapid.IntRange(0, 9)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		s := step{
			// Mostly the kinds that are retried, or every run would be short.
			kind:     kinds[min(rapid.IntRange(0, len(kinds)-1).Draw(t, "kind"), rapid.IntRange(0, len(kinds)-1).Draw(t, "cap"))],
			outcome:  rapid.SampledFrom([]blob.Outcome{blob.NotApplied, blob.NotApplied, blob.Unknown}).Draw(t, "outcome"),
			progress: rare.Draw(t, "progress") > 6,
			takes:    time.Duration(rapid.IntRange(0, 300).Draw(t, "takes")) * ms,
		}
		switch rare.Draw(t, "special") {
		case 9:
			s.final = true
		case 8:
			s.foreign = true
		case 7:
			s.source = true
		case 6:
			s.exhausted = true
		case 5, 4:
			s.retryAfter = time.Duration(rapid.IntRange(1, 2000).Draw(t, "after")) * ms
		}
		return s
	}), 0, 12).Draw(t, "steps")
}

func (s step) err() error {
	e := &blob.Error{Op: blob.OpSet, Kind: s.kind, Outcome: s.outcome, RetryAfter: s.retryAfter, Exhausted: s.exhausted}
	if s.source {
		e.Err = &blob.SourceError{Err: errors.New("broken")}
	}
	if s.foreign {
		return &foreignError{"broken"}
	}
	return e
}

// verdict is what the model says about a whole call.
type verdict struct {
	attempts  int
	foreign   bool
	kind      error // nil: success
	outcome   blob.Outcome
	exhausted bool
	took      time.Duration
}

// model plays the steps by the documented rules, written down once more and as plainly as possible.
func model(all []step, effect Effect, attempts int, total time.Duration) verdict {
	var v verdict
	idle, delay, unknown := 0, 100*ms, false
	for _, s := range all {
		v.attempts++
		v.took += s.takes
		if s.foreign {
			v.foreign = true
			return v
		}
		unknown = unknown || effect != None && s.outcome == blob.Unknown
		v.kind, v.outcome = s.kind, blob.NotApplied
		if unknown {
			v.outcome = blob.Unknown
		}
		transient := s.kind == blob.ErrConflict || s.kind == blob.ErrThrottled || s.kind == blob.ErrUnavailable ||
			effect == None && (s.kind == blob.ErrTruncated || s.kind == blob.ErrCorrupt)
		v.exhausted = s.exhausted || transient && !s.source
		if !transient || s.exhausted || s.source || s.final || effect == Once && unknown {
			return v
		}
		idle++
		if s.progress {
			idle, delay = 0, 100*ms
		}
		wait := max(min(delay, 20*time.Second), s.retryAfter)
		delay *= 2
		if idle == attempts || attempts == 1 {
			return v
		}
		if v.took+wait >= total {
			if s.retryAfter == 0 || v.took+s.retryAfter >= total {
				return v
			}
			wait = s.retryAfter
		}
		v.took += wait
	}
	return verdict{attempts: v.attempts + 1, took: v.took}
}

func TestRandomCallsFollowTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := steps(rt)
		effect := rapid.SampledFrom([]Effect{None, AtLeastOnce, Once}).Draw(rt, "effect")
		p := steady(rapid.IntRange(1, 5).Draw(rt, "attempts"))
		p.Total = time.Duration(rapid.IntRange(1, 40).Draw(rt, "total")) * 100 * ms
		p.Counters = new(Counters)
		want := model(all, effect, p.Attempts, p.Total)

		var got verdict
		var err error
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			// Bytes < 0: Total decides between attempts only, as the model does.
			err = Do(t.Context(), p, Call{Op: blob.OpSet, Effect: effect, Bytes: -1}, func(_ context.Context, a *Attempt) error {
				got.attempts++
				return perform(all, a)
			})
			got.took = time.Since(began)
		})
		e, isBlob := errors.AsType[*blob.Error](err)
		switch {
		case isBlob:
			got.kind, got.outcome, got.exhausted = blob.KindOf(err), e.Outcome, e.Exhausted
		case err != nil: // it has no kind of its own
			got.foreign = true
			want.kind, want.outcome, want.exhausted = nil, 0, false
		}
		if got != want {
			rt.Fatalf("got %+v, want %+v (%v)", got, want, err)
		}
		c := p.Counters.Snapshot()
		if c.Calls != 1 || c.Attempts != int64(got.attempts) || c.Retries() != c.Attempts-1 {
			rt.Fatalf("counted %+v for %d attempts", c, got.attempts)
		}
	})
}

func perform(all []step, a *Attempt) error {
	if a.Number() > len(all) {
		return nil
	}
	s := all[a.Number()-1]
	<-time.After(s.takes)
	if s.progress {
		a.Progress()
	}
	if s.final {
		a.Final()
	}
	return s.err()
}
