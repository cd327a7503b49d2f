package transfer

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// Every error leaves as a *blob.Error: of its kind, also if that of a context is in it too; without one if a context's is all there is.
func TestKindsOfErrors(t *testing.T) {
	st := open(t, serve(t, s3Like()))
	inner := &blob.Error{Op: "inner", Kind: blob.ErrThrottled, Outcome: blob.NotApplied, Err: context.DeadlineExceeded}
	for _, c := range []struct {
		err, kind error
		outcome   blob.Outcome // of a mutation
	}{
		{context.Canceled, nil, blob.Unknown},
		{fmt.Errorf("around: %w", context.DeadlineExceeded), nil, blob.Unknown},
		{fmt.Errorf("%w: %w", blob.ErrUnavailable, context.Canceled), blob.ErrUnavailable, blob.Unknown},
		{fmt.Errorf("%w: %w", context.Canceled, blob.ErrUnavailable), blob.ErrUnavailable, blob.Unknown},
		{inner, blob.ErrThrottled, blob.NotApplied},
		{fmt.Errorf("around: %w", inner), blob.ErrThrottled, blob.NotApplied},
		{errStepDown, blob.ErrTruncated, blob.Unknown},
		{errors.New("anything"), nil, blob.Unknown},
	} {
		var e *blob.Error
		if err := st.fail(blob.OpSet, "k", c.err); !errors.As(err, &e) {
			t.Fatal(err)
		}
		if e.Kind != c.kind || e.Outcome != c.outcome || e.Op != blob.OpSet || e.Store != "s3like" || e.Key != "k" || !errors.Is(e, unwrapped(c.err)) {
			t.Errorf("%v: %#v", c.err, e)
		}
		for _, o := range []blob.Outcome{blob.NotApplied, blob.Unknown} {
			err := withOutcome(c.err, o)
			if got := blob.OutcomeOf(err); got != o || !errors.Is(err, unwrapped(c.err)) {
				t.Errorf("%v with outcome %v: %#v", c.err, o, err)
			}
			if k := c.kind; k != nil && !errors.Is(c.err, errStepDown) && !errors.Is(blob.KindOf(err), k) {
				t.Errorf("%v with outcome %v has the kind %v", c.err, o, blob.KindOf(err))
			}
		}
		if blob.OutcomeOf(st.fail(blob.OpGet, "k", c.err)) != blob.NotApplied {
			t.Errorf("%v: a read applies nothing", c.err)
		}
	}
	if inner.Op != "inner" || withOutcome(nil, blob.Unknown) != nil {
		t.Error("a shared error has been changed, or none has become one")
	}
}

// unwrapped is what must still be found: a *blob.Error is copied, its cause is not.
func unwrapped(err error) error {
	if e, ok := err.(*blob.Error); ok { //nolint:errorlint // the table has it bare
		return e.Err
	}
	if e := errors.Unwrap(err); e != nil {
		return unwrapped(e)
	}
	return err
}
