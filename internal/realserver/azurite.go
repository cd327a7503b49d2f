package realserver

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var azurite = newKind(npmProgram("azurite", "azurite"), setUpAzurite)

// azuriteStop is short as nothing of its data is to be kept.
const azuriteStop = 2 * time.Second

// Azurite returns the test process's shared Azurite, its blob service alone, with its data in memory, started by the
// first call. The test is skipped where the server is not to be had, and fails instead with CI=true.
func Azurite(t testing.TB) *Azure {
	t.Helper()
	return azurite.forTest(t)
}

// OpenAzurite starts an Azurite for a program, installing it when it is not in the cache. [Stop] ends it.
func OpenAzurite(ctx context.Context) (*Azure, error) { return azurite.open(ctx, true) }

func setUpAzurite(path string) (*Azure, launch) {
	s := newAzure("blob service, data in memory, any API version")
	return s, launch{
		path:     "/" + s.Account,
		command:  func(dir, addr string) (*exec.Cmd, error) { return s.azuriteCommand(path, dir, addr) },
		ready:    func(ctx context.Context, _ string) error { return s.knowsTheKey(ctx) },
		stopTime: azuriteStop,
	}
}

// azuriteCommand is the command line. What has to be said: usage is reported to its makers unless told not to; it refuses a
// version of the API newer than the one it knows, and the SDK names a newer one; the account stands in the path and not in the host.
// Its access log stays on, as that is what a failed test shows.
func (s *Azure) azuriteCommand(path, dir, addr string) (*exec.Cmd, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("node", //nolint:noctx // it lives until Stop, not as long as the call that starts it
		filepath.Join(path, "node_modules", "azurite", "dist", "src", "blob", "main.js"),
		"--blobHost", host, "--blobPort", port, "--inMemoryPersistence",
		"--skipApiVersionCheck", "--disableProductStyleUrl", "--disableTelemetry")
	cmd.Dir = dir
	// NODE_OPTIONS and AZURITE_… of the user must not decide.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "AZURITE_ACCOUNTS=" + s.Account + ":" + s.Key}
	return cmd, nil
}
