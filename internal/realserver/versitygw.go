package realserver

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

var versityGW = goProgram{name: "versitygw", pkg: "github.com/versity/versitygw/cmd/versitygw"}

var sharedVersityGW = sync.OnceValues(func() (*S3, error) {
	ctx, cancel := obtainContext()
	defer cancel()
	return startVersityGW(ctx, mayBuild(), hasUserXattrs)
})

// VersityGW returns the test process's shared Versity S3 Gateway over a
// temporary folder, started by the first call. The test is skipped where the
// server is not to be had, and fails instead with CI=true.
func VersityGW(t testing.TB) *S3 {
	t.Helper()
	var s *S3
	forTest(t, versityGW.name, func() (*process, error) {
		var err error
		if s, err = sharedVersityGW(); err != nil {
			return nil, err
		}
		return s.proc, nil
	})
	t.Log(markUsed, s)
	return s
}

// OpenVersityGW starts a Versity S3 Gateway for a program, building it when it
// is not in the cache. [Stop] ends it.
func OpenVersityGW(ctx context.Context) (*S3, error) {
	return startVersityGW(ctx, true, hasUserXattrs)
}

func startVersityGW(ctx context.Context, mayBuild bool, xattrs func(dir string) bool) (*S3, error) {
	bin, err := versityGW.binary(ctx, mayBuild)
	if err != nil {
		return nil, err
	}
	version, err := builtVersion(bin)
	if err != nil {
		return nil, err
	}
	s := &S3{
		Name: versityGW.name, Version: version, Region: "us-east-1", PathStyle: true,
		AccessKey: "wholeblobtest", SecretKey: randomHex(),
	}
	l := launch{
		name:    s.Name,
		command: func(dir, addr string) (*exec.Cmd, error) { return s.versityGWCommand(bin, dir, addr, xattrs(dir)) },
		ready: func(ctx context.Context, addr string) error {
			s.Endpoint = "http://" + addr
			_, err := s.Client().ListBuckets(ctx, &s3.ListBucketsInput{})
			return err
		},
	}
	if s.proc, err = l.start(ctx); err != nil {
		return nil, err
	}
	keep(s.proc)
	return s, nil
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
