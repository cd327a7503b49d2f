package blob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Source is the content of a Set: made by Bytes, ReaderAt or Stream. The
// zero Source is none, and refused.
//
// Stores read a Source only through its methods, which check its length and turn
// its panics into errors, so that a source which misbehaves in a
// goroutine of the store fails the Set and not the program.
type Source struct {
	kind   sourceKind
	size   int64
	bytes  []byte
	at     io.ReaderAt
	stream *stream
}

type sourceKind uint8

const (
	sourceNone sourceKind = iota
	sourceBytes
	sourceReaderAt
	sourceStream
)

// stream is shared by all copies of one Stream source, so that only one of them
// is ever read.
type stream struct {
	r     io.Reader
	taken atomic.Bool
}

// Bytes is a source of the bytes of b. They are not copied: b must not change
// until the call that uses it has returned.
func Bytes(b []byte) Source {
	return Source{kind: sourceBytes, size: int64(len(b)), bytes: b}
}

// ReaderAt is a source of the first size bytes of r, such as a file. They are sent
// without being buffered, and read again when a part has to be sent again, from
// several goroutines at once. r may hold more than size bytes; fewer are
// ErrSourceLength.
func ReaderAt(r io.ReaderAt, size int64) Source {
	return Source{kind: sourceReaderAt, size: size, at: r}
}

// Stream is a source that can be read once, in order: exactly size bytes and then
// io.EOF, or of any length if size is negative. A Stream serves one Set: the second use
// is ErrInvalidOption.
func Stream(r io.Reader, size int64) Source {
	return Source{kind: sourceStream, size: max(size, -1), stream: &stream{r: r}}
}

// Size returns the declared length in bytes, negative if it is unknown.
func (s Source) Size() int64 { return s.size }

// Check returns an error that matches ErrInvalidOption if s cannot be read: it
// is the zero Source, its reader is nil, its size is negative, or it is a Stream already taken.
func (s Source) Check() error {
	switch s.kind {
	case sourceNone:
		return fmt.Errorf("%w: the zero Source", ErrInvalidOption)
	case sourceReaderAt:
		if s.at == nil {
			return fmt.Errorf("%w: ReaderAt source of a nil reader", ErrInvalidOption)
		}
		if s.size < 0 {
			return fmt.Errorf("%w: ReaderAt source of negative size %d", ErrInvalidOption, s.size)
		}
	case sourceStream:
		if s.stream.r == nil {
			return fmt.Errorf("%w: Stream source of a nil reader", ErrInvalidOption)
		}
		if s.Taken() {
			return fmt.Errorf("%w: a Stream serves one Set and this one has been used", ErrInvalidOption)
		}
	}
	return nil
}

// Taken reports whether s is a Stream whose Reader has been taken, which no loop
// may try again.
func (s Source) Taken() bool { return s.kind == sourceStream && s.stream.taken.Load() }

// ReaderAt returns the content for reading at any offset, from any number of goroutines,
// and nil for a Stream. Reads within the declared size return all bytes or a *SourceError.
func (s Source) ReaderAt() io.ReaderAt {
	switch s.kind {
	case sourceBytes:
		return bytes.NewReader(s.bytes)
	case sourceReaderAt:
		return checkedReaderAt{r: s.at, size: s.size}
	default:
		return nil
	}
}

// Section returns a fresh reader of the bytes [off, off+n) of a Source that
// is no Stream; nil for a Stream. The section must lie within the declared size.
func (s Source) Section(off, n int64) io.ReadSeeker {
	switch s.kind {
	case sourceBytes: // bytes.Reader is an io.WriterTo: no copy on the way out
		return bytes.NewReader(s.bytes[off : off+n])
	case sourceReaderAt:
		return io.NewSectionReader(checkedReaderAt{r: s.at, size: s.size}, off, n)
	default:
		return nil
	}
}

// Reader returns a reader of the whole content, which must be read to io.EOF: only
// then is the length known to be right. It returns nil for the zero Source and for a Stream
// whose Reader has been taken before; other sources return a fresh reader each time.
// It fails with a *SourceError.
func (s Source) Reader() io.Reader {
	switch s.kind {
	case sourceBytes:
		return bytes.NewReader(s.bytes)
	case sourceReaderAt:
		return io.NewSectionReader(checkedReaderAt{r: s.at, size: s.size}, 0, s.size)
	case sourceStream:
		if s.stream.taken.CompareAndSwap(false, true) {
			return &exactReader{r: s.stream.r, size: s.size}
		}
	}
	return nil
}

// SourceError is the failure of a Source: of its reader (Err is or wraps the reader's
// own error), or of its length (Err matches ErrSourceLength).
type SourceError struct {
	Offset int64 // bytes read before, or the offset of the read that failed
	Err    error
}

// Error names the offset and the cause.
func (e *SourceError) Error() string {
	return fmt.Sprintf("source at byte %d: %v", e.Offset, e.Err)
}

// Unwrap returns Err.
func (e *SourceError) Unwrap() error { return e.Err }

// checkedReaderAt is a ReaderAt source with its length checked and its panics caught.
type checkedReaderAt struct {
	r    io.ReaderAt
	size int64
}

// ReadAt returns io.EOF only at the declared size. An end before it is ErrSourceLength. An error
// beside all the bytes, which io.ReaderAt does not foresee, is taken at its word: the reader may have found out
// that the bytes are wrong.
func (c checkedReaderAt) ReadAt(p []byte, off int64) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, &SourceError{Offset: off, Err: panicked(v)}
		}
	}()
	switch {
	case off < 0:
		return 0, &SourceError{Offset: off, Err: errors.New("negative offset")}
	case off >= c.size:
		return 0, io.EOF
	}
	atEnd := false
	if int64(len(p)) >= c.size-off {
		p, atEnd = p[:c.size-off], true
	}
	n, err = c.r.ReadAt(p, off)
	switch {
	case n < 0 || n > len(p):
		return 0, &SourceError{Offset: off, Err: fmt.Errorf("ReadAt of %d bytes returned the count %d", len(p), n)}
	case err != nil && err != io.EOF:
		err = &SourceError{Offset: off + int64(n), Err: err}
		if n == len(p) {
			n = 0 // io.ReadFull drops the error of a full read
		}
		return n, err
	case n == len(p): // with io.EOF too, which may come with the last bytes
		if atEnd {
			return n, io.EOF
		}
		return n, nil
	case err == nil:
		return n, &SourceError{Offset: off + int64(n), Err: errors.New("ReadAt returned fewer bytes without an error")}
	default:
		return n, &SourceError{Offset: off + int64(n), Err: fmt.Errorf("%w: ended after %d of %d bytes", ErrSourceLength, off+int64(n), c.size)}
	}
}

// panicked returns the error of a reader that panicked with v, and wraps v if that is an error.
func panicked(v any) error {
	if err, ok := v.(error); ok {
		return fmt.Errorf("panic: %w", err)
	}
	return fmt.Errorf("panic: %v", v)
}

// exactReader reads a stream and checks that it has exactly size bytes.
//
// INVARIANT: io.EOF is returned only after the inner reader said io.EOF with n == size
// (or size unknown). An io.ErrUnexpectedEOF of the inner reader is a failure like any other:
// it must never look like the short last part of a stream.
type exactReader struct {
	r    io.Reader
	size int64 // negative: unknown
	n    int64
	err  error // sticky
}

const maxEmptyReads = 100 // as in bufio

// Read implements io.Reader.
func (e *exactReader) Read(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	probe := e.size >= 0 && e.n == e.size
	switch {
	case probe: // one byte more than declared would be too many
		p = make([]byte, 1)
	case e.size >= 0 && int64(len(p)) > e.size-e.n:
		p = p[:e.size-e.n]
	}
	n, err := e.read(p)
	if probe && n > 0 {
		n, err = 0, e.fail(fmt.Errorf("%w: more than %d bytes", ErrSourceLength, e.size))
	}
	e.n += int64(n)
	if err == io.EOF { //nolint:errorlint // as in read
		err = e.end()
	}
	e.err = err
	if n > 0 && err != nil && !probe {
		return n, nil // the bytes first, the sticky error with the next call
	}
	return n, err
}

func (e *exactReader) end() error {
	if e.size >= 0 && e.n < e.size {
		return e.fail(fmt.Errorf("%w: ended after %d of %d bytes", ErrSourceLength, e.n, e.size))
	}
	return io.EOF
}

func (e *exactReader) fail(err error) error { return &SourceError{Offset: e.n, Err: err} }

func (e *exactReader) read(p []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, e.fail(panicked(v))
		}
	}()
	for range maxEmptyReads {
		n, err = e.r.Read(p)
		if n < 0 || n > len(p) {
			return 0, e.fail(fmt.Errorf("Read of %d bytes returned the count %d", len(p), n))
		}
		if err != nil && err != io.EOF { //nolint:errorlint // io.Reader's end is io.EOF itself; a wrapped one is a failure
			return n, &SourceError{Offset: e.n + int64(n), Err: err}
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, e.fail(io.ErrNoProgress)
}
