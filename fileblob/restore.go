package fileblob

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
	info, outcome, err := s.restore(ctx, key)
	if err != nil {
		return blob.Info{}, fail(blob.OpRestore, key, outcome, err)
	}
	return info, nil
}

func (s *Store) restore(ctx context.Context, key string) (blob.Info, blob.Outcome, error) {
	info, c, outcome, err := s.undelete(ctx, key)
	defer c.close()
	if err != nil {
		return blob.Info{}, outcome, err
	}
	// Also for an object that was found there: another Restore may have brought it back and not yet have synced it.
	if err := s.makeDurable(c); err != nil {
		return blob.Info{}, blob.Unknown, err
	}
	if err := s.sync(s.trash); err != nil {
		return blob.Info{}, blob.Unknown, err
	}
	return info, 0, nil
}

// undelete looks and renames under the lock of the key, so that what it moves is what it looked at. It returns the
// directories that lead to the object, to be closed.
func (s *Store) undelete(ctx context.Context, key string) (blob.Info, *chain, blob.Outcome, error) {
	unlock, err := s.locks.lock(ctx, key)
	if err != nil {
		return blob.Info{}, s.noChain(), blob.NotApplied, err
	}
	defer unlock()
	at := locate(key)
	c, err := s.walk(at.dirs)
	if err == nil {
		var there *object
		if there, err = s.openKey(c.last(), at.name, key); err == nil {
			defer s.closeObject(there)
			return there.info(), c, 0, nil
		}
	}
	if !isAbsent(err) {
		return blob.Info{}, c, blob.NotApplied, err
	}
	if !s.opts.Restore {
		return blob.Info{}, c, blob.NotApplied, blob.ErrUnsupported
	}
	c.close()
	kept, err := s.openKey(s.trash, trashName(key), key)
	if isAbsent(err) {
		err = blob.ErrNotFound
	}
	if err != nil {
		return blob.Info{}, s.noChain(), blob.NotApplied, err
	}
	defer s.closeObject(kept)
	from := staged{dir: s.trash, name: trashName(key), key: key, version: kept.version}
	c, outcome, err := s.rename(from, blob.Condition{})
	return kept.info(), c, outcome, err
}
