package diskcache

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

const (
	lockName = "lock"

	maxLockText = 64
)

// lockDir takes the directory for this process. flock(2) goes with the open file: it ends with the process, however that ends, and
// excludes a second open in this process too.
//
// The error when someone else has it is blob.ErrConflict: the owner may be about to stop, as when a database is restarted.
func lockDir(f fileSystem, root *os.Root, dir string) (*os.File, error) {
	if err := f.check("lock", lockName); err != nil {
		return nil, err
	}
	file, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE|openNoFollow, 0o666)
	if err != nil {
		return nil, err
	}
	ok, err := tryLock(file)
	if err == nil && !ok {
		err = fmt.Errorf("%w: the cache directory %s is in use by %s", blob.ErrConflict, dir, lockOwner(file))
	}
	if err == nil {
		// Only for the message above: a pid that cannot be written, on a full disk, takes nothing from the lock.
		if file.Truncate(0) == nil {
			_, _ = file.WriteAt([]byte("pid "+strconv.Itoa(os.Getpid())+"\n"), 0)
		}
		return file, nil
	}
	return nil, errors.Join(err, file.Close())
}

// lockOwner says who has the lock, as far as the file tells.
func lockOwner(file *os.File) string {
	b := make([]byte, maxLockText)
	n, _ := file.ReadAt(b, 0)
	text := strings.TrimSpace(string(b[:n]))
	pid, ok := strings.CutPrefix(text, "pid ")
	if _, err := strconv.Atoi(pid); !ok || err != nil {
		return "another process"
	}
	if pid == strconv.Itoa(os.Getpid()) {
		return "this process (pid " + pid + ")"
	}
	return "the process with pid " + pid
}
