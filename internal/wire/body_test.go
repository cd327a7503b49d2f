package wire

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/wholeblob/wholeblob/blob"
)

// After LetGo nobody reads the source any more, whichever way.
func TestABodyLetGoIsNotRead(t *testing.T) {
	for name, read := range map[string]func(b *Body) error{
		"read":   func(b *Body) error { _, err := b.Read(make([]byte, 1)); return err },
		"seek":   func(b *Body) error { _, err := b.Seek(0, io.SeekStart); return err },
		"show":   func(b *Body) error { return b.Show(io.Discard) },
		"chunks": func(b *Body) error { _, err := b.writeTo(io.Discard, 5); return err },
	} {
		b := NewBody(&failing{Reader: iotest.ErrReader(io.ErrClosedPipe)}, 5)
		b.LetGo()
		if err := read(b); !errors.Is(err, ErrLetGo) {
			t.Errorf("%s: %v", name, err)
		}
		if b.SourceError() != nil {
			t.Errorf("%s: the source was read", name)
		}
	}
}

// failing is a source that can be written in chunks.
type failing struct{ io.Reader }

func (f *failing) WriteChunk(io.Writer, int64) (int64, error) { return 0, io.ErrClosedPipe }

// A body that fails by its source is told from one whose connection fails.
func TestTheSourceIsBlamedForItsOwnFailuresOnly(t *testing.T) {
	for name, c := range map[string]struct {
		r     io.Reader
		blame bool
	}{
		"source, read":       {iotest.ErrReader(io.ErrClosedPipe), true},
		"source, in chunks":  {&failing{}, true},
		"connection, read":   {strings.NewReader("12345"), false},
		"connection, chunks": {chunky{}, false},
	} {
		s := &Sent{Body: NewBody(c.r, 5)}
		if err := s.Body.Show(brokenWriter{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		var e blob.Error
		if got := s.SourceFailed(&e); got != c.blame || got && !errors.Is(e.Err, io.ErrClosedPipe) {
			t.Errorf("%s: the source is blamed: %t, %v", name, got, e.Err)
		}
	}
}

// late fails with its last bytes: all that a service needs may be on its way by then.
type late struct{ err error }

func (l late) Read(p []byte) (int, error) { return copy(p, "12345"), l.err }

// A source that fails when all of it has been handed over is to blame, and proves nothing of what was done.
func TestASourceThatFailsAtItsEndLeavesTheOutcomeOpen(t *testing.T) {
	for size, outcome := range map[int64]blob.Outcome{5: blob.Unknown, 6: blob.NotApplied} {
		s := &Sent{Body: NewBody(late{io.ErrClosedPipe}, size)}
		if _, err := s.Body.Read(make([]byte, 5)); err == nil {
			t.Fatal("no error")
		}
		var e blob.Error
		if !s.SourceFailed(&e) || !errors.Is(e.Err, io.ErrClosedPipe) || e.Outcome != outcome {
			t.Errorf("5 of %d bytes: %v, outcome %v, want %v", size, e.Err, e.Outcome, outcome)
		}
	}
}

type chunky struct{ io.Reader }

func (chunky) WriteChunk(w io.Writer, _ int64) (int64, error) {
	n, err := w.Write([]byte("12345"))
	return int64(n), err
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// A body that is shown can be sent after that.
func TestABodyIsRewoundWhenItHasBeenShown(t *testing.T) {
	b := NewBody(strings.NewReader("12345"), 5)
	var seen strings.Builder
	if err := b.Show(&seen); err != nil || seen.String() != "12345" || b.Complete() {
		t.Errorf("%q, %v, complete %t", seen.String(), err, b.Complete())
	}
	if got, err := io.ReadAll(b); err != nil || string(got) != "12345" || !b.Complete() {
		t.Errorf("%q, %v, complete %t", got, err, b.Complete())
	}
}

// NotApplied needs proof: that nothing was given to the transport, that it had no connection, or that the body did not go out whole.
func TestALostReplyIsUnknownWithoutProof(t *testing.T) {
	unsent := errors.New("not sent")
	for _, c := range []struct {
		name                      string
		entered, asked, connected bool
		body                      *Body
		kind                      error
		outcome                   blob.Outcome
	}{
		{"not given to the transport", false, false, false, nil, unsent, blob.NotApplied},
		{"no connection", true, true, false, nil, blob.ErrUnavailable, blob.NotApplied},
		{"a connection", true, true, true, nil, blob.ErrUnavailable, blob.Unknown},
		{"a transport that tells nothing", true, false, false, nil, blob.ErrUnavailable, blob.Unknown},
		{"half a body", true, true, true, NewBody(strings.NewReader("12"), 2), blob.ErrUnavailable, blob.NotApplied},
		{"all of a body", true, true, true, NewBody(strings.NewReader(""), 0), blob.ErrUnavailable, blob.Unknown},
	} {
		s := &Sent{Body: c.body}
		s.entered.Store(c.entered)
		s.asked.Store(c.asked)
		s.connected.Store(c.connected)
		if e := s.Lost(t.Context(), &blob.Error{}, unsent); e.Kind != c.kind || e.Outcome != c.outcome {
			t.Errorf("%s: %v, %v", c.name, e.Kind, e.Outcome)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Sent{}
	s.Enter()
	if e := s.Lost(ctx, &blob.Error{Err: io.ErrUnexpectedEOF}, unsent); e.Kind != nil || !errors.Is(e.Err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", e.Kind, e.Err)
	}
}

// reading is a context in which a transport goes on reading whenever it is asked for its end.
type reading struct {
	context.Context
	body *Body
}

func (r reading) Err() error {
	_, _ = io.Copy(io.Discard, r.body)
	return nil
}

// A transport may go on with a body after it has failed. What is said not to have been sent whole never is.
func TestWhatWasNotSentWholeNeverWillBe(t *testing.T) {
	s := &Sent{Body: NewBody(strings.NewReader("12345"), 5)}
	s.Enter()
	if _, err := io.ReadFull(s.Body, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	e := s.Lost(reading{t.Context(), s.Body}, &blob.Error{}, nil)
	if e.Outcome != blob.NotApplied || s.Body.Complete() {
		t.Errorf("sent whole: %t, outcome %v", s.Body.Complete(), e.Outcome)
	}
}
