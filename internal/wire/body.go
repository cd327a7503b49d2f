package wire

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/wholeblob/wholeblob/internal/transfer"
)

// ErrLetGo is what a transport gets that reads a body after its attempt has ended.
var ErrLetGo = errors.New("wire: body read after its attempt has ended")

// Body is a request's body. It counts what is handed over, remembers why its source failed, and can be taken away from a
// transport: http.RoundTripper may read a request's body after RoundTrip has returned, and the caller's
// memory must not be touched by then.
type Body struct {
	r    io.Reader
	size int64

	mu   sync.Mutex // held while the source is read: LetGo waits for that
	pos  int64      // bytes handed over since the last rewind
	err  error      // of the source
	gone bool
}

// NewBody returns a body of size bytes that r reads. It can be rewound if r is an io.Seeker, and is sent from where it lies if r is a
// transfer.ChunkWriter.
func NewBody(r io.Reader, size int64) *Body { return &Body{r: r, size: size} }

// Size is the announced length.
func (b *Body) Size() int64 { return b.size }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return 0, ErrLetGo
	}
	n, err := b.r.Read(p)
	b.pos += int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// Seek implements io.Seeker: some SDKs read a body once to hash it, or seek to the end to learn the length, and rewind.
func (b *Body) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return 0, ErrLetGo
	}
	r, ok := b.r.(io.Seeker)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	pos, err := r.Seek(offset, whence)
	if err == nil {
		b.pos = pos
	}
	return pos, err
}

// Complete reports whether all of the body has been handed over.
func (b *Body) Complete() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pos >= b.size
}

// SourceError returns why the source failed, or nil.
func (b *Body) SourceError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// LetGo takes the source away. INVARIANT: nobody reads it after LetGo has returned.
func (b *Body) LetGo() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
}

// Show writes all of the body to w, as to hash it, and rewinds it.
func (b *Body) Show(w io.Writer) (err error) {
	if b.chunks() {
		_, err = b.writeTo(w, b.size)
	} else {
		_, err = io.Copy(w, b)
	}
	if err == nil {
		_, err = b.Seek(0, io.SeekStart)
	}
	return err
}

// Carry makes b the body of req, which announces its length. Close remains that of the body which an SDK has put around b.
func (b *Body) Carry(req *http.Request) { req.Body = carried{b, req.Body} }

// carried is a body that goes over the wire as it is.
type carried struct {
	*Body
	io.Closer
}

// chunks reports whether the source can be written in chunks.
func (b *Body) chunks() bool {
	_, ok := b.r.(transfer.ChunkWriter)
	return ok
}

// chunkSize is how much of a body is handed over at a time. The stall guard sees progress after each chunk, so on a line so slow that one
// takes longer than Stall the upload would be cut off: 6.4 KiB/s with the default.
const chunkSize = 128 << 10

// writeTo writes up to n bytes of the body to w, a chunk at a time from where they lie.
func (b *Body) writeTo(w io.Writer, n int64) (written int64, err error) {
	for n > 0 && err == nil {
		var m int64
		m, err = b.writeChunk(w, min(n, chunkSize))
		written, n = written+m, n-m
	}
	if err == io.EOF { //nolint:errorlint // the end is io.EOF itself
		err = nil // as io.Copy has it
	}
	return written, err
}

func (b *Body) writeChunk(w io.Writer, most int64) (int64, error) {
	b.mu.Lock() // LetGo waits for the chunk: the transport has closed the connection by then, or is about to
	defer b.mu.Unlock()
	if b.gone {
		return 0, ErrLetGo
	}
	out := &watchedWriter{Writer: w}
	n, err := b.r.(transfer.ChunkWriter).WriteChunk(out, most)
	b.pos += n
	if err != nil && out.err == nil && err != io.EOF { //nolint:errorlint // the end is io.EOF itself
		b.err = err // not the connection's fault
	}
	return n, err
}

// watchedWriter remembers whether it was the connection that failed.
type watchedWriter struct {
	io.Writer
	err error
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}
