package gcsblob_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(realserver.StopAfter(m)) }

// chunk is the smallest chunk of a session that is not its last.
const chunk = 256 << 10

// fake starts a fake server with one bucket, "b", and ends it with the test.
func fake(t testing.TB, opts fakegcs.Options) *fakegcs.Server {
	t.Helper()
	if opts.Buckets == nil {
		opts.Buckets = []string{"b"}
	}
	srv, err := fakegcs.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// options returns the options for a store on srv, with short delays.
func options(srv *fakegcs.Server) *gcsblob.Options {
	return &gcsblob.Options{
		Endpoint: srv.URL(), Conditions: gcsblob.TrustYes,
		TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: fakegcs.DefaultToken}),
		Retry:       retry.Policy{FirstDelay: time.Microsecond, MaxDelay: time.Millisecond, Attempts: 3},
	}
}

// small makes chunks as small as they may be, and a session of one chunk of what is larger than 4 KiB.
func small(o *gcsblob.Options) { o.PartSize, o.Threshold, o.Segment = chunk, 4<<10, 4<<10 }

// open returns a store on the bucket "b" of srv, changed by edits, closed with the test.
func open(t testing.TB, srv *fakegcs.Server, edits ...func(*gcsblob.Options)) *gcsblob.Store {
	t.Helper()
	o := options(srv)
	for _, edit := range edits {
		edit(o)
	}
	return openWith(t, "b", o)
}

func openWith(t testing.TB, bucket string, o *gcsblob.Options) *gcsblob.Store {
	t.Helper()
	st, err := gcsblob.New(t.Context(), bucket, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(context.Background()); err != nil { // the test's context has ended in a clean-up
			t.Logf("close: %v", err)
		}
	})
	return st
}

// content returns n bytes that do not repeat.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

func wantBytes(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, want %d others", len(got), len(want))
	}
}

func wantKind(t testing.TB, err, kind error) {
	t.Helper()
	_ = mustKind(t, err, kind)
}

// mustKind returns err as what it must be.
func mustKind(t testing.TB, err, kind error) *blob.Error {
	t.Helper()
	e, ok := err.(*blob.Error) //nolint:errorlint // stores return it unwrapped
	if !ok || e.Kind != kind {
		t.Fatalf("got %v, want the kind %v", err, kind)
	}
	return e
}

func wantLog(t testing.TB, srv *fakegcs.Server, want string) {
	t.Helper()
	if got := "\n" + srv.Log().String(); got != want {
		t.Errorf("requests:%s\nwant:%s", got, want)
	}
	srv.ResetLog()
}

func mustSet(t testing.TB, st blob.Blob, key string, data []byte, opts *blob.SetOptions) blob.Info {
	t.Helper()
	info, err := st.Set(t.Context(), key, blob.Bytes(data), opts)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func mustGet(t testing.TB, st blob.Blob, key string, opts *blob.GetOptions) blob.Object {
	t.Helper()
	obj, err := st.Get(t.Context(), key, opts)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}
