package gcsblob

import (
	"io"

	"github.com/wholeblob/wholeblob/internal/wire"
)

// newBody returns a body of n bytes of src between head and tail.
func newBody(head string, src io.Reader, n int64, tail string) *wire.Body {
	if head != "" || tail != "" {
		src = &framed{head: head, src: src, left: n, tail: tail}
	}
	return wire.NewBody(src, int64(len(head))+n+int64(len(tail)))
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
