//go:build !(linux || darwin)

package fileblob

import (
	"fmt"
	"os"
	"runtime"

	"github.com/wholeblob/wholeblob/blob"
)

// openRoot refuses: conditions across processes need flock(2), durability needs fsync of directories.
func openRoot(string) (directory, error) {
	return nil, fmt.Errorf("%w: fileblob on %s", blob.ErrUnsupported, runtime.GOOS)
}

func linked(os.FileInfo) bool { return false }
