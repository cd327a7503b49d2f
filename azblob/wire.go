package azblob

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/wholeblob/wholeblob/internal/transfer"
)

// errLetGo is what a transport gets that reads a body after its attempt has ended.
var errLetGo = errors.New("azblob: body read after its attempt has ended")

// sentBody counts what is handed over of a body, remembers why its source failed, and can be taken away from a
// transport: http.RoundTripper may read a request's body after RoundTrip has returned, and the caller's
// memory must not be touched by then.
type sentBody struct {
	mu   sync.Mutex // held while the source is read: letGo waits for that
	r    io.ReadSeeker
	size int64
	pos  int64 // bytes handed over since the last rewind
	err  error // of the source
	gone bool
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
	if err != nil && err != io.EOF { //nolint:errorlint // the end is io.EOF itself
		b.err = err
	}
	return n, err
}

// Seek implements io.Seeker: the SDK seeks to the end to learn the length, and rewinds.
func (b *sentBody) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return 0, errLetGo
	}
	pos, err := b.r.Seek(offset, whence)
	if err == nil {
		b.pos = pos
	}
	return pos, err
}

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

// chunkSize is how much of a body is handed over at a time. The stall guard sees progress after each chunk, so on a line so slow that one
// takes longer than Stall the upload would be cut off: 6.4 KiB/s with the default.
const chunkSize = 128 << 10

// writeTo writes up to n bytes of the body to conn, a chunk at a time from where they lie.
func (b *sentBody) writeTo(conn io.Writer, n int64) (written int64, err error) {
	for n > 0 && err == nil {
		var m int64
		m, err = b.writeChunk(conn, min(n, chunkSize))
		written, n = written+m, n-m
	}
	if err == io.EOF { //nolint:errorlint // the end is io.EOF itself
		err = nil // as io.Copy has it
	}
	return written, err
}

func (b *sentBody) writeChunk(conn io.Writer, most int64) (int64, error) {
	b.mu.Lock() // letGo waits for the chunk: the transport has closed conn by then, or is about to
	defer b.mu.Unlock()
	if b.gone {
		return 0, errLetGo
	}
	wire := &wireWriter{conn: conn}
	n, err := b.r.(transfer.ChunkWriter).WriteChunk(wire, most)
	b.pos += n
	if err != nil && wire.err == nil && err != io.EOF { //nolint:errorlint // the end is io.EOF itself
		b.err = err // not the connection's fault
	}
	return n, err
}

// wireWriter remembers whether it was the connection that failed.
type wireWriter struct {
	conn io.Writer
	err  error
}

func (w *wireWriter) Write(p []byte) (int, error) {
	n, err := w.conn.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// wireBody is a request's body, sent as it is. Close is the SDK's.
type wireBody struct {
	*sentBody
	io.Closer
}

// dial returns a dialer whose plain TCP connections take bodies in chunks.
func dial(d *net.Dialer) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok {
			return wireConn{tcp}, nil
		}
		return conn, err
	}
}

// wireConn is a TCP connection that net/http copies bodies to.
type wireConn struct{ *net.TCPConn }

// ReadFrom implements io.ReaderFrom. net/http hands a body over as a reader limited to the announced length.
func (c wireConn) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		return c.TCPConn.ReadFrom(r)
	}
	body, ok := limited.R.(wireBody)
	if !ok {
		return c.TCPConn.ReadFrom(r)
	}
	if _, ok := body.r.(transfer.ChunkWriter); !ok {
		return c.TCPConn.ReadFrom(r)
	}
	n, err := body.writeTo(c.TCPConn, limited.N)
	limited.N -= n
	return n, err
}
