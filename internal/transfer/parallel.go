package transfer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// parallel is an upload whose parts go in any order, several at a time.
type parallel struct {
	w     *write
	up    Upload
	parts []Part
}

// send sends all parts, Concurrency at a time.
func (u *parallel) send(outer context.Context) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	total := u.w.src.Size()
	size := u.w.partSize()
	u.parts = make([]Part, max(1, ceilDiv(total, size)))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(len(u.parts), u.w.s.o.Concurrency) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(u.parts) {
					return
				}
				off := int64(i) * size
				p, err := u.part(ctx, PartRequest{Number: i + 1, Off: off, Size: min(size, total-off), Total: total})
				if err != nil {
					cancel(err) // the first cause wins
					return
				}
				u.parts[i] = p
			}
		})
	}
	workers.Wait()
	if err := cause(outer, ctx); err != nil {
		return err
	}
	return barrier(u.parts, total)
}

func (u *parallel) part(ctx context.Context, req PartRequest) (p Part, err error) {
	w := u.w
	err = w.s.do(ctx, call{op: blob.OpSet, key: w.key, bytes: req.Size, effect: retry.None}, func(ctx context.Context, a attempt) error {
		req.Body = a.w.body(w.src, req.Off, req.Size)
		p, err = w.s.r.Part(ctx, u.up, req)
		return spent(a, err, blob.ErrNotFound)
	})
	p.Number, p.Size = req.Number, req.Size
	return p, err
}

// barrier checks, before the commit, that the parts are all there and hold all bytes.
func barrier(parts []Part, size int64) error {
	sum := int64(0)
	for i, p := range parts {
		if p.Number != i+1 || p.Tag == "" {
			return badReply(fmt.Errorf("%w: part %d of %d was not accepted", blob.ErrCorrupt, i+1, len(parts)))
		}
		sum += p.Size
	}
	if sum != size {
		return badReply(fmt.Errorf("%w: the parts hold %d bytes, the source %d", blob.ErrCorrupt, sum, size))
	}
	return nil
}

func (u *parallel) commit(ctx context.Context) (done Written, err error) {
	w := u.w
	sum, err := w.wholeSum(ctx)
	if err != nil {
		return done, notApplied(err)
	}
	err = w.s.do(ctx, w.onKey(0), func(ctx context.Context, a attempt) error {
		done, err = w.s.r.Commit(ctx, u.up, CommitRequest{Parts: u.parts, Size: w.src.Size(), Cond: w.o.If, Sum: sum, Meta: w.meta})
		return spent(a, err, blob.ErrNotFound, blob.ErrConflict)
	})
	return done, err
}
