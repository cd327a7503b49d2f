package memblob

import (
	"context"

	"github.com/wholeblob/wholeblob/blob"
)

// Restore implements blob.Blob. The object comes back as it was, with the version it had.
func (s *Store) Restore(ctx context.Context, key string) (blob.Info, error) {
	if err := s.gate.Enter(ctx, blob.OpRestore, key); err != nil {
		return blob.Info{}, named(err)
	}
	defer s.gate.Leave()
	if err := blob.CheckName(blob.OpRestore, key); err != nil {
		return blob.Info{}, named(err)
	}
	obj, err := s.undelete(key)
	if err != nil {
		return blob.Info{}, refuse(blob.OpRestore, key, err)
	}
	return obj.copyInfo(), nil
}

func (s *Store) undelete(key string) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if obj := s.mu.objects[key]; obj != nil {
		return obj, nil
	}
	if !s.opts.Restore {
		return nil, blob.ErrUnsupported
	}
	obj := s.mu.deleted[key]
	if obj == nil {
		return nil, blob.ErrNotFound
	}
	s.putLocked(obj)
	return obj, nil
}
