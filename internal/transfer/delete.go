package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// Delete implements blob.Blob.
func (s *Store) Delete(ctx context.Context, key string, opts *blob.DeleteOptions) error {
	o, err := blob.CheckDelete(key, opts)
	if err == nil && !o.If.IsZero() && !s.traits.DeleteConditions {
		err = blob.Invalid(blob.OpDelete, key,
			fmt.Errorf("%w: %v: nobody vouches that this endpoint honours conditions", blob.ErrUnsupported, o.If))
	}
	if err != nil {
		return s.fail(blob.OpDelete, key, err)
	}
	if err := s.enter(ctx, blob.OpDelete, key); err != nil {
		return err
	}
	defer s.gate.Leave()
	if err := s.delete(ctx, blob.OpDelete, key, o); err != nil {
		return s.fail(blob.OpDelete, key, err)
	}
	return nil
}

// delete removes one key. Absence is success: it is what was asked for, whether an attempt whose reply was lost
// brought it about or somebody else.
func (s *Store) delete(ctx context.Context, op, key string, o blob.DeleteOptions) error {
	if !s.traits.addressable(s.full(key)) {
		return nil
	}
	if s.traits.impossible(o.If) {
		_, err := s.head(ctx, op, key)
		switch {
		case errors.Is(err, blob.ErrNotFound):
			return nil
		case err != nil:
			return notApplied(err)
		}
		return impossible(o.If)
	}
	c := call{op: op, key: key, effect: retry.Mutation(o.If, o.AtMostOnce)}
	err := s.do(ctx, c, func(ctx context.Context, _ attempt) error {
		err := s.r.Delete(ctx, s.full(key), o.If)
		if errors.Is(err, blob.ErrNotFound) {
			return nil
		}
		return err
	})
	if !o.If.IsZero() && errors.Is(err, blob.ErrPrecondition) {
		// Some services answer so for a key that is not there, which is no error here.
		if _, absent := s.head(ctx, op, key); errors.Is(absent, blob.ErrNotFound) {
			return nil
		}
	}
	return err
}

// DeleteAll implements blob.Blob.
func (s *Store) DeleteAll(ctx context.Context, keys []string) error {
	if err := blob.CheckDeleteAll(keys); err != nil {
		return s.fail(blob.OpDeleteAll, "", err)
	}
	if len(keys) == 0 {
		return nil
	}
	d := deletion{s: s}
	if err := s.enter(ctx, blob.OpDeleteAll, ""); err != nil {
		for _, k := range keys {
			d.fail(k, err)
		}
		return &blob.DeleteError{Failed: d.failed}
	}
	defer s.gate.Leave()
	d.all(ctx, s.distinct(keys))
	if len(d.failed) > 0 {
		return &blob.DeleteError{Failed: d.failed}
	}
	return nil
}

// distinct returns the keys that the service can hold, each once.
func (s *Store) distinct(keys []string) []string {
	seen := make(map[string]bool, len(keys))
	var out []string
	for _, k := range keys {
		if !seen[k] && s.traits.addressable(s.full(k)) {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}

// deletion is one DeleteAll. INVARIANT: each key is named once, as failed or not at all.
type deletion struct {
	s      *Store
	mu     sync.Mutex
	failed []blob.KeyError
	doubt  map[string]bool // keys that a batch of unknown outcome may have deleted; written before single deletes begin
}

func (d *deletion) fail(key string, err error) {
	if d.doubt[key] {
		err = inDoubt(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = append(d.failed, blob.KeyError{Key: key, Err: d.s.fail(blob.OpDeleteAll, key, err)})
}

func (d *deletion) all(ctx context.Context, keys []string) {
	size := d.s.traits.BatchDelete
	keys, rest := d.split(keys)
	defer d.single(ctx, rest)
	for len(keys) > 0 && size > 0 {
		n := min(size, len(keys))
		left, ok := d.batch(ctx, keys[:n])
		keys = keys[n:]
		if !ok {
			keys = slices.Concat(left, keys)
			break // no batch call after all: one by one
		}
	}
	d.single(ctx, keys)
}

// split parts the keys that a batch can name from the rest.
func (d *deletion) split(keys []string) (batch, rest []string) {
	ok := d.s.traits.Batchable
	if ok == nil {
		return keys, nil
	}
	for _, k := range keys {
		if ok(d.s.full(k)) {
			batch = append(batch, k)
		} else {
			rest = append(rest, k)
		}
	}
	return batch, rest
}

// batch deletes keys in one request, and those among them that failed for the moment again. ok is false if the
// service refused to do such a thing at all, and left are those then that are still to be deleted; the others are, or have been named.
func (d *deletion) batch(ctx context.Context, keys []string) (left []string, ok bool) {
	left = keys
	last := make(map[string]error) // of those left, what the service said of each
	doubt := false                 // an attempt before may have deleted any of those left
	err := d.s.do(ctx, call{op: blob.OpDeleteAll, effect: retry.AtLeastOnce}, func(ctx context.Context, a attempt) error {
		full := make([]string, len(left))
		for i, k := range left {
			full[i] = d.s.full(k)
		}
		errs, err := d.s.r.DeleteBatch(ctx, full)
		if err != nil {
			doubt = doubt || unknown(err)
			clear(last) // it speaks for all of them
			return err
		}
		again, one := d.sort(left, errs, doubt, last)
		doubt = doubt || unknown(one)
		if len(again) < len(left) {
			a.Progress()
		}
		left = again
		return one
	})
	if errors.Is(err, blob.ErrUnsupported) {
		d.unsure(left, doubt)
		return left, false
	}
	if err != nil {
		for _, k := range left {
			d.fail(k, own(last[k], err))
		}
	}
	return nil, true
}

// unsure remembers that keys may have been deleted already: whatever is said of them from now on, the outcome is unknown.
func (d *deletion) unsure(keys []string, doubt bool) {
	if !doubt {
		return
	}
	d.doubt = make(map[string]bool, len(keys))
	for _, k := range keys {
		d.doubt[k] = true
	}
}

// own returns what the service said of one key, with what the loop says of all: how often it tried, that it gave up, and the outcome.
func own(last, all error) error {
	var said, loop *blob.Error
	if !errors.As(last, &said) || !errors.As(all, &loop) || loop.Kind == nil {
		return all
	}
	c := *said
	c.Attempts, c.Exhausted, c.Outcome = loop.Attempts, loop.Exhausted, loop.Outcome
	return &c
}

// sort keeps the keys that another attempt may delete, and one of their errors, which speaks for all: Unknown if any is. It
// records the others that failed, in doubt as Unknown, for what is refused now may have been deleted before.
func (d *deletion) sort(keys []string, errs []error, doubt bool, last map[string]error) (again []string, one error) {
	for i, k := range keys {
		err := errs[i]
		switch {
		case err == nil || errors.Is(err, blob.ErrNotFound):
		case errors.Is(err, blob.ErrThrottled), errors.Is(err, blob.ErrUnavailable), errors.Is(err, blob.ErrConflict):
			again, last[k] = append(again, k), err
			if !unknown(one) {
				one = err
			}
		default:
			var e *blob.Error
			if doubt && errors.As(err, &e) {
				c := *e
				c.Outcome, err = blob.Unknown, &c
			}
			d.fail(k, err)
		}
	}
	return again, one
}

// single deletes keys with a request each, Concurrency at a time.
func (d *deletion) single(ctx context.Context, keys []string) {
	work := make(chan string)
	var workers sync.WaitGroup
	for range min(len(keys), d.s.o.Concurrency) {
		workers.Go(func() {
			for k := range work {
				if err := d.s.delete(ctx, blob.OpDeleteAll, k, blob.DeleteOptions{}); err != nil {
					d.fail(k, err)
				}
			}
		})
	}
	for _, k := range keys {
		work <- k // after a cancel each delete ends at once, not applied
	}
	close(work)
	workers.Wait()
}
