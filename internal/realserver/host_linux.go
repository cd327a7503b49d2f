package realserver

import (
	"os"
	"syscall"
)

// dieWithParent makes the kernel kill the server when this process dies in a
// way that runs no clean-up: a kill, a panic, the -timeout of go test.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// hasUserXattrs says whether files in dir can have extended attributes of the
// user namespace, by trying: it depends on the file system and its mount.
func hasUserXattrs(dir string) bool {
	f, err := os.CreateTemp(dir, "xattr-")
	if err != nil {
		return false
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	return syscall.Setxattr(f.Name(), "user.wholeblob", []byte("1"), 0) == nil
}
