package transfer

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/wholeblob/wholeblob/blob"
)

// GetRanges implements blob.Blob.
func (s *Store) GetRanges(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
	o, err := blob.CheckGetRanges(key, rs, opts)
	if err != nil {
		return nil, s.fail(blob.OpGetRanges, key, err)
	}
	if err := s.enter(ctx, blob.OpGetRanges, key); err != nil {
		return nil, err
	}
	defer s.gate.Leave()
	if len(rs) == 0 {
		return nil, nil
	}
	for restarts := 0; ; restarts++ {
		objs, err := s.getRanges(ctx, key, rs, o)
		switch {
		case err == nil:
			return objs, nil
		case !errors.Is(err, errVersion):
			return nil, s.fail(blob.OpGetRanges, key, err)
		case restarts >= s.o.Restarts:
			return nil, s.fail(blob.OpGetRanges, key,
				&blob.Error{Kind: blob.ErrChanged, Err: fmt.Errorf("%w, %d times", err, restarts+1)})
		}
	}
}

// getRanges reads the first range, which tells the version, and then the others of that version. errVersion means that the
// object changed in between and the caller did not ask for a version.
func (s *Store) getRanges(ctx context.Context, key string, rs []blob.Range, o blob.GetOptions) ([]blob.Object, error) {
	if err := s.checkSum(ctx, key, rs); err != nil {
		return nil, err
	}
	objs := make([]blob.Object, len(rs))
	get := func(ctx context.Context, i int, o blob.GetOptions, inFlight int) (err error) {
		o.Range = rs[i]
		objs[i], err = s.get(ctx, blob.OpGetRanges, key, o, inFlight)
		return err
	}
	if err := get(ctx, 0, o, s.o.Concurrency); err != nil {
		return nil, err
	}
	pinned, first := o, objs[0].Info
	if first.Version != "" {
		pinned.If = blob.IfVersion(first.Version)
	}
	g, gctx := errgroup.WithContext(ctx)
	atOnce := max(1, min(len(rs)-1, s.o.Concurrency))
	g.SetLimit(atOnce)
	for i := 1; i < len(rs); i++ {
		g.Go(func() error {
			err := get(gctx, i, pinned, s.o.Concurrency/atOnce)
			switch {
			case o.If.IsZero() && (errors.Is(err, blob.ErrPrecondition) || errors.Is(err, blob.ErrNotFound)):
				return errVersion
			case err == nil && first.Version == "" && (objs[i].Size != first.Size || !objs[i].ModTime.Equal(first.ModTime)):
				return errVersion // a store without versions: the weaker guarantee
			}
			return err
		})
	}
	return objs, g.Wait()
}

// checkSum refuses ranges of more than MaxGet bytes together. Only ranges whose lengths do not say so
// by themselves cost a Stat.
func (s *Store) checkSum(ctx context.Context, key string, rs []blob.Range) error {
	sum, known := int64(0), true
	for _, r := range rs {
		n, ok := r.Limit()
		if !ok || n > s.o.MaxGet-sum {
			known = false
			break
		}
		sum += n
	}
	if known || len(rs) == 1 { // a single range is checked where it is read
		return nil
	}
	h, err := s.head(ctx, blob.OpGetRanges, key)
	if err != nil {
		return err
	}
	sum = 0
	for _, r := range rs {
		_, n, err := r.Resolve(h.Size)
		if err == nil && n > s.o.MaxGet-sum {
			err = fmt.Errorf("%w: the ranges have more than %d bytes together", blob.ErrTooLarge, s.o.MaxGet)
		}
		if err != nil {
			return blob.Invalid(blob.OpGetRanges, key, err)
		}
		sum += n
	}
	return nil
}
