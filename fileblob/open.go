package fileblob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// Names in the root that are ours and no keys: no escaped name begins with a dot.
const (
	hiddenDir = ".wholeblob"
	tempDir   = "tmp"
	lockDir   = "locks"
	trashDir  = "trash"

	// markName is written last when a store is made: where it is, all else has been.
	markName = "layout"
	markText = "wholeblob file store, layout 1\n"
)

// New opens the store in the directory dir, and removes what crashed writers left behind in it.
func New(ctx context.Context, dir string, opts *Options) (*Store, error) {
	o, err := checkOptions(dir, opts)
	if err != nil {
		return nil, fail(blob.OpOpen, "", blob.NotApplied, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fail(blob.OpOpen, "", blob.NotApplied, err)
	}
	if o.Create {
		if err := makeRoot(dir, o.NoSync); err != nil {
			return nil, fail(blob.OpOpen, "", blob.NotApplied, err)
		}
	}
	root, err := openRoot(dir)
	if isAbsent(err) {
		err = fmt.Errorf("%w: %w", blob.ErrNoContainer, err)
	}
	if err != nil {
		return nil, fail(blob.OpOpen, "", blob.NotApplied, err)
	}
	return newStore(ctx, root, o)
}

func checkOptions(dir string, opts *Options) (o Options, err error) {
	if opts != nil {
		o = *opts
	}
	switch {
	case dir == "":
		err = fmt.Errorf("%w: empty directory", blob.ErrInvalidOption)
	case o.MaxGet < 0:
		err = fmt.Errorf("%w: MaxGet is negative: %d", blob.ErrInvalidOption, o.MaxGet)
	case o.MaxObject < 0:
		err = fmt.Errorf("%w: MaxObject is negative: %d", blob.ErrInvalidOption, o.MaxObject)
	case o.TempAge < 0:
		err = fmt.Errorf("%w: TempAge is negative: %v", blob.ErrInvalidOption, o.TempAge)
	}
	if o.MaxGet == 0 {
		o.MaxGet = blob.DefaultMaxGet
	}
	if o.TempAge == 0 {
		o.TempAge = DefaultTempAge
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, err
}

// newStore opens the store in root, which it owns from now on.
func newStore(ctx context.Context, root directory, o Options) (*Store, error) {
	s := &Store{opts: o, root: root, listBudget: listBudget}
	s.headers.New = func() any { return new([maxHeader]byte) }
	err := s.open(ctx)
	if err != nil {
		s.release()
		return nil, fail(blob.OpOpen, "", blob.NotApplied, err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	hidden, err := s.root.Dir(hiddenDir)
	if isNotExist(err) && s.opts.Create {
		hidden, err = subdir(s.root, hiddenDir)
	}
	if isAbsent(err) {
		return fmt.Errorf("%w: no store there: %w", blob.ErrNoContainer, err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = hidden.Close() }()
	marked, err := checkMark(hidden)
	if err != nil {
		return err
	}
	if !marked && !s.opts.Create {
		return fmt.Errorf("%w: no store there", blob.ErrNoContainer)
	}
	if s.temp, err = subdir(hidden, tempDir); err != nil {
		return err
	}
	if s.trash, err = subdir(hidden, trashDir); err != nil {
		return err
	}
	if s.locks.dir, err = subdir(hidden, lockDir); err != nil {
		return err
	}
	if !marked {
		if err := s.writeMark(hidden); err != nil {
			return err
		}
	}
	return s.sweep(ctx)
}

// subdir opens a directory that may have to be made. Another process may make it at the same time.
func subdir(in directory, name string) (directory, error) {
	if err := in.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return in.Dir(name)
}

// checkMark reports whether the store has been made, and refuses one that a later program made.
func checkMark(hidden directory) (bool, error) {
	f, err := hidden.Open(markName)
	if isAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, len(markText)+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if string(b[:n]) != markText {
		return false, fmt.Errorf("%w: layout %q", blob.ErrUnsupported, b[:n])
	}
	return true, nil
}

// writeMark makes the store one. Processes that do it at the same time write the same.
func (s *Store) writeMark(hidden directory) error {
	name := blob.NewToken()
	f, err := s.temp.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(markText), 0)
	if err == nil && !s.opts.NoSync {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = s.temp.Rename(name, hidden, markName)
	}
	if err != nil {
		_ = s.temp.Remove(name)
		return err
	}
	if err := s.sync(hidden); err != nil {
		return err
	}
	return s.sync(s.root)
}

// makeRoot makes the directory and those above it, each durable in the one above.
func makeRoot(dir string, noSync bool) error {
	err := os.Mkdir(dir, 0o777)
	parent := filepath.Dir(filepath.Clean(dir))
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && parent != dir:
		if err := makeRoot(parent, noSync); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	case err != nil:
		return err
	}
	if noSync {
		return nil
	}
	d, err := os.Open(parent)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}
