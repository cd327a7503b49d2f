package transfer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// P is the size of parts and segments in the tests.
const P = 100

// content returns n bytes in which no two stretches of a few bytes are alike.
func content(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// open returns the engine over s, changed by edit. It is closed with the test, which fails if the service has still
// something open then.
func open(t testing.TB, s *service, edit ...func(*Options)) *Store {
	t.Helper()
	o := Options{
		Policy:   retry.Policy{FirstDelay: time.Microsecond, MaxDelay: time.Millisecond, Attempts: 3},
		PartSize: P, Threshold: P, Segment: P, Concurrency: 4, Restarts: 2, MaxGet: 1 << 20,
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range edit {
		f(&o)
	}
	st := New(s, s.p.traits, o)
	t.Cleanup(func() {
		_ = st.Close(context.Background()) // t.Context has ended
		s.wantQuiet(t)
	})
	return st
}

func policy(p retry.Policy) func(*Options) { return func(o *Options) { o.Policy = p } }

func concurrency(n int) func(*Options) { return func(o *Options) { o.Concurrency = n } }

func get(t testing.TB, st *Store, o *blob.GetOptions) blob.Object {
	t.Helper()
	obj, err := st.Get(t.Context(), "k", o)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func getError(st *Store, o *blob.GetOptions) error {
	obj, err := st.Get(context.Background(), "k", o)
	if err != nil && obj.Data != nil {
		return errors.New("an error and bytes at once")
	}
	return err
}

func wantBytes(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("%d bytes, want %d; they differ from byte %d on", len(got), len(want), i)
	}
}

// wantKind checks the kind of an error, and that it is a complete *blob.Error of this store.
func wantKind(t testing.TB, err, kind error) blob.Error {
	t.Helper()
	var e *blob.Error
	switch {
	case !errors.As(err, &e):
		t.Fatalf("error %v is no *blob.Error, want %v", err, kind)
	case kind != nil && !errors.Is(err, kind):
		t.Fatalf("error %v, want %v", err, kind)
	case e.Op == "" || e.Store == "":
		t.Errorf("error without operation or store: %#v", e)
	}
	return *e
}

func wantOutcome(t testing.TB, err error, want blob.Outcome) {
	t.Helper()
	if got := blob.OutcomeOf(err); got != want {
		t.Errorf("outcome %v, want %v: %v", got, want, err)
	}
}

// wantLog compares the requests since the last look, in any order.
func wantLog(t testing.TB, s *service, want ...string) {
	t.Helper()
	got := s.takeLog()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("requests:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func refusal(kind error) error { return &blob.Error{Kind: kind, Outcome: blob.NotApplied} }

func lost() error { return &blob.Error{Kind: blob.ErrUnavailable, Outcome: blob.Unknown} }

func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}
