package fileblob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

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
	at := locate(key)
	if outcome, err := s.unlink(ctx, key, at, o.If); err != nil {
		return fail(blob.OpDelete, key, outcome, err)
	}
	if err := s.settle(at.dirs); err != nil {
		return fail(blob.OpDelete, key, blob.Unknown, err)
	}
	return nil
}

// DeleteAll implements blob.Blob. Keys are removed one by one, each atomically, and each directory is synced once for all keys
// in it. A cancel stops between two keys.
func (s *Store) DeleteAll(ctx context.Context, keys []string) error {
	if err := s.gate.Enter(ctx, blob.OpDeleteAll, ""); err != nil {
		err = named(err)
		if len(keys) == 0 {
			return err
		}
		var d blob.DeleteError
		for _, key := range keys {
			d.Failed = append(d.Failed, blob.KeyError{Key: key, Err: err})
		}
		return &d
	}
	defer s.gate.Leave()
	if err := blob.CheckDeleteAll(keys); err != nil {
		return named(err)
	}
	var d blob.DeleteError
	add := func(key string, outcome blob.Outcome, err error) {
		d.Failed = append(d.Failed, blob.KeyError{Key: key, Err: fail(blob.OpDeleteAll, key, outcome, err)})
	}
	unsettled := make(map[string][]string) // keys by their directory
	for _, key := range keys {
		at := locate(key)
		outcome, err := blob.NotApplied, ctx.Err()
		if err == nil {
			outcome, err = s.unlink(ctx, key, at, blob.Condition{})
		}
		if err != nil {
			add(key, outcome, err)
			continue
		}
		dir := strings.Join(at.dirs, "/")
		unsettled[dir] = append(unsettled[dir], key)
	}
	for _, gone := range unsettled {
		if err := s.settle(locate(gone[0]).dirs); err != nil {
			for _, key := range gone {
				add(key, blob.Unknown, err)
			}
		}
	}
	if len(d.Failed) > 0 {
		return &d
	}
	return nil
}

// unlink takes the object of key away, if cond holds, under the lock of the key.
func (s *Store) unlink(ctx context.Context, key string, at location, cond blob.Condition) (blob.Outcome, error) {
	unlock, err := s.locks.lock(ctx, key)
	if err != nil {
		return blob.NotApplied, err
	}
	defer unlock()
	c, err := s.walk(at.dirs)
	defer c.close()
	if err == nil {
		err = s.checkDelete(c.last(), key, at, cond)
	}
	if isAbsent(err) {
		return 0, nil
	}
	if err != nil {
		return blob.NotApplied, err
	}
	if s.opts.Restore {
		// The object is there, under the lock: a name that does not exist is the trash directory, and nothing was deleted.
		err = c.last().Rename(at.name, s.trash, trashName(key))
	} else if err = c.last().Remove(at.name); isNotExist(err) {
		err = nil
	}
	switch {
	case err == nil:
		return 0, nil
	case decided(err):
		return blob.NotApplied, err
	}
	return blob.Unknown, err
}

// checkDelete decides cond, and that the file is one of ours: anything else is no key and stays. A damaged object can be
// deleted, but not on a condition that nobody can decide.
func (s *Store) checkDelete(d directory, key string, at location, cond blob.Condition) error {
	o, err := s.openKey(d, at.name, key)
	damaged := errors.Is(err, blob.ErrCorrupt) || errors.Is(err, blob.ErrTruncated)
	if damaged && cond.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.closeObject(o)
	if v, ok := cond.Version(); ok && v != o.version {
		return preconditionOf(o.version, v)
	}
	return nil
}

// settle makes deletes in a directory durable, and removes it and those above it that are empty. It does so for keys that were already
// gone, too: another delete may have taken one away and not yet have synced it. A directory that is gone was pruned by such a delete; then
// the next one above tells.
func (s *Store) settle(dirs []string) error {
	if s.opts.Restore {
		if err := s.sync(s.trash); err != nil {
			return err
		}
	}
	c, err := s.walk(dirs)
	defer c.close()
	if err != nil && !isAbsent(err) {
		return err
	}
	if err := s.sync(c.last()); err != nil {
		return err
	}
	if top := s.prune(c); top != nil {
		return s.sync(top)
	}
	return nil
}

// prune removes the last directory of the chain if it is empty, and those above that become so. It returns the one from
// which the topmost was removed, nil if none was. An empty directory that stays is seen by nobody, so no error of it matters.
func (s *Store) prune(c *chain) (top directory) {
	for i := len(c.names) - 1; i >= 0; i-- {
		if err := c.dirs[i].Rmdir(c.names[i]); err != nil {
			break
		}
		top = c.dirs[i]
	}
	return top
}

// trashName is the name of key's newest deleted object in the trash directory.
func trashName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
