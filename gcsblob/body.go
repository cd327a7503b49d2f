package gcsblob

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/wholeblob/wholeblob/blob"
)

// errLetGo is what a transport gets that reads a body after its attempt has ended.
var errLetGo = errors.New("gcsblob: body read after its attempt has ended")

// sentBody is a request's body: the caller's bytes, with what goes before and after them. It counts what is handed over, remembers why
// its source failed, and can be taken away from a transport: http.RoundTripper may read a request's body after RoundTrip has
// returned, and the caller's memory must not be touched by then.
type sentBody struct {
	size int64 // of all three

	mu   sync.Mutex // held while the source is read: letGo waits for that
	r    io.Reader  // head, source, tail
	pos  int64      // bytes handed over
	err  error      // of the source
	gone bool
}

// newBody returns a body of n bytes of src between head and tail.
func newBody(head string, src io.Reader, n int64, tail string) *sentBody {
	b := &sentBody{size: int64(len(head)) + n + int64(len(tail))}
	b.r = src
	if head != "" || tail != "" {
		b.r = &framed{head: head, src: src, left: n, tail: tail}
	}
	return b
}

// framed is src between head and tail. A source that ends early ends it: the tail must not come in the place of
// content.
type framed struct {
	head string
	src  io.Reader
	left int64
	tail string
}

func (f *framed) Read(p []byte) (n int, err error) {
	switch {
	case f.head != "":
		n = copy(p, f.head)
		f.head = f.head[n:]
	case f.left > 0:
		n, err = f.src.Read(p[:min(int64(len(p)), f.left)])
		if f.left -= int64(n); f.left == 0 && err == io.EOF {
			err = nil
		}
	case f.tail != "":
		n = copy(p, f.tail)
		f.tail = f.tail[n:]
	default:
		err = io.EOF
	}
	return n, err
}

// Read implements io.Reader.
func (b *sentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return 0, errLetGo
	}
	n, err := b.r.Read(p)
	b.pos += int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// Close implements io.Closer, for the transport: letGo is what counts.
func (b *sentBody) Close() error { return nil }

func (b *sentBody) complete() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pos >= b.size
}

func (b *sentBody) sourceError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// letGo takes the source away. INVARIANT: nobody reads it after letGo has returned.
func (b *sentBody) letGo() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
}

// unread returns an error if a success was answered before the body had been handed over: whatever was stored, it is not the whole.
func (s *sent) unread() error {
	if s.body == nil || s.body.complete() {
		return nil
	}
	return &blob.Error{Kind: blob.ErrUnavailable, Status: http.StatusOK, Err: errors.New("a success was answered before the whole body was sent")}
}
