//go:build !(linux || darwin)

package diskcache

import (
	"errors"
	"os"
)

const (
	supported = false // needs flock(2) and files that can be removed while they are open

	openNoFollow = 0
)

func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
func tooManyFiles(error) bool        { return false }
func bootID() string                 { return "" }

func readVector(f *os.File, bufs [][]byte, off int64) (int, error) { return readEach(f, bufs, off) }
