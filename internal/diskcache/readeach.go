//go:build !linux

package diskcache

import "os"

// readEach is readVector where there is no such call.
func readEach(f *os.File, bufs [][]byte, off int64) (n int, err error) {
	for _, b := range bufs {
		k, err := f.ReadAt(b, off+int64(n))
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
