package realserver

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var versityGW = newKind(goProgram("versitygw", "github.com/versity/versitygw/cmd/versitygw"), versityGWWith(hasUserXattrs))

// VersityGW returns the test process's shared Versity S3 Gateway over a
// temporary folder, started by the first call. The test is skipped where the
// server is not to be had, and fails instead with CI=true.
func VersityGW(t testing.TB) *S3 {
	t.Helper()
	return versityGW.forTest(t)
}

// OpenVersityGW starts a Versity S3 Gateway for a program, building it when it
// is not in the cache. [Stop] ends it.
func OpenVersityGW(ctx context.Context) (*S3, error) { return versityGW.open(ctx, true) }

// versityGWWith sets up a gateway that keeps metadata where xattrs, asked about its folder, says it can.
func versityGWWith(xattrs func(dir string) bool) func(bin string) (*S3, launch) {
	return func(bin string) (*S3, launch) {
		s := newS3("")
		return s, launch{
			command: func(dir, addr string) (*exec.Cmd, error) { return s.versityGWCommand(bin, dir, addr, xattrs(dir)) },
			ready:   func(ctx context.Context, _ string) error { return s.knowsTheSecret(ctx) },
		}
	}
}

// versityGWCommand is the command line. Two things the server needs said:
// keep-alive is off unless asked for, and versions are kept only with
// --versioning-dir. Metadata goes into extended attributes, or, on a file
// system without them, into a folder beside the data.
func (s *S3) versityGWCommand(bin, dir, addr string, xattrs bool) (*exec.Cmd, error) {
	buckets, versions, meta := filepath.Join(dir, "buckets"), filepath.Join(dir, "versions"), filepath.Join(dir, "meta")
	args := []string{
		"--port", addr, "--region", s.Region, "--health", "/health", "--quiet", "--keep-alive",
		"posix", "--versioning-dir", versions,
	}
	folders := []string{buckets, versions}
	s.Note = "posix with versions, metadata in xattrs"
	if !xattrs {
		s.Note = "posix with versions, metadata in a sidecar folder"
		args = append(args, "--sidecar", meta)
		folders = append(folders, meta)
	}
	for _, folder := range folders {
		if err := os.Mkdir(folder, 0o750); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(bin, append(args, buckets)...) //nolint:noctx // it lives until Stop, not as long as the call that starts it
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s.AccessKey, "ROOT_SECRET_KEY="+s.SecretKey)
	return cmd, nil
}
