package fileblob

import (
	"context"
	"errors"
	"io/fs"
)

// sweep removes the temporary files of writers that died: not written to for TempAge, and locked by nobody. The
// lock ends with the process that holds it, however it ends, so a file that is locked belongs to a writer that lives,
// in this process or another, even if it has been waiting for its source for days.
func (s *Store) sweep(ctx context.Context) error {
	var names []string
	if err := s.temp.Names(func(name string) bool {
		names = append(names, name)
		return true
	}); err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		// What another user of the root left behind is theirs to sweep.
		if err := s.sweepOne(name); err != nil && !isAbsent(err) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func (s *Store) sweepOne(name string) error {
	f, err := s.temp.OpenLock(name, false)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // gives the lock back
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || s.opts.Now().Sub(info.ModTime()) < s.opts.TempAge {
		return nil
	}
	free, err := f.TryLock()
	if err != nil || !free {
		return err
	}
	return s.temp.Remove(name)
}
