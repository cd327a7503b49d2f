package realserver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// playing returns a launch of this test binary in a role.
func playing(role string, ready func(context.Context, string) error) launch {
	return launch{
		name: role,
		command: func(_, addr string) (*exec.Cmd, error) {
			exe, err := os.Executable()
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), roleVar+"="+role, "ADDR="+addr)
			return cmd, err
		},
		ready: ready,
	}
}

func refused(context.Context, string) error { return errors.New("connection refused") }

func TestServerThatEndsEarlyIsTriedOnOtherPortsAndShowsItsLog(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var addrs []string
	l := playing("fail", refused)
	command := l.command
	l.command = func(dir, addr string) (*exec.Cmd, error) {
		addrs = append(addrs, addr)
		return command(dir, addr)
	}
	_, err := l.start(t.Context())
	if !errors.Is(err, errEndedEarly) || len(addrs) != portTries {
		t.Fatalf("%d tries, error %v", len(addrs), err)
	}
	for _, addr := range addrs {
		if want := "cannot listen on " + addr; !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not show %q of the log: %v", want, err)
		}
	}
	noneLeft(t)
}

func TestServerThatAnswersOnTheSecondPortIsUsed(t *testing.T) {
	var calls int
	l := playing("hang", func(context.Context, string) error { return nil })
	hang, fail := l.command, playing("fail", nil).command
	l.command = func(dir, addr string) (*exec.Cmd, error) {
		if calls++; calls == 1 {
			return fail(dir, addr)
		}
		return hang(dir, addr)
	}
	// The first process ends; until then nothing may count as its answer.
	l.ready = func(context.Context, string) error {
		if calls == 1 {
			return errors.New("connection refused")
		}
		return nil
	}
	p, err := l.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.stop(); err != nil || !p.exited() {
		t.Errorf("stop: %v, ended: %v", err, p.exited())
	}
}

func TestWaitForAServerEndsWithItsContext(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	l := playing("hang", func(context.Context, string) error {
		cancel()
		return errors.New("not yet")
	})
	if _, err := l.start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a server that never answered, and a canceled context: %v", err)
	}
	noneLeft(t)
}

// noneLeft checks that failed starts removed their folders from $TMPDIR.
func noneLeft(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestFailedBuildLeavesNothingAndIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/server"
	boom := errors.New("boom")
	for _, half := range []func(tmp string) error{
		func(tmp string) error { return os.WriteFile(tmp, []byte("half"), 0o600) },
		func(tmp string) error { return os.MkdirAll(tmp+"/node_modules", 0o700) },
	} {
		err := publish(t.Context(), path, func(tmp string) error { return errors.Join(half(tmp), boom) })
		if !errors.Is(err, boom) || exists(path) {
			t.Fatalf("error %v, exists: %v", err, exists(path))
		}
	}
	if left, err := filepath.Glob(dir + "/*.tmp"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := publish(t.Context(), path, func(tmp string) error { return os.WriteFile(tmp, nil, 0o600) }); err != nil {
		t.Error(err)
	}
}
