package transfer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// Sweep aborts uploads under the store's prefix that began more than olderThan ago, by the service's clock against this one's: those
// that a crashed process left. It cannot tell them from those of a living one that takes longer, so olderThan should be more than the longest
// upload; uploads of this Store in progress are left alone, and any of a key for which this Store is just beginning one. What was done before
// an error is in the result.
//
// An empty prefix is ErrInvalidOption unless the Store was opened to allow it: other programs' uploads would go too. An upload that
// cannot be aborted is named in the result, and the sweep goes on. One request per 1000 open uploads and one per abort. On a service that
// cannot list or discard uploads, since it lets go of them by itself, the result is empty, without a request.
func (s *Store) Sweep(ctx context.Context, olderThan time.Duration) (blob.SweepResult, error) {
	var res blob.SweepResult
	var err error
	switch {
	case olderThan < 0:
		err = fmt.Errorf("%w: a sweep of uploads older than %v", blob.ErrInvalidOption, olderThan)
	case s.o.Prefix == "" && !s.o.SweepAll:
		err = fmt.Errorf("%w: a sweep of the whole bucket, which AllowWholeBucket does not allow", blob.ErrInvalidOption)
	}
	if err != nil {
		return res, s.fail(blob.OpSweep, "", err)
	}
	if err := s.enter(ctx, blob.OpSweep, ""); err != nil {
		return res, err
	}
	defer s.gate.Leave()
	if !s.traits.sweeps() {
		return res, nil
	}
	if err := s.sweep(ctx, time.Now().Add(-olderThan), &res); err != nil {
		return res, s.fail(blob.OpSweep, "", err)
	}
	return res, nil
}

func (s *Store) sweep(ctx context.Context, before time.Time, res *blob.SweepResult) error {
	var moves circle
	for token := ""; ; {
		var page UploadPage
		err := s.do(ctx, call{op: blob.OpSweep, effect: retry.None}, func(ctx context.Context, _ attempt) (err error) {
			page, err = s.r.Uploads(ctx, s.o.Prefix, token)
			return err
		})
		if err != nil {
			return err
		}
		for _, up := range page.Uploads {
			if !strings.HasPrefix(up.Key, s.o.Prefix) { // nobody else's upload is touched, whatever a service lists
				return badReply(fmt.Errorf("%w: the list of uploads holds %q, which has another prefix", blob.ErrCorrupt, up.Key))
			}
			if up.Started.IsZero() || !up.Started.Before(before) || s.clean.mine(up) {
				res.Kept++
				continue
			}
			if err := s.clean.try(ctx, up); err != nil {
				if ctx.Err() != nil {
					return err
				}
				res.Failed = append(res.Failed, s.name(up))
				continue
			}
			res.Aborted = append(res.Aborted, s.name(up))
		}
		if page.Token == "" {
			return nil
		}
		if err := moves.next(page.Token); err != nil {
			return err
		}
		token = page.Token
	}
}

// name is how results and errors name an upload.
func (s *Store) name(up Upload) string { return s.strip(up.Key) + " " + up.ID }
