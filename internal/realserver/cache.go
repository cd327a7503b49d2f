package realserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// modulePath is the module whose folder holds the folders that pin the servers.
const modulePath = "github.com/wholeblob/wholeblob"

// CacheDir is the folder that keeps built servers from one run to the next:
// $WHOLEBLOB_TEST_CACHE, else "wholeblob" in the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("WHOLEBLOB_TEST_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "wholeblob"), nil
}

// publish makes path exist by calling create, at most once at a time on this
// machine: the test binaries of several packages start together and want the
// same server. create writes a file or a folder to a temporary path beside it,
// which is renamed, so a half-written one is never seen under its name.
func publish(ctx context.Context, path string, create func(tmp string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	unlock, err := lockFile(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if exists(path) {
		return nil // built by the holder of the lock that we waited for
	}
	tmp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := create(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// moduleDir finds the folder of the library's module from the working
// directory, which go test sets to the folder of the package under test.
func moduleDir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("realserver: %s is not inside the source of %s", start, modulePath)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
