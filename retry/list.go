package retry

import (
	"context"
	"fmt"
	"iter"

	"github.com/wholeblob/wholeblob/blob"
)

// List yields what inner lists, and goes on after the last key it yielded when inner fails. A resumed
// listing repeats nothing, with a delimiter neither: keys and common prefixes alike come only if they
// are greater than StartAfter.
func (r *retrying) List(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
	var o blob.ListOptions
	if opts != nil {
		o = *opts
	}
	return func(yield func(blob.Info, error) bool) {
		next := o // of this range over the sequence; each begins anew
		call := Call{Op: blob.OpList, Key: prefix, Effect: None, Bytes: -1, restart: true}
		err := r.do(ctx, call, func(ctx context.Context, a *Attempt) error {
			opts := next
			for info, err := range r.inner.List(ctx, prefix, &opts) {
				if err != nil {
					return err
				}
				if info.Key <= next.StartAfter {
					return r.disorder(prefix, info.Key, next.StartAfter)
				}
				next.StartAfter = info.Key
				a.Progress()
				if !yield(info, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(blob.Info{}, err)
		}
	}
}

// disorder is the error of a store that does not keep the order or StartAfter: going on after the last
// key would leave out or repeat others, in silence.
func (r *retrying) disorder(prefix, key, last string) error {
	return &blob.Error{
		Op: blob.OpList, Store: r.store, Key: prefix, Kind: blob.ErrUnsupported, Outcome: blob.NotApplied,
		Err: fmt.Errorf("the store lists %q where only keys after %q may come", key, last),
	}
}
