package retry

import (
	"context"
	"errors"

	"github.com/wholeblob/wholeblob/blob"
)

// DeleteAll tries again the keys that failed for a reason that may pass. It returns nil or, as soon as inner has
// told the keys apart, one *blob.DeleteError over all attempts.
func (r *retrying) DeleteAll(ctx context.Context, keys []string) error {
	d := deletion{pending: keys}
	err := r.do(ctx, Call{Op: blob.OpDeleteAll, Effect: AtLeastOnce, Bytes: -1, restart: true}, func(ctx context.Context, a *Attempt) error {
		return d.after(a, r.inner.DeleteAll(ctx, d.pending))
	})
	return d.result(err)
}

// deletion is the state of one DeleteAll.
type deletion struct {
	pending []string         // not deleted yet, and may be tried again
	failed  []blob.KeyError  // given up
	last    map[string]error // of the pending keys, as the last attempt said; nil before there was a DeleteError
	unknown map[string]bool  // keys that had an attempt whose outcome is Unknown
}

// after sorts the keys by the error of an attempt and returns what the loop is to judge: nil if nothing is left to try.
func (d *deletion) after(a *Attempt, err error) error {
	if err == nil {
		d.pending = nil
		return nil
	}
	de, ok := errors.AsType[*blob.DeleteError](err)
	if !ok { // of the call as a whole: it holds for each key
		for _, k := range d.pending {
			d.note(k, err)
			if d.last != nil {
				d.last[k] = nil
			}
		}
		return err
	}
	asked := make(map[string]bool, len(d.pending))
	for _, k := range d.pending {
		asked[k] = true
	}
	before := len(asked)
	d.last = make(map[string]error, len(de.Failed))
	d.pending = nil
	for _, f := range de.Failed {
		d.note(f.Key, f.Err)
		// A key nobody asked for must not be deleted by trying again.
		if !asked[f.Key] || !mayPass(f.Err) {
			d.failed = append(d.failed, blob.KeyError{Key: f.Key, Err: d.settled(f.Key, f.Err)})
			continue
		}
		if _, twice := d.last[f.Key]; !twice {
			d.pending = append(d.pending, f.Key)
		}
		d.last[f.Key] = f.Err
	}
	if len(d.pending) < before {
		a.Progress()
	}
	return d.representative()
}

// representative returns one error for all pending keys, with the longest wait any of them asks for.
func (d *deletion) representative() error {
	var worst *blob.Error
	for _, k := range d.pending {
		e, _ := errors.AsType[*blob.Error](d.last[k])
		if worst == nil || e.RetryAfter > worst.RetryAfter {
			worst = e
		}
	}
	if worst == nil {
		return nil
	}
	return worst
}

func mayPass(err error) bool {
	e, ok := errors.AsType[*blob.Error](err)
	return ok && !e.Exhausted && retryable(blob.KindOf(err), AtLeastOnce)
}

// note remembers an Unknown outcome of key.
func (d *deletion) note(key string, err error) {
	if blob.OutcomeOf(err) == blob.Unknown {
		if d.unknown == nil {
			d.unknown = map[string]bool{}
		}
		d.unknown[key] = true
	}
}

// settled returns err with the outcome of all attempts at key.
func (d *deletion) settled(key string, err error) error {
	e, ok := errors.AsType[*blob.Error](err)
	if !ok || !d.unknown[key] || e.Outcome == blob.Unknown {
		return err
	}
	c := *e
	c.Outcome = blob.Unknown
	return &c
}

// result returns the error of the call, of which the loop says err.
func (d *deletion) result(err error) error {
	if err != nil && d.last == nil && d.failed == nil {
		return err
	}
	if err != nil {
		for _, k := range d.pending {
			d.failed = append(d.failed, blob.KeyError{Key: k, Err: d.givenUp(k, err)})
		}
	}
	if len(d.failed) == 0 {
		return nil
	}
	return &blob.DeleteError{Failed: d.failed}
}

// givenUp returns the error of a pending key: its own, with the loop's count; or the loop's, if that is of the
// context or of the call as a whole.
func (d *deletion) givenUp(key string, err error) error {
	e, ok := errors.AsType[*blob.Error](err)
	if !ok {
		return err
	}
	c := *e
	if own, ok := errors.AsType[*blob.Error](d.last[key]); ok && e.Exhausted {
		c = *own
		c.Attempts, c.Exhausted = e.Attempts, true
	}
	c.Key = key
	c.Outcome = blob.NotApplied
	if d.unknown[key] {
		c.Outcome = blob.Unknown
	}
	return &c
}
