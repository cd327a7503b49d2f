package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/gate"
	"github.com/wholeblob/wholeblob/retry"
)

// Store is a blob.Blob over the Requests of one service.
type Store struct {
	r      Requests
	traits Traits
	o      Options
	gate   gate.Gate
	mode   atomic.Int32 // readMode with which reads begin; only goes down
	limit  *limiter
	proved atomic.Bool // Traits.Verify has been done
	clean  cleaner
}

var _ blob.Blob = (*Store)(nil)

// New returns the engine over r.
func New(r Requests, t Traits, o Options) *Store {
	o.Policy = o.Policy.WithDefaults()
	o.InFlight = cmp.Or(o.InFlight, DefaultInFlight)
	o.Stall = cmp.Or(o.Stall, DefaultStall)
	if t.MaxPut > 0 {
		o.Threshold = min(o.Threshold, t.MaxPut+1)
	}
	s := &Store{r: r, traits: t, o: o, limit: newLimiter(o.InFlight, o.Policy.FirstDelay, o.Policy.MaxDelay)}
	if o.ReadRanges || !t.PartReads {
		s.mode.Store(int32(byRange))
	}
	s.clean.init(s)
	return s
}

// Capabilities implements blob.Blob.
func (s *Store) Capabilities() blob.Capabilities { return s.traits.capabilities() }

// Close implements blob.Blob.
func (s *Store) Close(ctx context.Context) error {
	err := s.gate.Shut(ctx)
	if err == nil {
		err = s.clean.finish(ctx)
	}
	if owed := s.clean.owed(); err != nil || len(owed) > 0 {
		return &blob.OwedError{Uploads: owed, Err: err}
	}
	return nil
}

func (s *Store) full(key string) string { return s.o.Prefix + key }

func (s *Store) enter(ctx context.Context, op, key string) error {
	if err := s.gate.Enter(ctx, op, key); err != nil {
		return s.fail(op, key, err)
	}
	return nil
}

// call describes one use of the retry loop. Its zero effect is the cautious one: retry.Once.
type call struct {
	op, key string
	bytes   int64 // in the body of one attempt, as far as known
	effect  retry.Effect
}

// attempt is what the loop lends to each attempt.
type attempt struct {
	*retry.Attempt
	w *watch
}

// Progress tells the loop and the watch that bytes have come which the next attempt need not fetch again.
func (a attempt) Progress() {
	a.Attempt.Progress()
	a.w.moved()
}

// do runs fn, which makes one request, until it succeeds or the policy ends it. Each attempt waits for its turn at the
// endpoint, runs under a watch, and tells the others if the service asked for fewer.
func (s *Store) do(ctx context.Context, c call, fn func(context.Context, attempt) error) error {
	return retry.Do(ctx, s.o.Policy, retry.Call{
		Op: c.op, Store: s.traits.Store, Key: c.key, Bytes: c.bytes, Effect: c.effect, Guarded: true,
	}, func(ctx context.Context, a *retry.Attempt) error {
		if err := s.limit.acquire(ctx); err != nil {
			return notApplied(err)
		}
		defer s.limit.release()
		ctx, w, stop := s.watched(ctx)
		defer stop()
		err := w.judge(ctx, fn(ctx, attempt{a, w}))
		s.limit.report(err)
		return err
	})
}

// fail returns err as the *blob.Error of one of this store's operations. Every error leaves the
// engine through it, once.
func (s *Store) fail(op, key string, err error) error {
	e, ok := err.(*blob.Error) //nolint:errorlint // only the outermost is ours to fill in
	if !ok {
		e = blob.Fail(op, s.traits.Store, key, blob.OutcomeOf(err), err)
		if errors.Is(err, errStepDown) {
			e.Kind = blob.ErrTruncated
		}
	} else {
		c := *e // it may be shared: a cause of a cancelled context
		e = &c
	}
	e.Op, e.Store, e.Key = op, s.traits.Store, key
	if !blob.Mutates(op) {
		e.Outcome = blob.NotApplied
	}
	return e
}

// impossible is the error of a condition that no object can meet.
func impossible(cond blob.Condition) error {
	return &blob.Error{Kind: blob.ErrPrecondition, Outcome: blob.NotApplied, Err: fmt.Errorf("%v: no object has such a version", cond)}
}

// cause returns why inner, made from outer by context.WithCancelCause, has ended: nil if it has not, the error
// of outer if it ended first, else the cause.
func cause(outer, inner context.Context) error {
	err := context.Cause(inner)
	if err != nil && outer.Err() != nil && err == context.Cause(outer) { //nolint:errorlint // identity: is it outer's own?
		return outer.Err()
	}
	return err
}

// info returns what a caller may see of a Head.
func (s *Store) info(key string, h Head, size int64) blob.Info {
	user, _ := blob.Unseal(h.Metadata)
	return blob.Info{
		Key: key, Size: size, Version: h.Version, ModTime: h.ModTime,
		Metadata: user, ContentType: h.ContentType, CRC32C: h.CRC32C, HasCRC32C: h.HasCRC32C,
	}
}

// Stat implements blob.Blob.
func (s *Store) Stat(ctx context.Context, key string) (blob.Info, error) {
	if err := blob.CheckName(blob.OpStat, key); err != nil {
		return blob.Info{}, s.fail(blob.OpStat, key, err)
	}
	if err := s.enter(ctx, blob.OpStat, key); err != nil {
		return blob.Info{}, err
	}
	defer s.gate.Leave()
	h, err := s.head(ctx, blob.OpStat, key)
	if err != nil {
		return blob.Info{}, s.fail(blob.OpStat, key, err)
	}
	return s.info(key, h, h.Size), nil
}

// head asks for the Head of key, which must state a size.
func (s *Store) head(ctx context.Context, op, key string) (h Head, err error) {
	if !s.traits.addressable(s.full(key)) {
		return h, &blob.Error{Kind: blob.ErrNotFound, Outcome: blob.NotApplied}
	}
	err = s.do(ctx, call{op: op, key: key, effect: retry.None}, func(ctx context.Context, _ attempt) error {
		h, err = s.r.Head(ctx, s.full(key))
		if err == nil && h.Size < 0 {
			err = unproven()
		}
		return err
	})
	return h, err
}

func (s *Store) strip(key string) string { return strings.TrimPrefix(key, s.o.Prefix) }
