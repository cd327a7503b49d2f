package realserver

import (
	"context"
	"os"
	"strings"
	"testing"
)

// server is what the tests of all servers need to know of one.
type server struct {
	pinned string // version
	shared func(testing.TB) *Server
	open   func(context.Context) (*Server, error)
	place  func(testing.TB) string // makes a new bucket or container
}

var servers = map[string]server{
	"versitygw":     testable("v1.8.0", VersityGW, OpenVersityGW, func(s *S3, t testing.TB) string { return s.NewBucket(t) }),
	"seaweedfs":     testable("v0.0.0-20261109003541-7506e5f91cd6", SeaweedFS, OpenSeaweedFS, func(s *S3, t testing.TB) string { return s.NewBucket(t) }),
	"azurite":       testable("3.37.0", Azurite, OpenAzurite, (*Azure).NewContainer),
	"fakegcsserver": testable("v1.56.1", FakeGCS, OpenFakeGCS, func(s *GCS, t testing.TB) string { return s.NewBucket(t) }),
}

func testable[H handle](pinned string, shared func(testing.TB) H, open func(context.Context) (H, error), place func(H, testing.TB) string) server {
	return server{
		pinned: pinned,
		shared: func(t testing.TB) *Server { t.Helper(); return shared(t).common() },
		open: func(ctx context.Context) (*Server, error) {
			h, err := open(ctx)
			if err != nil {
				return nil, err
			}
			return h.common(), nil
		},
		place: func(t testing.TB) string { t.Helper(); return place(shared(t), t) },
	}
}

func onServers(t *testing.T, f func(t *testing.T, s server)) {
	for name, s := range servers {
		t.Run(name, func(t *testing.T) { f(t, s) })
	}
}

func TestServerIsThePinnedOne(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		if got := s.shared(t).Version; got != s.pinned {
			t.Errorf("version %q, want the pinned %s", got, s.pinned)
		}
	})
}

func TestServerIsSharedByTheTestsOfAProcess(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		if a, b := s.shared(t), s.shared(t); a != b {
			t.Errorf("two servers: %v, %v", a, b)
		}
	})
}

func TestServerListensOnLoopbackAndKeepsToItsFolder(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		got := s.shared(t)
		if !strings.HasPrefix(got.Endpoint, "http://127.0.0.1:") || !strings.HasPrefix(got.Endpoint, "http://"+got.proc.addr) {
			t.Errorf("it is at %s, %s", got.Endpoint, got.proc.addr)
		}
		if _, err := os.Stat(got.proc.logPath()); err != nil {
			t.Errorf("no log: %v", err)
		}
	})
}

func TestBucketsAreUnique(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		if a, b := s.place(t), s.place(t); a == b {
			t.Errorf("the same bucket %q twice", a)
		}
	})
}

func TestStopEndsTheServerAndRemovesItsData(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		s.shared(t) // skips where there is none
		p := startOwn(t, s)
		if err := p.stop(); err != nil || !p.exited() {
			t.Errorf("stop: %v, ended: %v", err, p.exited())
		}
		if exists(p.dir) {
			t.Errorf("%s is left", p.dir)
		}
	})
}

// startOwn starts a server for one test, which is not the shared one. Stopping it twice does no harm.
func startOwn(t *testing.T, s server) *process {
	t.Helper()
	got, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got.proc
}
