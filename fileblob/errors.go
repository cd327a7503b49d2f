package fileblob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/wholeblob/wholeblob/blob"
)

// named completes an error made by package blob or the gate, which do not know the store.
func named(err error) error { return blob.Named(storeName, err) }

// fail makes the error of an operation. What neither package blob nor a context nor the source explains is the file system's.
func fail(op, key string, outcome blob.Outcome, err error) error {
	e := blob.Fail(op, storeName, key, outcome, err)
	var src *blob.SourceError
	if e.Kind == nil && !errors.As(err, &src) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		e.Kind = kindOf(err)
	}
	return e
}

// kindOf classifies an error of the file system.
func kindOf(err error) error {
	switch {
	case isRefusal(err):
		return blob.ErrPermission
	case errors.Is(err, syscall.EFBIG): // the file system's limit, or the process's
		return blob.ErrTooLarge
	}
	return blob.ErrUnavailable
}

// isRefusal reports errors that no later attempt will cure: rights, a read-only file system, or something that fileblob did not make
// where it needs a directory or a file.
func isRefusal(err error) bool {
	return anyOf(err, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.EXDEV)
}

// decided reports whether a rename or unlink that failed with err certainly did nothing. Others, such as EIO or a
// network file system's time-out, may come after the change.
func decided(err error) bool {
	return isRefusal(err) || isNotExist(err) || anyOf(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EBUSY, syscall.EMLINK,
		syscall.ENOTEMPTY, syscall.EEXIST, syscall.ENAMETOOLONG, syscall.EINVAL)
}

func anyOf(err error, list ...syscall.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// isNotExist reports that a name or the directory it was looked up in is gone.
func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// isAbsent reports that fileblob has nothing under a name: no file, or one of someone else.
func isAbsent(err error) bool {
	return isNotExist(err) || errors.Is(err, errForeign) || anyOf(err, syscall.ENOTDIR, syscall.ELOOP)
}

// damagedError names the key in a listing whose file cannot be read.
type damagedError struct {
	key string
	err error
}

func (e *damagedError) Error() string { return fmt.Sprintf("key %q: %v", e.key, e.err) }
func (e *damagedError) Unwrap() error { return e.err }

// preconditionOf is the refusal of IfVersion(want) on an object of another version.
func preconditionOf(have, want string) error {
	return fmt.Errorf("%w: the version is %q, not %q", blob.ErrPrecondition, have, want)
}
