// Package realserver is test support: it starts real object-store servers on
// loopback, on demand, from versions that this repository pins.
//
// Each server has one file here, named for it, and one folder of the same name
// that pins it with all that it depends on: a nested module, whose go.mod names
// the server with a tool directive, or a package-lock.json. So the server's
// dependencies stay out of the library's own go.mod. The program is made once,
// into a cache ([CacheDir]), and started at most once per test process, on a
// port of the kernel's choice, with its data in a temporary folder or in
// memory. What differs between the servers is a [kind] each.
//
// A test package that wants a server hands its TestMain to [StopAfter], and
// its tests ask for the server by name:
//
//	func TestMain(m *testing.M) { os.Exit(realserver.StopAfter(m).Run()) }
//
//	func TestOverVersityGW(t *testing.T) {
//		s := realserver.VersityGW(t)
//		bucket := s.NewBucket(t)
//		...
//	}
//
// What happens without the binary: with CI=true it is built, and a server that
// cannot be had fails the test, since a green run must mean that the server
// was there. Elsewhere go test needs nothing but Go and stays quick: the test
// is skipped and says how to get the server; WHOLEBLOB_SERVERS=1 builds it.
package realserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// The prefixes of what this package logs. .ci/run looks for them in the output
// of the tests, to prove that the servers were there.
const (
	markUsed    = "REAL SERVER:"
	markSkipped = "SKIPPED, NO SERVER:"
)

// obtainTime bounds building (minutes on a cold cache) and starting a server.
const obtainTime = 9 * time.Minute

// state is what lives as long as the test process: the servers are shared by
// all its tests, as starting one for each would cost more than the tests.
var state struct {
	mu      sync.Mutex
	armed   bool           // StopAfter was called, so someone will call Stop
	running []*process     // to be stopped, in order of their start
	skipped map[string]int // tests skipped, by server
}

// M runs the tests of a package and then stops the servers they started. It is
// accepted where goleak.VerifyTestMain takes an *testing.M; its servers are
// gone by the time goroutines are counted.
type M struct {
	inner interface{ Run() int }
}

// StopAfter wraps what TestMain was given. Asking for a server in a test
// process without it fails the test, as nobody would stop the server.
func StopAfter(m interface{ Run() int }) M {
	state.mu.Lock()
	defer state.mu.Unlock()
	state.armed = true
	return M{inner: m}
}

// Run runs the tests, stops the servers and returns the exit code.
func (m M) Run() int {
	code := m.inner.Run()
	if err := Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "realserver:", err)
		code = max(code, 1)
	}
	state.mu.Lock()
	defer state.mu.Unlock()
	for name, n := range state.skipped {
		fmt.Fprintf(os.Stderr, "%s %d tests did not run against %s\n", markSkipped, n, name)
	}
	return code
}

// Stop ends every server that this process started and removes its data. Only
// programs without a TestMain call it; they call it before they exit.
func Stop() error {
	state.mu.Lock()
	running := state.running
	state.running = nil
	state.mu.Unlock()
	var errs []error
	for _, p := range running {
		errs = append(errs, p.stop())
	}
	return errors.Join(errs...)
}

// keep records a started process for Stop.
func keep(p *process) {
	state.mu.Lock()
	defer state.mu.Unlock()
	state.running = append(state.running, p)
}

// inCI says whether a missing server is a failure.
func inCI() bool { return os.Getenv("CI") == "true" }

// mayBuild says whether a server that is not in the cache may be built now: it
// takes minutes, and a new user's go test must not.
func mayBuild() bool { return inCI() || os.Getenv("WHOLEBLOB_SERVERS") == "1" }

// forTest runs start, which is one of the servers' shared ones, and decides
// what its failure means for the test.
func forTest(t testing.TB, name string, start func() (*process, error)) {
	t.Helper()
	state.mu.Lock()
	armed := state.armed
	state.mu.Unlock()
	if !armed {
		t.Fatalf("realserver: TestMain of this package does not use realserver.StopAfter, so nothing would stop %s", name)
	}
	p, err := start()
	var missing *MissingError
	switch {
	case errors.As(err, &missing) && !inCI():
		skip(t, missing)
	case err != nil:
		t.Fatalf("realserver: no %s: %v", name, err)
	case p.exited():
		t.Fatalf("realserver: %s ended during the tests: %v\n%s", name, p.err, p.logTail())
	}
	t.Cleanup(func() {
		if tail := p.logTail(); t.Failed() && tail != "" {
			t.Logf("last lines of %s's log:\n%s", name, tail)
		}
	})
}

// skip skips the test, and says on standard error too what did not run: go test
// hides the log of a skipped test unless -v is given.
func skip(t testing.TB, missing *MissingError) {
	t.Helper()
	state.mu.Lock()
	if state.skipped == nil {
		state.skipped = make(map[string]int)
	}
	state.skipped[missing.Server]++
	state.mu.Unlock()
	t.Skipf("%s %v", markSkipped, missing)
}

// MissingError reports a server whose program is neither in the cache nor
// could be made, or cannot run on this machine.
type MissingError struct {
	Server string // name of the server
	Needs  string // what making it takes
	Err    error  // why there is none; nil when making it was not allowed
}

// Error says what is missing and how to get it.
func (e *MissingError) Error() string {
	why := "is not built on this machine"
	if e.Err != nil {
		why = fmt.Sprintf("could not be built or cannot run here: %v", e.Err)
	}
	return fmt.Sprintf("%s %s. Nothing was tested against it. To build it once (needs %s) "+
		"and run these tests: WHOLEBLOB_SERVERS=1 go test ./...", e.Server, why, e.Needs)
}

// Unwrap returns why there is none.
func (e *MissingError) Unwrap() error { return e.Err }

// obtainContext bounds one attempt to get a server.
func obtainContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), obtainTime)
}
