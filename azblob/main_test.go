package azblob_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(realserver.StopAfter(m)) }

const smallPart = 4 << 10

func small(o *azblob.Options) { o.PartSize, o.Segment = smallPart, smallPart }

// fake starts a fake server with one container, "box", and ends it with the test.
func fake(t testing.TB, opts fakeaz.Options) *fakeaz.Server {
	t.Helper()
	if opts.Containers == nil {
		opts.Containers = []string{"box"}
	}
	srv, err := fakeaz.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// options returns the options for a store on srv, with short delays.
func options(srv *fakeaz.Server) *azblob.Options {
	return &azblob.Options{
		Endpoint: srv.Endpoint(), Account: srv.Account(), AccountKey: fakeaz.DefaultKey(),
		Conditions: azblob.TrustYes,
		Retry:      retry.Policy{FirstDelay: time.Microsecond, MaxDelay: time.Millisecond, Attempts: 3},
	}
}

// open returns a store on the container "box" of srv, changed by edit, closed with the test.
func open(t testing.TB, srv *fakeaz.Server, edit func(*azblob.Options)) *azblob.Store {
	t.Helper()
	o := options(srv)
	if edit != nil {
		edit(o)
	}
	st, err := azblob.New(t.Context(), "box", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, st) })
	return st
}

func closeStore(t testing.TB, st *azblob.Store) {
	t.Helper()
	if err := st.Close(context.Background()); err != nil { // the test's context has ended in a clean-up
		t.Errorf("close: %v", err)
	}
}

func content(n int) []byte {
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	_, _ = r.Read(data)
	return data
}

func set(t testing.TB, st blob.Blob, key string, data []byte, opts *blob.SetOptions) blob.Info {
	t.Helper()
	info, err := st.Set(t.Context(), key, blob.Bytes(data), opts)
	if err != nil {
		t.Fatalf("Set %q: %v", key, err)
	}
	return info
}

func get(t testing.TB, st blob.Blob, key string) blob.Object {
	t.Helper()
	obj, err := st.Get(t.Context(), key, nil)
	if err != nil {
		t.Fatalf("Get %q: %v", key, err)
	}
	return obj
}

func wantKind(t testing.TB, err, kind error) {
	t.Helper()
	if got := blob.KindOf(err); got != kind {
		t.Errorf("kind of %v is %v, want %v", err, got, kind)
	}
}
