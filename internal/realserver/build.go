package realserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// modulePath is the module whose folder holds the nested modules.
const modulePath = "github.com/wholeblob/wholeblob"

// goProgram is a server that is built from a nested module.
type goProgram struct {
	name string // of the server, of its folder beside this file and of the binary
	pkg  string // import path of the main package that the tool directive names
}

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

// binary returns the path of the built program, which it builds first when it
// is not in the cache and mayBuild is true. Its error is a *MissingError when
// the program is not to be had.
func (g goProgram) binary(ctx context.Context, mayBuild bool) (string, error) {
	module, err := moduleDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(module, "internal", "realserver", g.name)
	key, err := buildKey(dir)
	if err != nil {
		return "", err
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, g.name+"-"+key, g.name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if exists(path) {
		return path, nil
	}
	if !mayBuild {
		return "", &MissingError{Server: g.name}
	}
	if err := publish(ctx, path, func(tmp string) error { return g.build(ctx, dir, tmp) }); err != nil {
		return "", &MissingError{Server: g.name, Err: err}
	}
	return path, nil
}

// build compiles the program for this machine, whatever the flags and the
// target of the tests that want it.
func (g goProgram) build(ctx context.Context, dir, out string) error {
	fmt.Fprintf(os.Stderr, "realserver: building %s (once; minutes on a cold cache)\n", g.name)
	args := []string{"go", "build", "-C", dir, "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, g.pkg}
	if nice, err := exec.LookPath("nice"); err == nil {
		args = append([]string{nice}, args...) // other packages' tests run meanwhile, some of them against the clock
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build %s: %w\n%s", g.pkg, err, lastLines(output, 20))
	}
	return nil
}

// buildKey names a build: everything that decides which binary comes out.
func buildKey(dir string) (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintln(sum, name, len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// builtVersion reads from a binary the version of the module it was built
// from, so that what the tests report is what ran, not what was asked for.
func builtVersion(path string) (string, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", err
	}
	return info.Main.Version, nil
}

// publish makes path exist by calling create, at most once at a time on this
// machine: the test binaries of several packages start together and want the
// same server. create writes to a temporary path in the same folder, which is
// renamed, so a half-written binary is never seen under its name.
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
	defer func() { _ = os.Remove(tmp) }()
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
