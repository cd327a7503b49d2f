package realserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// program is the software of a server: pinned by files of the folder of its
// name beside this one, made from them once, and kept in the cache.
type program struct {
	name  string   // of the server, of the folder that pins it, and of what is made
	suits string   // whatever else decides what is made, such as the version of a compiler
	pins  []string // its files there
	needs string   // what making it takes, for whoever lacks it
	// runs fails where this machine cannot run the program even once it is made. nil: it can.
	runs func() error
	// make makes the program at out from the pins in the folder from.
	make func(ctx context.Context, from, out string) error
	// version reads the version from what was made, so that what the tests report is what ran, not what was asked for.
	version func(path string) (string, error)
}

// obtain returns where the program is, after making it when it is not in the
// cache and mayBuild is true. Its error is a *MissingError when the program is
// not to be had.
func (p program) obtain(ctx context.Context, mayBuild bool) (string, error) {
	module, err := moduleDir()
	if err != nil {
		return "", err
	}
	from := filepath.Join(module, "internal", "realserver", p.name)
	key, err := p.key(from)
	if err != nil {
		return "", err
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	if p.runs != nil {
		if err := p.runs(); err != nil {
			return "", &MissingError{Server: p.name, Needs: p.needs, Err: err}
		}
	}
	path := filepath.Join(cache, p.name+"-"+key, p.name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if exists(path) {
		return path, nil
	}
	if !mayBuild {
		return "", &MissingError{Server: p.name, Needs: p.needs}
	}
	fmt.Fprintf(os.Stderr, "realserver: building %s (once; minutes on a cold cache)\n", p.name)
	if err := publish(ctx, path, func(tmp string) error { return p.make(ctx, from, tmp) }); err != nil {
		return "", &MissingError{Server: p.name, Needs: p.needs, Err: err}
	}
	return path, nil
}

// key names what is made by everything that decides it.
func (p program) key(from string) (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, p.suits, runtime.GOOS, runtime.GOARCH)
	for _, name := range p.pins {
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintln(sum, name, len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// making is a command that makes a program. It is nice: other packages' tests
// run meanwhile, some of them against the clock.
func making(ctx context.Context, env []string, args ...string) error {
	what := args[0] + " " + args[1]
	if nice, err := exec.LookPath("nice"); err == nil {
		args = append([]string{nice}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", what, err, lastLines(output, 20))
	}
	return nil
}
