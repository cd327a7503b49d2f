package realserver

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func TestSeaweedFSStoresListsAndDeletes(t *testing.T) { storesListsAndDeletes(t, SeaweedFS(t)) }

func TestSeaweedFSBucketKeepsDeletedObjectsOnlyWhenVersioned(t *testing.T) {
	keepsDeletedObjectsOnlyWhenVersioned(t, SeaweedFS(t))
}

func TestSeaweedFSChecksSignatures(t *testing.T) { checksSignatures(t, SeaweedFS(t)) }

// What it would do by itself, outside its folder: reports to its makers, sockets in /tmp, configuration of the user.
func TestSeaweedFSKeepsToItself(t *testing.T) {
	s := SeaweedFS(t)
	if args := s.proc.cmd.Args; !slices.Contains(args, "-master.telemetry=false") {
		t.Errorf("it may report usage: %q", args)
	}
	for _, name := range []string{"s3.sock", "filer.sock"} {
		if info, err := os.Stat(filepath.Join(s.proc.dir, name)); err != nil || info.Mode().Type() != os.ModeSocket {
			t.Errorf("its socket %s is not in its folder: %v", name, err)
		}
	}
	for _, v := range s.proc.cmd.Env {
		if strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "WEED_") || v == "HOME="+os.Getenv("HOME") {
			t.Errorf("it sees %s", v)
		}
	}
}

// It is killed more often than not, so it does not tidy up itself.
func TestStopRemovesWhatAServerMakesOutsideItsFolder(t *testing.T) {
	dir := t.TempDir()
	l := playing("hang", func(context.Context, string) error { return nil })
	l.outside = func() []string { return []string{dir + "/socket", dir + "/never made"} }
	p, err := l.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/socket", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSeaweedFSSocketsOutsideItsFolderAreKnown(t *testing.T) {
	paths := SeaweedFS(t).proc.outside()
	if len(paths) != 4 {
		t.Errorf("its sockets outside its folder are %q, want one for each part", paths)
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("its sockets are elsewhere: %v", err)
		}
	}
}

func TestFreeAddrsAreDifferent(t *testing.T) {
	addrs, err := freeAddrs(t.Context(), 8)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(slices.Compact(slices.Sorted(slices.Values(addrs)))); got != 8 {
		t.Errorf("%d different ones in %q", got, addrs)
	}
}

// A client that signs for the front's host is understood by the server behind it.
func TestTLSFrontKeepsWhatIsSigned(t *testing.T) {
	s := VersityGW(t)
	bucket := s.NewBucket(t)
	var hosts []string
	front, transport := s.TLSFront(t, func(r *http.Request) { hosts = append(hosts, r.Host) })
	client := s3.New(front.Client().Options(), func(o *s3.Options) { o.HTTPClient = &http.Client{Transport: transport} })
	_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("k"), Body: strings.NewReader("v")})
	if err != nil {
		t.Fatal(err)
	}
	if got := list(t, s, bucket); !slices.Equal(got, []string{"k"}) {
		t.Errorf("behind the front: %q", got)
	}
	if want := strings.TrimPrefix(front.Endpoint, "https://"); !slices.Equal(hosts, []string{want}) {
		t.Errorf("the front saw requests to %q, want one to %s", hosts, want)
	}
}
