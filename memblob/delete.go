package memblob

import (
	"context"
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
)

// Delete implements blob.Blob.
func (s *Store) Delete(ctx context.Context, key string, opts *blob.DeleteOptions) error {
	if err := s.gate.Enter(ctx, blob.OpDelete, key); err != nil {
		return named(err)
	}
	defer s.gate.Leave()
	o, err := blob.CheckDelete(key, opts)
	if err != nil {
		return named(err)
	}
	if err := s.remove(key, o.If); err != nil {
		return refuse(blob.OpDelete, key, err)
	}
	return nil
}

func (s *Store) remove(key string, cond blob.Condition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := cond.Version(); ok {
		if current := s.mu.objects[key]; current != nil && current.info.Version != v {
			return fmt.Errorf("%w: the version is %q, not %q", blob.ErrPrecondition, current.info.Version, v)
		}
	}
	s.removeLocked(key)
	return nil
}

// DeleteAll implements blob.Blob. Keys are removed one by one, each atomically; a cancel stops between two.
func (s *Store) DeleteAll(ctx context.Context, keys []string) error {
	if err := s.gate.Enter(ctx, blob.OpDeleteAll, ""); err != nil {
		return notTried(keys, named(err))
	}
	defer s.gate.Leave()
	if err := blob.CheckDeleteAll(keys); err != nil {
		return named(err)
	}
	for i, key := range keys {
		if err := ctx.Err(); err != nil {
			return notTried(keys[i:], refuse(blob.OpDeleteAll, "", err))
		}
		_ = s.remove(key, blob.Condition{}) // without a condition nothing can refuse it
	}
	return nil
}

// notTried names each key with the reason why it was not tried. Without keys it is the reason.
func notTried(keys []string, reason error) error {
	if len(keys) == 0 {
		return reason
	}
	failed := make([]blob.KeyError, len(keys))
	for i, key := range keys {
		failed[i] = blob.KeyError{Key: key, Err: reason}
	}
	return &blob.DeleteError{Failed: failed}
}
