package diskcache

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// bootID tells one run of the kernel from another (proc(5), /proc/sys/kernel/random/boot_id); empty: unknown.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// readVector fills bufs from off on by one call. The caller keeps f open.
func readVector(f *os.File, bufs [][]byte, off int64) (int, error) {
	return unix.Preadv(int(f.Fd()), bufs, off)
}
