//go:build linux || darwin

package diskcache

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	supported = true

	openNoFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK // a FIFO of that name must not block the open
)

func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// tooManyFiles reports an error that says nothing about the file it was about.
func tooManyFiles(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}
