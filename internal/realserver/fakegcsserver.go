package realserver

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var fakeGCSServer = newKind(goProgram("fakegcsserver", "github.com/fsouza/fake-gcs-server"), setUpFakeGCS)

// FakeGCS returns the test process's shared fake-gcs-server, with its data in memory, started by the first call. The test
// is skipped where the server is not to be had, and fails instead with CI=true.
func FakeGCS(t testing.TB) *GCS {
	t.Helper()
	return fakeGCSServer.forTest(t)
}

// OpenFakeGCS starts a fake-gcs-server for a program, building it when it is not in the cache. [Stop] ends it.
func OpenFakeGCS(ctx context.Context) (*GCS, error) { return fakeGCSServer.open(ctx, true) }

func setUpFakeGCS(bin string) (*GCS, launch) {
	s := &GCS{Server: Server{Note: "data in memory, no credentials"}, mark: "mark-" + randomHex()}
	return s, launch{
		command: func(dir, addr string) (*exec.Cmd, error) { return s.fakeGCSCommand(bin, dir, addr) },
		ready:   func(ctx context.Context, _ string) error { return s.hasTheMark(ctx) },
	}
}

// fakeGCSCommand is the command line. What has to be said: it listens on all addresses with TLS; it sends the client of a resumable
// upload to its external URL; it knows requests of the XML API by its public host. It checks no credentials, so a bucket of a random
// name, made from the folder of -data, tells it from another server.
func (s *GCS) fakeGCSCommand(bin, dir, addr string) (*exec.Cmd, error) {
	seed := filepath.Join(dir, "seed")
	if err := os.MkdirAll(filepath.Join(seed, s.mark), 0o750); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(bin, //nolint:noctx // it lives until Stop, not as long as the call that starts it
		"-scheme", "http", "-host", host, "-port", port, "-backend", "memory", "-data", seed,
		"-external-url", s.Endpoint, "-public-host", addr, "-log-level", "warn")
	cmd.Dir = dir
	// What the user has set for Google's libraries must not decide.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	return cmd, nil
}
