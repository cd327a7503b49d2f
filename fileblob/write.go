package fileblob

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// Set implements blob.Blob.
func (s *Store) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	if err := s.gate.Enter(ctx, blob.OpSet, key); err != nil {
		return blob.Info{}, named(err)
	}
	defer s.gate.Leave()
	o, err := blob.CheckSet(key, src, opts)
	if err != nil {
		return blob.Info{}, named(err)
	}
	if o.SHA256 {
		return blob.Info{}, fail(blob.OpSet, key, blob.NotApplied, fmt.Errorf("%w: SHA256", blob.ErrUnsupported))
	}
	if limit := s.opts.MaxObject; limit > 0 && src.Size() > limit {
		return blob.Info{}, fail(blob.OpSet, key, blob.NotApplied, s.tooLarge())
	}
	h := &header{
		key:         key,
		version:     blob.NewToken(),
		modTime:     time.Unix(0, s.opts.Now().UnixNano()),
		contentType: o.ContentType,
		metadata:    maps.Clone(o.Metadata),
	}
	// A name of its own, not the version: a temporary file that could not be removed must not be taken for an attempt.
	name := blob.NewToken()
	guard, err := s.stage(ctx, name, src, h)
	if err != nil {
		return blob.Info{}, fail(blob.OpSet, key, blob.NotApplied, err)
	}
	defer func() { _ = guard.Close() }()
	outcome, err := s.publish(ctx, staged{dir: s.temp, name: name, key: key, version: h.version}, o.If)
	if err != nil {
		// Also when nobody knows whether it was renamed: if so the name is gone, if not nothing may rename it any more.
		s.discard(name)
		return blob.Info{}, fail(blob.OpSet, key, outcome, err)
	}
	return h.info(), nil
}

func (s *Store) tooLarge() error {
	return fmt.Errorf("%w: more than %d bytes", blob.ErrTooLarge, s.opts.MaxObject)
}

// stage writes the temporary file, complete and durable. It returns a guard that holds the file's lock: as long as it is
// open, no sweep takes the file for a leftover. The guard is an open file of its own, so that the writer's can be closed,
// and an error that only close reports be seen, before the file gets its name.
func (s *Store) stage(ctx context.Context, name string, src blob.Source, h *header) (guard file, err error) {
	f, err := s.temp.Create(name)
	if err != nil {
		s.discard(name) // a network file system may have made it
		return nil, err
	}
	defer func() {
		if f != nil {
			_ = f.Close() // an earlier step has failed
		}
		if err != nil {
			if guard != nil {
				_ = guard.Close()
			}
			guard = nil
			s.discard(name)
		}
	}()
	if guard, err = s.temp.OpenLock(name, false); err != nil {
		return nil, err
	}
	free, err := guard.TryLock()
	if err == nil && !free {
		err = fmt.Errorf("%w: the new file %s is locked", blob.ErrConflict, name)
	}
	if err != nil {
		return guard, err
	}
	if err := s.fill(ctx, f, src, h); err != nil {
		return guard, err
	}
	if !s.opts.NoSync {
		if err := f.Sync(); err != nil {
			return guard, err
		}
	}
	err, f = f.Close(), nil
	return guard, err
}

// fill writes payload and header. The header comes last, since only the end of the source tells its size.
func (s *Store) fill(ctx context.Context, f file, src blob.Source, h *header) error {
	if _, err := h.encode(); err != nil { // its length is known before the size is
		return err
	}
	size, err := s.copySource(ctx, io.NewOffsetWriter(f, h.length), src)
	if err != nil {
		return err
	}
	h.size = size
	head, err := h.encode()
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(head, 0); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if want := h.length + h.size; info.Size() != want {
		return fmt.Errorf("%w: the file has %d bytes after %d were written", blob.ErrCorrupt, info.Size(), want)
	}
	return nil
}

// copySource writes the whole source to w and returns its length.
func (s *Store) copySource(ctx context.Context, w io.Writer, src blob.Source) (int64, error) {
	if _, ok := src.Section(0, 0).(*bytes.Reader); ok {
		return copyBytes(ctx, w, src)
	}
	r := src.Reader()
	if r == nil { // another Set took the Stream since it was checked
		return 0, fmt.Errorf("%w: a Stream serves one Set and this one has been used", blob.ErrInvalidOption)
	}
	buf := make([]byte, bufferSize(src.Size()))
	for size := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return size, err
		}
		n, err := r.Read(buf)
		size += int64(n)
		if limit := s.opts.MaxObject; limit > 0 && size > limit {
			return size, s.tooLarge()
		}
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return size, err
			}
		}
		if err == io.EOF { // io.EOF itself: a source that fails with an error around it has failed
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}

// copyBytes writes a source that is in memory, without copying it.
func copyBytes(ctx context.Context, w io.Writer, src blob.Source) (int64, error) {
	for off := int64(0); off < src.Size(); off += step {
		if err := ctx.Err(); err != nil {
			return off, err
		}
		n := min(step, src.Size()-off)
		if _, err := src.Section(off, n).(*bytes.Reader).WriteTo(w); err != nil {
			return off, err
		}
	}
	return src.Size(), nil
}

// bufferSize is how much of a source is read at once: 256 KiB, less for a small one.
func bufferSize(size int64) int64 {
	const most, least = 256 << 10, 512
	if size < 0 {
		return most
	}
	return min(max(size+1, least), most)
}

// staged is a complete file on its way to the place of its key.
type staged struct {
	dir     directory
	name    string
	key     string
	version string
}

// maxPruned bounds how often a Set makes its directories anew because concurrent deletes pruned them while they were
// empty. Each turn means that another operation got through.
const maxPruned = 1000

// publish gives the file its place, if cond holds, and makes that durable.
func (s *Store) publish(ctx context.Context, from staged, cond blob.Condition) (blob.Outcome, error) {
	c, outcome, err := s.lockAndRename(ctx, from, cond)
	defer c.close()
	if err != nil {
		return outcome, err
	}
	// The lock is free again: nobody needs to wait for a disk. Whoever sees the object before it is durable and builds on it
	// in the same directory makes both durable with the same fsync.
	if err := s.makeDurable(c); err != nil {
		return blob.Unknown, err
	}
	return 0, nil
}

// lockAndRename decides cond and renames under the lock of the key. It returns the directories that lead there, to be closed.
func (s *Store) lockAndRename(ctx context.Context, from staged, cond blob.Condition) (*chain, blob.Outcome, error) {
	unlock, err := s.locks.lock(ctx, from.key)
	if err != nil {
		return s.noChain(), blob.NotApplied, err
	}
	defer unlock()
	if err := ctx.Err(); err != nil {
		return s.noChain(), blob.NotApplied, err
	}
	return s.rename(from, cond)
}

// rename is lockAndRename for a caller that has the lock.
func (s *Store) rename(from staged, cond blob.Condition) (*chain, blob.Outcome, error) {
	at := locate(from.key)
	for try := 1; ; try++ {
		c, outcome, err := s.renameOnce(from, at, cond)
		if err == nil || !isNotExist(err) || try == maxPruned {
			return c, outcome, err
		}
		c.close()
	}
}

// renameOnce is one try. It fails with fs.ErrNotExist, and has done nothing, if a directory was pruned meanwhile.
func (s *Store) renameOnce(from staged, at location, cond blob.Condition) (*chain, blob.Outcome, error) {
	c, err := s.walk(at.dirs)
	missing := isNotExist(err)
	if err != nil && !missing {
		return c, blob.NotApplied, err
	}
	if err := s.check(c, at, from.key, cond, missing); err != nil {
		return c, blob.NotApplied, err
	}
	if missing {
		if err := c.extend(at.dirs); err != nil {
			s.prune(c)
			return c, blob.NotApplied, err
		}
	}
	err = from.dir.Rename(from.name, c.last(), at.name)
	if err == nil {
		return c, 0, nil
	}
	outcome := blob.NotApplied
	if !decided(err) {
		outcome, err = s.readBack(c, at, from, err)
	}
	if outcome == blob.NotApplied {
		s.prune(c)
	}
	return c, outcome, err
}

// readBack finds out what a rename with a doubtful error did. Nobody else changes the key: the caller has its lock.
func (s *Store) readBack(c *chain, at location, from staged, cause error) (blob.Outcome, error) {
	o, err := s.openKey(c.last(), at.name, from.key)
	switch {
	case isAbsent(err):
		return blob.NotApplied, cause
	case err != nil:
		return blob.Unknown, cause
	}
	defer s.closeObject(o)
	if o.version == from.version {
		return 0, nil
	}
	return blob.NotApplied, cause
}

// check decides cond against what is in the place of key now.
func (s *Store) check(c *chain, at location, key string, cond blob.Condition, missing bool) error {
	if cond.IsZero() {
		return nil
	}
	var current *object
	if !missing {
		o, err := s.openKey(c.last(), at.name, key)
		if err != nil && !isAbsent(err) {
			return err // damaged: neither there nor not
		}
		if err == nil {
			defer s.closeObject(o)
			current = o
		}
	}
	if cond.Absent() && current != nil {
		return blob.ErrExists
	}
	v, ok := cond.Version()
	switch {
	case !ok:
		return nil
	case current == nil:
		return fmt.Errorf("%w: the key does not exist", blob.ErrPrecondition)
	case current.version != v:
		return preconditionOf(current.version, v)
	}
	return nil
}
