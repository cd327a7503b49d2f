package blob

import (
	"context"
	"errors"
)

// Fail returns err as the *Error of an operation of a store: the one place where a store wraps. Its Kind is KindOf(err), but nil for a
// context's error, which speaks for itself.
func Fail(op, store, key string, outcome Outcome, err error) *Error {
	kind := KindOf(err)
	if errors.Is(kind, context.Canceled) || errors.Is(kind, context.DeadlineExceeded) {
		kind = nil
	}
	return &Error{Op: op, Store: store, Key: key, Kind: kind, Outcome: outcome, Err: err}
}

// Named puts a store's name into an error that was made without one, such as those of the Check functions, and returns it.
func Named(store string, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Store == "" {
		e.Store = store
	}
	return err
}
