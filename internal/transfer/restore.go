package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
)

// Restore implements blob.Blob. An existing key is left as it is; a service that keeps nothing can do no more.
func (s *Store) Restore(ctx context.Context, key string) (blob.Info, error) {
	if err := blob.CheckName(blob.OpRestore, key); err != nil {
		return blob.Info{}, s.fail(blob.OpRestore, key, err)
	}
	if err := s.enter(ctx, blob.OpRestore, key); err != nil {
		return blob.Info{}, err
	}
	defer s.gate.Leave()
	h, err := s.head(ctx, blob.OpRestore, key)
	if errors.Is(err, blob.ErrNotFound) {
		err = blob.Invalid(blob.OpRestore, key, fmt.Errorf("%w: the store keeps no deleted objects", blob.ErrUnsupported))
	}
	if err != nil {
		var e *blob.Error
		if errors.As(err, &e) { // a Stat applies nothing
			c := *e
			c.Outcome = blob.NotApplied
			err = &c
		}
		return blob.Info{}, s.fail(blob.OpRestore, key, err)
	}
	return s.info(key, h, h.Size), nil
}
