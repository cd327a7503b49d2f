package diskcache

import (
	"os"

	"golang.org/x/sys/unix"
)

// bootID tells one run of the kernel from another; empty: unknown.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

func readVector(f *os.File, bufs [][]byte, off int64) (int, error) { return readEach(f, bufs, off) }
