package retry

import (
	"context"
	"errors"
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
)

// errCutOff is the cancel cause of the context of an attempt that took too long.
var errCutOff = errors.New("the attempt took too long")

// failure is the error of an attempt, judged.
type failure struct {
	err       *blob.Error // ours to change; nil: the error is to be returned as it is
	kind      error
	timeout   bool // a limit of the policy ended the attempt
	transient bool // of a kind that is retried
	retry     bool // and nothing about the call speaks against it
}

// judge classifies the error of an attempt and adds what is known about the attempts before it.
func (l *loop) judge(err error, final bool) failure {
	e := l.own(err)
	if e == nil {
		return failure{}
	}
	l.settle(e)
	f := failure{err: e, kind: blob.KindOf(err)}
	if _, source := errors.AsType[*blob.SourceError](err); source || e.Exhausted {
		return f
	}
	cutOff := l.cutOff && ofContext(err)
	f.transient = cutOff || retryable(f.kind, l.call.Effect)
	if !f.transient || ended(l.ctx) != nil {
		return f
	}
	if cutOff {
		f.timeout, f.kind, e.Kind = true, blob.ErrUnavailable, blob.ErrUnavailable
	}
	e.Err = silence(e.Err, cutOff)
	// e.Outcome is that of all attempts, but a Once gets no further than its first Unknown.
	f.retry = !final && (l.call.Effect != Once || e.Outcome == blob.NotApplied)
	return f
}

// own returns the *blob.Error in err as a copy that may be changed, or nil if err is to be returned as it is. An
// attempt that was cut off has one even if fn returned the bare error of its context.
func (l *loop) own(err error) *blob.Error {
	if isDeleteError(err) {
		return nil // it has an error per key, and none of them speaks for the others
	}
	e, ok := errors.AsType[*blob.Error](err)
	switch {
	case ok:
		c := *e
		if error(e) != err { //nolint:errorlint // whether something is wrapped around it
			c.Err = err
		}
		return &c
	case l.cutOff && ofContext(err):
		return &blob.Error{Op: l.call.Op, Store: l.call.Store, Key: l.call.Key, Kind: blob.ErrUnavailable, Err: err}
	default:
		return nil
	}
}

func isDeleteError(err error) bool {
	_, ok := errors.AsType[*blob.DeleteError](err)
	return ok
}

// settle sets what the last error says about all attempts.
func (l *loop) settle(e *blob.Error) {
	if l.call.Effect == None {
		e.Outcome = blob.NotApplied
	}
	if e.Outcome == blob.Unknown {
		l.unknown = true
	}
	if l.unknown {
		e.Outcome = blob.Unknown
	}
	if e.Exhausted { // a loop further in has counted
		e.Attempts = max(1, e.Attempts) + l.tries - 1
		return
	}
	e.Attempts = l.tries
}

// interrupted returns the error of a call whose context ended. It has the context's error as
// its only kind, and of the last attempt the reply and the text.
func (l *loop) interrupted(ctxErr error, last *blob.Error) error {
	e := &blob.Error{Op: l.call.Op, Store: l.call.Store, Key: l.call.Key, Attempts: l.tries, Err: ctxErr}
	if !l.unknown {
		e.Outcome = blob.NotApplied
	}
	if last != nil {
		e.Status, e.Code, e.RequestID, e.RetryAfter = last.Status, last.Code, last.RequestID, last.RetryAfter
		e.Err = fmt.Errorf("%w, after: %s", ctxErr, last.Error())
	}
	return e
}

func retryable(kind error, effect Effect) bool {
	return errors.Is(kind, blob.ErrConflict) || errors.Is(kind, blob.ErrThrottled) || errors.Is(kind, blob.ErrUnavailable) ||
		effect == None && (errors.Is(kind, blob.ErrTruncated) || errors.Is(kind, blob.ErrCorrupt))
}

func ofContext(err error) bool {
	return errors.Is(err, errCutOff) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// silence returns err, the cause of a failure while the caller's context is alive, without the errors of contexts:
// they were not the caller's. (Errors of package net match context.DeadlineExceeded without any context.)
func silence(err error, cutOff bool) error {
	if err == nil || !ofContext(err) {
		return err
	}
	if cutOff && !errors.Is(err, errCutOff) {
		return fmt.Errorf("%w: %w", errCutOff, quiet{err})
	}
	return quiet{err}
}

// quiet matches all that err matches, but not the errors of a context.
type quiet struct{ err error }

func (q quiet) Error() string { return q.err.Error() }

func (q quiet) Is(target error) bool {
	if target == context.DeadlineExceeded || target == context.Canceled {
		return false
	}
	return errors.Is(q.err, target)
}

func (q quiet) As(target any) bool { return errors.As(q.err, target) }
