package blobtest

import (
	"context"
	"errors"
	"slices"

	"github.com/wholeblob/wholeblob/blob"
)

// DeleteAll implements blob.Blob.
func (f *Faulty) DeleteAll(ctx context.Context, keys []string) error {
	f.count(blob.OpDeleteAll)
	if blob.CheckDeleteAll(keys) != nil {
		return f.inner.DeleteAll(ctx, keys) // which refuses them: there is no call to go wrong
	}
	var pass []string
	var failed, lost []blob.KeyError
	held := verdict{op: blob.OpDeleteAll}
	for _, k := range keys {
		v := f.decide(ctx, blob.OpDeleteAll, k, false)
		for _, i := range v.delays {
			if !slices.Contains(held.delays, i) {
				held.delays = append(held.delays, i)
			}
		}
		v.delays = nil
		if err := f.before(ctx, v); err != nil {
			failed = append(failed, blob.KeyError{Key: k, Err: err})
			continue
		}
		pass = append(pass, k)
		if err := f.lost(v, nil); err != nil {
			lost = append(lost, blob.KeyError{Key: k, Err: err})
		}
	}
	if err := f.delay(ctx, held); err != nil {
		return err
	}
	if len(failed) == 0 && len(lost) == 0 {
		return f.inner.DeleteAll(ctx, keys)
	}
	if len(pass) > 0 {
		lost = mergeFailed(lost, pass, f.inner.DeleteAll(ctx, pass))
	}
	return &blob.DeleteError{Failed: append(failed, lost...)}
}

// mergeFailed adds the failures of the inner call to those whose reply is lost: of these nothing else is known.
func mergeFailed(lost []blob.KeyError, keys []string, err error) []blob.KeyError {
	var d *blob.DeleteError
	switch {
	case err == nil:
		return lost
	case !errors.As(err, &d): // the whole call failed
		d = &blob.DeleteError{}
		for _, k := range keys {
			d.Failed = append(d.Failed, blob.KeyError{Key: k, Err: err})
		}
	}
	for _, f := range d.Failed {
		if !slices.ContainsFunc(lost, func(l blob.KeyError) bool { return l.Key == f.Key }) {
			lost = append(lost, f)
		}
	}
	return lost
}
