package retry

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// steady is a policy with known delays: 100 ms, 200 ms, 400 ms and so on, and no limits of time.
func steady(attempts int) Policy {
	return Policy{Jitter: NoJitter, Attempts: attempts, Total: NoLimit, Attempt: NoLimit}
}

func reply(kind error, outcome blob.Outcome) *blob.Error {
	return &blob.Error{Op: blob.OpSet, Store: "s3", Key: "k", Kind: kind, Outcome: outcome}
}

func notApplied(kind error) *blob.Error { return reply(kind, blob.NotApplied) }
func unknown(kind error) *blob.Error    { return reply(kind, blob.Unknown) }

// script is a function for Do that returns the given errors one after the other, nil after the last,
// and notes when it was called.
type script struct {
	errs  []error
	calls []time.Duration
	began time.Time
}

func play(errs ...error) *script { return &script{errs: errs, began: time.Now()} }

// always returns a script of the same error for ever.
func always(err error) *script {
	s := play()
	for range 100 {
		s.errs = append(s.errs, err)
	}
	return s
}

func (s *script) run(context.Context, *Attempt) error {
	s.calls = append(s.calls, time.Since(s.began))
	if n := len(s.calls); n <= len(s.errs) {
		return s.errs[n-1]
	}
	return nil
}

func (s *script) wantCalls(t *testing.T, at ...time.Duration) {
	t.Helper()
	if len(s.calls) != len(at) {
		t.Fatalf("%d attempts at %v, want %d at %v", len(s.calls), s.calls, len(at), at)
	}
	for i := range at {
		if s.calls[i] != at[i] {
			t.Fatalf("attempts at %v, want %v", s.calls, at)
		}
	}
}

// wantError checks that err is a *blob.Error of this kind and outcome and returns it.
func wantError(t *testing.T, err, kind error, outcome blob.Outcome) *blob.Error {
	t.Helper()
	e, ok := errors.AsType[*blob.Error](err)
	if !ok {
		t.Fatalf("error %v (%T), want a *blob.Error", err, err)
	}
	if got := blob.KindOf(err); got != kind || !errors.Is(err, kind) {
		t.Errorf("error %q is of kind %v, want %v", err, blob.KindOf(err), kind)
	}
	if got := blob.OutcomeOf(err); got != outcome {
		t.Errorf("error %q has outcome %v, want %v", err, got, outcome)
	}
	return e
}

func wantAttempts(t *testing.T, e *blob.Error, attempts int, exhausted bool) {
	t.Helper()
	if e.Attempts != attempts || e.Exhausted != exhausted {
		t.Errorf("error %q has Attempts %d, Exhausted %v, want %d, %v", e, e.Attempts, e.Exhausted, attempts, exhausted)
	}
}
