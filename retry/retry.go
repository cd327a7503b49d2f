package retry

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/gate"
)

// New returns inner with every call but Close run through Do, and a Blob whose Capabilities say SelfRetrying. If
// inner's say so already, New returns inner itself. The error matches blob.ErrInvalidOption: for a nil inner, and
// for a policy that Check refuses.
//
// A conditional Set or Delete, and one with AtMostOnce, is not tried again after an attempt whose outcome is Unknown:
// New cannot see whose object is there now. A Set of a Stream is tried again only as long as the Stream has not been
// taken. A listing goes on after the last key it yielded, and a DeleteAll with the keys that failed for a reason that
// may pass; progress of either restarts Policy.Total, since only their content bounds their length.
//
// Policy.Attempt cuts off only calls whose bytes are known beforehand: a Set of Bytes or ReaderAt, a Stat, Delete or
// Restore, a read of a Span, Last, or with Want.Size. Any other read would have to be cut off by a guess; a Stream is
// as fast as what writes it; and a List or DeleteAll is any number of requests.
func New(inner blob.Blob, policy Policy) (blob.Blob, error) {
	if inner == nil {
		return nil, blob.Invalid(blob.OpOpen, "", fmt.Errorf("%w: retry.New of a nil Blob", blob.ErrInvalidOption))
	}
	if err := policy.Check(); err != nil {
		return nil, err
	}
	c := inner.Capabilities()
	if c.SelfRetrying {
		return inner, nil
	}
	return &retrying{inner: inner, policy: policy.WithDefaults(), store: c.Store}, nil
}

type retrying struct {
	inner  blob.Blob
	policy Policy
	store  string
	gate   gate.Gate // a call asleep between attempts is in flight, though inner does not know it
}

func (r *retrying) do(ctx context.Context, call Call, fn func(context.Context, *Attempt) error) error {
	call.Store = r.store
	if err := r.gate.Enter(ctx, call.Op, call.Key); err != nil {
		if e, ok := errors.AsType[*blob.Error](err); ok {
			e.Store = r.store
		}
		return err
	}
	defer r.gate.Leave()
	return Do(ctx, r.policy, call, fn)
}

func (r *retrying) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	var o blob.GetOptions
	if opts != nil {
		o = *opts
	}
	var obj blob.Object
	err := r.do(ctx, Call{Op: blob.OpGet, Key: key, Effect: None, Bytes: atMost(o.Range, o.Want)}, func(ctx context.Context, _ *Attempt) (err error) {
		obj, err = r.inner.Get(ctx, key, opts)
		return err
	})
	if err != nil {
		return blob.Object{}, err
	}
	return obj, nil
}

func (r *retrying) GetRanges(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
	var want blob.Want
	if opts != nil {
		want = opts.Want
	}
	var bytes int64
	for _, rg := range rs {
		n := atMost(rg, want)
		if n < 0 || n > math.MaxInt64-bytes {
			bytes = -1
			break
		}
		bytes += n
	}
	var objs []blob.Object
	err := r.do(ctx, Call{Op: blob.OpGetRanges, Key: key, Effect: None, Bytes: bytes}, func(ctx context.Context, _ *Attempt) (err error) {
		objs, err = r.inner.GetRanges(ctx, key, rs, opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return objs, nil
}

// atMost returns how many bytes a read of rg can have, -1 if that is unknown.
func atMost(rg blob.Range, want blob.Want) int64 {
	if want.HasSize {
		if _, n, err := rg.Resolve(want.Size); err == nil {
			return n
		}
	}
	if n, ok := rg.Limit(); ok {
		return n
	}
	return -1
}

func (r *retrying) Stat(ctx context.Context, key string) (blob.Info, error) {
	var info blob.Info
	err := r.do(ctx, Call{Op: blob.OpStat, Key: key, Effect: None}, func(ctx context.Context, _ *Attempt) (err error) {
		info, err = r.inner.Stat(ctx, key)
		return err
	})
	if err != nil {
		return blob.Info{}, err
	}
	return info, nil
}

func (r *retrying) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	var o blob.SetOptions
	if opts != nil {
		o = *opts
	}
	bytes := src.Size()
	if src.ReaderAt() == nil {
		bytes = -1
	}
	spent := src.Taken() // then inner refuses it, and says so
	var info blob.Info
	err := r.do(ctx, Call{Op: blob.OpSet, Key: key, Effect: Mutation(o.If, o.AtMostOnce), Bytes: bytes}, func(ctx context.Context, a *Attempt) (err error) {
		info, err = r.inner.Set(ctx, key, src, opts)
		if src.Taken() && !spent {
			a.Final()
		}
		return err
	})
	if err != nil {
		return blob.Info{}, err
	}
	return info, nil
}

func (r *retrying) Delete(ctx context.Context, key string, opts *blob.DeleteOptions) error {
	var o blob.DeleteOptions
	if opts != nil {
		o = *opts
	}
	return r.do(ctx, Call{Op: blob.OpDelete, Key: key, Effect: Mutation(o.If, o.AtMostOnce)}, func(ctx context.Context, _ *Attempt) error {
		return r.inner.Delete(ctx, key, opts)
	})
}

func (r *retrying) Restore(ctx context.Context, key string) (blob.Info, error) {
	var info blob.Info
	err := r.do(ctx, Call{Op: blob.OpRestore, Key: key, Effect: AtLeastOnce}, func(ctx context.Context, _ *Attempt) (err error) {
		info, err = r.inner.Restore(ctx, key)
		return err
	})
	if err != nil {
		return blob.Info{}, err
	}
	return info, nil
}

func (r *retrying) Capabilities() blob.Capabilities {
	c := r.inner.Capabilities()
	c.SelfRetrying = true
	return c
}

// Close lets the calls in flight finish, with the retries they still have, before it closes inner.
func (r *retrying) Close(ctx context.Context) error {
	if err := r.gate.Shut(ctx); err != nil {
		return &blob.OwedError{Err: err}
	}
	return r.inner.Close(ctx)
}
