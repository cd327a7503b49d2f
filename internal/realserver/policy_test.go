package realserver

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// verdict records what forTest decides about a test.
type verdict struct {
	testing.TB
	skipped, failed string
}

func (v *verdict) Helper()                   {}
func (v *verdict) Cleanup(func())            {}
func (v *verdict) Skipf(f string, a ...any)  { v.skipped = fmt.Sprintf(f, a...); panic(v) }
func (v *verdict) Fatalf(f string, a ...any) { v.failed = fmt.Sprintf(f, a...); panic(v) }

// verdictOf asks forTest about a server whose start ends in err.
func verdictOf(t *testing.T, ci string, err error) (v *verdict) {
	t.Setenv("CI", ci)
	v = &verdict{}
	defer func() {
		if r := recover(); r != v { // Skipf and Fatalf end a test's goroutine
			t.Errorf("neither skipped nor failed: %v", r)
		}
		state.mu.Lock()
		defer state.mu.Unlock()
		delete(state.skipped, "example")
	}()
	forTest(v, "example", func() (*process, error) { return nil, err })
	return v
}

func TestMissingServerSkipsLoudlyAndFailsInCI(t *testing.T) {
	missing := &MissingError{Server: "example", Needs: "patience", Err: errors.New("no network")}
	v := verdictOf(t, "", missing)
	if !strings.HasPrefix(v.skipped, markSkipped) || v.failed != "" {
		t.Errorf("locally: skipped %q, failed %q", v.skipped, v.failed)
	}
	for _, want := range []string{"example", "no network", "patience", "WHOLEBLOB_SERVERS=1 go test ./..."} {
		if !strings.Contains(v.skipped, want) {
			t.Errorf("the skip does not say %q: %q", want, v.skipped)
		}
	}
	if v := verdictOf(t, "true", missing); v.failed == "" || v.skipped != "" {
		t.Errorf("with CI=true: skipped %q, failed %q", v.skipped, v.failed)
	}
}

func TestServerThatDoesNotStartFailsEverywhere(t *testing.T) {
	for _, ci := range []string{"", "true"} {
		if v := verdictOf(t, ci, errors.New("ended early")); v.failed == "" || v.skipped != "" {
			t.Errorf("CI=%q: skipped %q, failed %q", ci, v.skipped, v.failed)
		}
	}
}

func TestServerThatDiedDuringTheTestsFails(t *testing.T) {
	p := &process{name: "example", done: make(chan struct{}), err: errors.New("signal: killed")}
	close(p.done)
	v := &verdict{}
	func() {
		defer func() { _ = recover() }()
		forTest(v, "example", func() (*process, error) { return p, nil })
	}()
	if !strings.Contains(v.failed, "signal: killed") {
		t.Errorf("skipped %q, failed %q", v.skipped, v.failed)
	}
}

func TestServerWithoutStopAfterFails(t *testing.T) {
	setArmed := func(armed bool) {
		state.mu.Lock()
		defer state.mu.Unlock()
		state.armed = armed
	}
	setArmed(false)
	defer setArmed(true)
	v := verdictOf(t, "", errors.New("not reached"))
	if !strings.Contains(v.failed, "StopAfter") {
		t.Errorf("skipped %q, failed %q", v.skipped, v.failed)
	}
}

func TestServerIsBuiltOnlyWhenAskedFor(t *testing.T) {
	for _, c := range []struct {
		ci, servers string
		want        bool
	}{{"", "", false}, {"false", "0", false}, {"true", "", true}, {"", "1", true}} {
		t.Setenv("CI", c.ci)
		t.Setenv("WHOLEBLOB_SERVERS", c.servers)
		if mayBuild() != c.want {
			t.Errorf("CI=%q WHOLEBLOB_SERVERS=%q: build %v", c.ci, c.servers, !c.want)
		}
	}
	t.Setenv("WHOLEBLOB_TEST_CACHE", t.TempDir())
	for _, p := range []program{versityGW.program, seaweedFS.program, azurite.program, fakeGCSServer.program} {
		var missing *MissingError
		if _, err := p.obtain(t.Context(), false); !errors.As(err, &missing) || missing.Server != p.name || missing.Needs == "" {
			t.Errorf("%s, empty cache: %v", p.name, err)
		}
	}
}

func TestServerThisMachineCannotRunIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var missing *MissingError
	if _, err := azurite.program.obtain(t.Context(), true); !errors.As(err, &missing) || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("no node: %v", err)
	}
}
