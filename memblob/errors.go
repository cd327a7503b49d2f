package memblob

import (
	"context"
	"errors"

	"github.com/wholeblob/wholeblob/blob"
)

// named completes an error made by package blob or the gate, which do not know the store.
func named(err error) error {
	var e *blob.Error
	if errors.As(err, &e) && e.Store == "" {
		e.Store = storeName
	}
	return err
}

// refuse returns the error of an operation that had no effect, as every failure here: nothing is
// published before the last check has passed.
func refuse(op, key string, err error) error {
	return &blob.Error{Op: op, Store: storeName, Key: key, Kind: kindOf(err), Outcome: blob.NotApplied, Err: err}
}

// kindOf returns the sentinel err stands for. A source may be the reader of another store: what that store says about
// its own key is the cause, not the kind, of a failed Set.
func kindOf(err error) error {
	var src *blob.SourceError
	if errors.As(err, &src) {
		if errors.Is(src.Err, blob.ErrSourceLength) {
			return blob.ErrSourceLength
		}
		return nil
	}
	kind := blob.KindOf(err)
	if errors.Is(kind, context.Canceled) || errors.Is(kind, context.DeadlineExceeded) {
		return nil // the context's error speaks for itself
	}
	return kind
}
