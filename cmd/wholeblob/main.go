// Command wholeblob measures and checks a blob store through the library's own client.
//
//	wholeblob bench [flags] [URL]
//	wholeblob help
//	wholeblob version
//
// It exits with 0 when everything succeeded, with 1 when an operation failed, the store gave wrong bytes,
// or the run was interrupted, and with 2 when the arguments are wrong, before it touches any store.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/wholeblob/wholeblob/blob"
)

const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
)

const usage = `wholeblob measures and checks a blob store through the library's own client.

  wholeblob bench [flags] [URL]   set, list, get in random order and delete objects; every read is verified
  wholeblob help                  this text
  wholeblob version               the version of the library and of Go

"wholeblob bench --help" lists the flags and the URLs.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the first signal starts the clean-up, the second kills
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code) //nolint:gocritic // stop has run
}

// run is the command without the process around it. environ looks up an environment variable.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, environ func(string) string) int {
	return command{open: openStack, stdout: stdout, stderr: stderr, environ: environ}.run(ctx, args)
}

// command is what run works with; tests put another opener into it.
type command struct {
	open    opener
	stdout  io.Writer
	stderr  io.Writer
	environ func(string) string
}

func (c command) run(ctx context.Context, args []string) int {
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case "bench":
		return c.exit(c.bench(ctx, args))
	case "version", "--version", "-version":
		fmt.Fprintln(c.stdout, version())
		return exitOK
	case "help", "--help", "-help", "-h":
		fmt.Fprint(c.stdout, usage)
		return exitOK
	case "":
		return c.exit(usageError("no command: want bench, help or version"))
	default:
		return c.exit(usageError("unknown command %q: want bench, help or version", name))
	}
}

// exit prints err, if any, and returns the code of the process.
func (c command) exit(err error) int {
	if err == nil {
		return exitOK
	}
	var u *badUsage
	if errors.As(err, &u) {
		fmt.Fprintf(c.stderr, "wholeblob: %v\nRun \"wholeblob help\" for what is possible.\n", err)
		return exitUsage
	}
	fmt.Fprintf(c.stderr, "wholeblob: %v\n", err)
	return exitFail
}

// badUsage is an error of the arguments: nothing has been touched.
type badUsage struct{ err error }

func (u *badUsage) Error() string { return u.err.Error() }
func (u *badUsage) Unwrap() error { return u.err }

func usageError(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if !errors.Is(err, blob.ErrInvalidOption) {
		err = fmt.Errorf("%w: %w", blob.ErrInvalidOption, err)
	}
	return &badUsage{err}
}

// version says which build this is, as far as the Go tool recorded it.
func version() string {
	v := "(devel)"
	var revision, dirty string
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = " " + s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = " modified"
			}
		}
	}
	return strings.Join([]string{"wholeblob", v + revision + dirty, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}, " ")
}
