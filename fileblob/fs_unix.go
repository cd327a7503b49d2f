//go:build linux || darwin

package fileblob

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	dirMode  = 0o777 // before umask
	fileMode = 0o666

	dirFlags  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	readFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK // a foreign FIFO must not block the open
)

type unixDir struct{ f *os.File }

// openRoot opens the root, where symbolic links are followed as everywhere: the path is the operator's.
func openRoot(path string) (directory, error) {
	fd, err := again(func() (int, error) {
		return unix.Open(path, dirFlags&^unix.O_NOFOLLOW, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return unixDir{os.NewFile(uintptr(fd), path)}, nil
}

// again repeats a call that a signal interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func (d unixDir) fd() int                 { return int(d.f.Fd()) }
func (d unixDir) path(name string) string { return filepath.Join(d.f.Name(), name) }

func (d unixDir) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: d.path(name), Err: err}
}

func (d unixDir) open(op, name string, flags int, mode uint32) (*os.File, error) {
	fd, err := again(func() (int, error) { return unix.Openat(d.fd(), name, flags, mode) })
	if err != nil {
		return nil, d.fail(op, name, err)
	}
	return os.NewFile(uintptr(fd), d.path(name)), nil
}

func (d unixDir) Dir(name string) (directory, error) {
	f, err := d.open("open directory", name, dirFlags, 0)
	if err != nil {
		return nil, err
	}
	return unixDir{f}, nil
}

func (d unixDir) Mkdir(name string) error {
	_, err := again(func() (int, error) { return 0, unix.Mkdirat(d.fd(), name, dirMode) })
	return d.fail("mkdir", name, err)
}

func (d unixDir) Rmdir(name string) error {
	_, err := again(func() (int, error) { return 0, unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR) })
	return d.fail("rmdir", name, err)
}

func (d unixDir) Open(name string) (file, error) {
	f, err := d.open("open", name, readFlags, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = d.fail("open", name, errForeign)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return unixFile{f}, nil
}

func (d unixDir) Create(name string) (file, error) {
	f, err := d.open("create", name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, fileMode)
	if err != nil {
		return nil, err
	}
	return unixFile{f}, nil
}

func (d unixDir) OpenLock(name string, create bool) (file, error) {
	flags := unix.O_RDWR | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	if create {
		flags |= unix.O_CREAT
	}
	f, err := d.open("open lock", name, flags, fileMode)
	if err != nil {
		return nil, err
	}
	return unixFile{f}, nil
}

func (d unixDir) Rename(name string, to directory, as string) error {
	dst := to.(unixDir)
	_, err := again(func() (int, error) { return 0, unix.Renameat(d.fd(), name, dst.fd(), as) })
	if err != nil {
		return &os.LinkError{Op: "rename", Old: d.path(name), New: dst.path(as), Err: err}
	}
	return nil
}

func (d unixDir) Remove(name string) error {
	_, err := again(func() (int, error) { return 0, unix.Unlinkat(d.fd(), name, 0) })
	return d.fail("remove", name, err)
}

func (d unixDir) Names(visit func(name string) bool) error {
	if _, err := d.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for {
		names, err := d.f.Readdirnames(1024)
		for _, name := range names {
			if !visit(name) {
				return nil
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

func (d unixDir) Sync() error                { return d.f.Sync() }
func (d unixDir) Stat() (os.FileInfo, error) { return d.f.Stat() }
func (d unixDir) Close() error               { return d.f.Close() }

// linked reports whether the directory that info describes still has a name.
func linked(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 0
}

type unixFile struct{ *os.File }

func (f unixFile) TryLock() (bool, error) {
	_, err := again(func() (int, error) { return 0, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return true, nil
}

func (f unixFile) Unlock() error {
	_, err := again(func() (int, error) { return 0, unix.Flock(int(f.Fd()), unix.LOCK_UN) })
	if err != nil {
		return &fs.PathError{Op: "funlock", Path: f.Name(), Err: err}
	}
	return nil
}
