package s3blob_test

import (
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

func TestMain(m *testing.M) {
	if os.Getenv(serverRole) != "" {
		serve()
		return
	}
	goleak.VerifyTestMain(realserver.StopAfter(m))
}

// fake starts a fake server with one bucket, "b", and ends it with the test.
func fake(t testing.TB, opts fakes3.Options) *fakes3.Server {
	t.Helper()
	if opts.Buckets == nil {
		opts.Buckets = []string{"b"}
	}
	srv, err := fakes3.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// options returns the options for a store on srv, with short delays.
func options(srv *fakes3.Server) *s3blob.Options {
	c := fakes3.DefaultCredentials()
	return &s3blob.Options{
		Endpoint: srv.URL(), Region: srv.Region(), PathStyle: true,
		AccessKey: c.AccessKey, SecretKey: c.SecretKey,
		Conditions: s3blob.TrustYes,
		Retry:      retry.Policy{FirstDelay: time.Microsecond, MaxDelay: time.Millisecond, Attempts: 3},
	}
}

// open returns a store on the bucket "b" of srv, changed by edit, closed with the test.
func open(t testing.TB, srv *fakes3.Server, edit func(*s3blob.Options)) *s3blob.Store {
	t.Helper()
	o := options(srv)
	if edit != nil {
		edit(o)
	}
	st, err := s3blob.New(t.Context(), "b", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, st) })
	return st
}

func closeStore(t testing.TB, st *s3blob.Store) {
	t.Helper()
	if err := st.Close(context.Background()); err != nil { // the test's context has ended in a clean-up
		t.Logf("close: %v", err)
	}
}
