package transfer

import (
	"bytes"
	"io"
	"sync"

	"github.com/wholeblob/wholeblob/blob"
)

// ChunkWriter is implemented by the readers that a Body opens. A store whose transport can take it writes the body in chunks
// from where it lies, without copying what is in memory already.
type ChunkWriter interface {
	// WriteChunk writes the next bytes of the body to w, at most most of them, and returns how many; io.EOF at the end.
	WriteChunk(w io.Writer, most int64) (int64, error)
}

// body returns the Body of n bytes of src from off, of which the watch sees how they go.
func (w *watch) body(src blob.Source, off, n int64) Body {
	return func() io.ReadSeeker {
		return &sectionBody{ReadSeeker: src.Section(off, n), src: src, off: off, size: n, w: w}
	}
}

// sectionBody is a section of a source as the body of one attempt.
type sectionBody struct {
	io.ReadSeeker // the section; its position is pos
	src           blob.Source
	off, size     int64
	pos           int64
	w             *watch
}

func (b *sectionBody) moved(n int64) {
	b.pos += n
	if b.pos >= b.size {
		b.w.whole.Store(true)
		b.w.sent(b.size)
	} else {
		b.w.moved()
	}
}

// Read implements io.Reader.
func (b *sectionBody) Read(p []byte) (int, error) {
	n, err := b.ReadSeeker.Read(p)
	b.moved(int64(n))
	return n, err
}

// Seek implements io.Seeker.
func (b *sectionBody) Seek(offset int64, whence int) (int64, error) {
	pos, err := b.ReadSeeker.Seek(offset, whence)
	b.pos = pos
	return pos, err
}

// chunkBuffers hold chunks of sources that are not in memory.
var chunkBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// WriteChunk implements ChunkWriter.
func (b *sectionBody) WriteChunk(w io.Writer, most int64) (n int64, err error) {
	if b.pos >= b.size {
		return 0, io.EOF
	}
	chunk := b.src.Section(b.off+b.pos, min(most, b.size-b.pos))
	if mem, ok := chunk.(*bytes.Reader); ok {
		n, err = mem.WriteTo(w) // one Write, of the caller's own bytes
	} else {
		buf := chunkBuffers.Get().(*[64 << 10]byte)
		defer chunkBuffers.Put(buf)
		n, err = io.CopyBuffer(struct{ io.Writer }{w}, chunk, buf[:]) // the bare Writer: nothing that brings a buffer of its own
	}
	b.moved(n)
	if err == nil {
		_, err = b.ReadSeeker.Seek(b.pos, io.SeekStart)
	}
	return n, err
}
