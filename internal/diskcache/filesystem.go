package diskcache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/wholeblob/wholeblob/blob"
)

// errForeign marks a name of ours that something else has: a directory, a FIFO.
var errForeign = errors.New("not a regular file")

// fileSystem is what the tier asks of the file system. Every call goes through an os.Root, so none reaches outside the directory,
// whatever symbolic links are put there.
type fileSystem struct {
	// fault is called before each operation; an error takes its place. A write that it fails writes half.
	fault func(op, name string) error
}

func (f fileSystem) check(op, name string) error {
	if f.fault == nil {
		return nil
	}
	if err := f.fault(op, name); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// openDir opens a directory in root; a symbolic link or anything else of that name is errForeign.
func (f fileSystem) openDir(root *os.Root, name string) (*os.Root, error) {
	if err := f.check("opendir", name); err != nil {
		return nil, err
	}
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "opendir", Path: name, Err: errForeign}
	}
	return root.OpenRoot(name)
}

func (f fileSystem) mkdir(root *os.Root, name string) error {
	if err := f.check("mkdir", name); err != nil {
		return err
	}
	err := root.Mkdir(name, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// create makes the file name with the given contents, and nothing of it stays if that fails and the file can be removed.
func (f fileSystem) create(root *os.Root, name string, sync bool, parts ...[]byte) (err error) {
	if err := f.check("create", name); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
		if err == nil {
			err = f.check("close", name)
		}
		if err != nil {
			_ = root.Remove(name)
		}
	}()
	for _, p := range parts {
		if err := f.check("write", name); err != nil {
			_, _ = file.Write(p[:len(p)/2]) // as a disk that becomes full does
			return err
		}
		if _, err := file.Write(p); err != nil {
			return err
		}
	}
	if !sync {
		return nil
	}
	if err := f.check("fsync", name); err != nil {
		return err
	}
	return file.Sync()
}

// open opens the regular file name for reading.
func (f fileSystem) open(root *os.Root, name string) (*os.File, os.FileInfo, error) {
	if err := f.check("open", name); err != nil {
		return nil, nil, err
	}
	file, err := root.OpenFile(name, os.O_RDONLY|openNoFollow, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errForeign}
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func (f fileSystem) rename(root *os.Root, from, to string) error {
	if err := f.check("rename", to); err != nil {
		return err
	}
	return root.Rename(from, to)
}

// remove removes a file. That there is none is no error. What cannot be removed because it is a directory is not ours.
func (f fileSystem) remove(root *os.Root, name string) error {
	if err := f.check("remove", name); err != nil {
		return err
	}
	err := root.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, statErr := root.Lstat(name); statErr == nil && info.IsDir() {
		return nil
	}
	return err
}

// names calls visit with each name in root.
func (f fileSystem) names(root *os.Root, visit func(name string) error) error {
	if err := f.check("readdir", root.Name()); err != nil {
		return err
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if err := visit(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (f fileSystem) lstat(root *os.Root, name string) (os.FileInfo, error) {
	if err := f.check("lstat", name); err != nil {
		return nil, err
	}
	return root.Lstat(name)
}

// syncDir makes the names in root durable.
func (f fileSystem) syncDir(root *os.Root) error {
	if err := f.check("fsync directory", root.Name()); err != nil {
		return err
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	err = dir.Sync()
	return errors.Join(err, dir.Close())
}

// readSmall reads a file of at most limit bytes.
func (f fileSystem) readSmall(root *os.Root, name string, limit int64) ([]byte, error) {
	file, info, err := f.open(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info.Size() > limit {
		return nil, fmt.Errorf("%w: %s has %d bytes", blob.ErrCorrupt, name, info.Size())
	}
	if err := f.check("read", name); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, limit))
}
