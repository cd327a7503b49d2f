package blobtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// Faulty is a Blob that goes wrong on purpose. Calls that no fault hits go to the inner store as they are.
type Faulty struct {
	inner blob.Blob
	plan  []Fault

	mu struct {
		sync.Mutex
		seed     uint64
		matched  []int             // calls that matched Op and Key, by fault
		hit      []int             // calls that went wrong, by fault
		byKey    map[[2]string]int // calls of an operation on a key
		calls    map[string]int
		injected []Injected
	}
}

var _ blob.Blob = (*Faulty)(nil)

// NewFaults returns inner with the faults of plan. The seed of faults with a Chance is 1; see Seed.
func NewFaults(inner blob.Blob, plan ...Fault) *Faulty {
	f := &Faulty{inner: inner, plan: append([]Fault(nil), plan...)}
	f.mu.seed = 1
	f.mu.matched = make([]int, len(plan))
	f.mu.hit = make([]int, len(plan))
	f.mu.byKey = map[[2]string]int{}
	f.mu.calls = map[string]int{}
	return f
}

// Seed sets the seed of faults with a Chance, and of the bit that Corrupt changes, and returns f. It is to be called before the first call.
func (f *Faulty) Seed(seed uint64) *Faulty {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.seed = seed
	return f
}

// Calls returns how many calls of op there were, hit by a fault or not.
func (f *Faulty) Calls(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.calls[op]
}

// Injected returns the faults that were injected so far, in the order of the calls.
func (f *Faulty) Injected() []Injected {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Injected(nil), f.mu.injected...)
}

// Replay returns a plan that does again what was injected so far, with the same seed, whatever the chances were.
func (f *Faulty) Replay() []Fault {
	var plan []Fault
	for _, i := range f.Injected() {
		r := i.Fault
		r.Op, r.Key, r.Call, r.Times, r.Chance = i.Op, KeyIs(i.Key), i.Call, 0, 0
		plan = append(plan, r)
	}
	return plan
}

// verdict is what happens to one call, or to one key of a DeleteAll.
type verdict struct {
	op, key string
	call    int
	seed    uint64
	delays  []int  // faults of the plan
	fault   *Fault // nil: none but the delays
}

// decide counts a call and finds the faults that hit it. whole is false for a call that has no
// data to truncate or corrupt.
func (f *Faulty) decide(ctx context.Context, op, key string, whole bool) verdict {
	v := verdict{op: op, key: key}
	if ctx.Err() != nil {
		return v
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.byKey[[2]string{op, key}]++
	v.call, v.seed = f.mu.byKey[[2]string{op, key}], f.mu.seed
	for i := range f.plan {
		fault := &f.plan[i]
		if !fault.matches(op, key) {
			continue
		}
		// Every call that matches is counted, hit or not: a replay finds the call by its number.
		f.mu.matched[i]++
		if (fault.Do == Truncate || fault.Do == Corrupt) && !whole || fault.Do != Delay && v.fault != nil || !f.strikesLocked(i, v) {
			continue
		}
		f.mu.hit[i]++
		f.mu.injected = append(f.mu.injected, Injected{Op: op, Key: key, Call: v.call, Fault: *fault})
		if fault.Do == Delay {
			v.delays = append(v.delays, i)
		} else {
			v.fault = fault
		}
	}
	return v
}

// strikesLocked reports whether fault i, which matches the call, hits it. The caller holds the lock.
func (f *Faulty) strikesLocked(i int, v verdict) bool {
	fault := &f.plan[i]
	switch {
	case fault.Call > 0 && f.mu.matched[i] != fault.Call:
		return false
	case fault.Times > 0 && f.mu.hit[i] >= fault.Times:
		return false
	}
	return fault.Chance <= 0 || random(f.mu.seed, i, v.op, v.key, v.call).Float64() < fault.Chance
}

func (f *Faulty) count(op string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.calls[op]++
}

// before does what the verdict does ahead of the inner call: it waits, or fails.
func (f *Faulty) before(ctx context.Context, v verdict) error {
	if err := f.delay(ctx, v); err != nil {
		return err
	}
	if v.does(FailBefore) || v.does(Throttle) {
		return v.fault.failure(f.store(), v.op, v.key)
	}
	return nil
}

func (f *Faulty) delay(ctx context.Context, v verdict) error {
	for _, i := range v.delays {
		if d := f.plan[i]; d.Wait != nil {
			d.Wait(ctx, v.op, v.key)
		} else {
			wait(ctx, d.Delay)
		}
		if err := ctx.Err(); err != nil {
			return &blob.Error{Op: v.op, Store: f.store(), Key: v.key, Outcome: blob.NotApplied, Err: err}
		}
	}
	return nil
}

func (f *Faulty) store() string { return f.inner.Capabilities().Store }

// lost returns the error of a reply that was lost, or else err, which the inner call returned. A call that was refused
// before any request had no reply to lose.
func (f *Faulty) lost(v verdict, err error) error {
	if !v.does(FailAfter) || refusedLocally(err) {
		return err
	}
	return v.fault.failure(f.store(), v.op, v.key)
}

func refusedLocally(err error) bool {
	var s *blob.SourceError
	if errors.As(err, &s) {
		return true
	}
	switch blob.KindOf(err) {
	case blob.ErrInvalidKey, blob.ErrInvalidOption, blob.ErrUnsupported, blob.ErrClosed, blob.ErrTooLarge, context.Canceled, context.DeadlineExceeded:
		return true
	}
	return false
}

func (v verdict) does(a Action) bool { return v.fault != nil && v.fault.Do == a }

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Stat implements blob.Blob.
func (f *Faulty) Stat(ctx context.Context, key string) (blob.Info, error) {
	f.count(blob.OpStat)
	v := f.decide(ctx, blob.OpStat, key, false)
	if err := f.before(ctx, v); err != nil {
		return blob.Info{}, err
	}
	info, err := f.inner.Stat(ctx, key)
	if err = f.lost(v, err); err != nil {
		return blob.Info{}, err
	}
	return info, nil
}

// Delete implements blob.Blob.
func (f *Faulty) Delete(ctx context.Context, key string, opts *blob.DeleteOptions) error {
	f.count(blob.OpDelete)
	v := f.decide(ctx, blob.OpDelete, key, false)
	if err := f.before(ctx, v); err != nil {
		return err
	}
	return f.lost(v, f.inner.Delete(ctx, key, opts))
}

// Restore implements blob.Blob.
func (f *Faulty) Restore(ctx context.Context, key string) (blob.Info, error) {
	f.count(blob.OpRestore)
	v := f.decide(ctx, blob.OpRestore, key, false)
	if err := f.before(ctx, v); err != nil {
		return blob.Info{}, err
	}
	info, err := f.inner.Restore(ctx, key)
	if err = f.lost(v, err); err != nil {
		return blob.Info{}, err
	}
	return info, nil
}

// Capabilities implements blob.Blob.
func (f *Faulty) Capabilities() blob.Capabilities { return f.inner.Capabilities() }

// Close implements blob.Blob. A fault of it is a *blob.OwedError.
func (f *Faulty) Close(ctx context.Context) error {
	f.count(blob.OpClose)
	v := f.decide(ctx, blob.OpClose, "", false)
	if err := f.before(ctx, v); err != nil {
		return &blob.OwedError{Err: err}
	}
	err := f.inner.Close(ctx)
	if err == nil && v.does(FailAfter) {
		return &blob.OwedError{Err: f.lost(v, nil)}
	}
	return err
}
