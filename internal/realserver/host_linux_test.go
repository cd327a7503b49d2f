package realserver

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestServerDiesWithAKilledTestProcess(t *testing.T) {
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			s.shared(t) // skips where there is none
			diesWithAKilledTestProcess(t, name)
		})
	}
}

func diesWithAKilledTestProcess(t *testing.T, server string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), exe)
	parent.Env = append(os.Environ(), roleVar+"=own", "SERVER="+server, "TMPDIR="+t.TempDir())
	stdin, err := parent.StdinPipe() // open until the end, so that it waits
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the process that should own a server said: %s", line)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // "signal: killed"
	if !ended(t, fd) {
		_ = unix.Kill(pid, unix.SIGKILL)
		t.Errorf("server %d outlived its test process", pid)
	}
}

// ended waits for the end of the process behind a pidfd, which then becomes
// readable; it gives up after 10 s.
func ended(t *testing.T, fd int) bool {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
}
