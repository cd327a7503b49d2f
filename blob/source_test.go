package blob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
)

var errReader = errors.New("the reader's own error")

// readerFunc and readerAtFunc are readers whose every call is scripted.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type readerAtFunc func(p []byte, off int64) (int, error)

func (f readerAtFunc) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// steps returns a reader that answers each Read by the next step and the last one for ever.
func steps(list ...readerFunc) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		step := list[0]
		if len(list) > 1 {
			list = list[1:]
		}
		return step(p)
	})
}

// give answers with as much of s as fits, and err.
func give(s string, err error) readerFunc {
	return func(p []byte) (int, error) { return copy(p, s), err }
}

func count(n int, err error) readerFunc { return func([]byte) (int, error) { return n, err } }

func readAll(s Source) ([]byte, error) { return io.ReadAll(s.Reader()) }

// wantSourceError checks that err is a *SourceError of that offset, and wraps target unless that is nil.
func wantSourceError(t *testing.T, err error, offset int64, target error) {
	t.Helper()
	var s *SourceError
	if !errors.As(err, &s) {
		t.Fatalf("%v is no *SourceError", err)
	}
	if s.Offset != offset || target != nil && !errors.Is(err, target) {
		t.Errorf("%v: offset %d, want %d and an error that matches %v", err, s.Offset, offset, target)
	}
}

func TestSourceYieldsItsBytesHoweverTheReaderCutsThem(t *testing.T) {
	const text = "exactly these bytes"
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"plain":           func(r io.Reader) io.Reader { return r },
		"one byte":        iotest.OneByteReader,
		"half":            iotest.HalfReader,
		"data with EOF":   iotest.DataErrReader,
		"half, with EOF":  func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.HalfReader(r)) },
		"empty reads too": func(r io.Reader) io.Reader { return &hesitant{r: r} },
	} {
		for _, n := range []int{0, 1, 2, len(text)} {
			for _, size := range []int64{int64(n), -1} {
				s := Stream(wrap(strings.NewReader(text[:n])), size)
				if got, err := readAll(s); err != nil || string(got) != text[:n] {
					t.Errorf("%s, %d bytes of size %d: %q, %v", name, n, size, got, err)
				}
			}
		}
	}
}

// hesitant returns 0, nil before each byte, as io.Reader allows and discourages.
type hesitant struct {
	r io.Reader
	n int
}

func (h *hesitant) Read(p []byte) (int, error) {
	if h.n++; h.n%50 != 0 {
		return 0, nil
	}
	return h.r.Read(p[:min(len(p), 1)])
}

func TestSourcesAreGoodReaders(t *testing.T) {
	content := []byte("content of a source, long enough to be cut")
	size := int64(len(content))
	for name, s := range map[string]Source{"bytes": Bytes(content), "reader at": ReaderAt(bytes.NewReader(content), size)} {
		// A ReaderAt source is good even if its reader has more, and for as often as one likes.
		for range 2 {
			if err := iotest.TestReader(s.Reader(), content); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := iotest.TestReader(s.Section(3, 10), content[3:13]); err != nil {
				t.Errorf("%s: a section: %v", name, err)
			}
			if err := iotest.TestReader(io.NewSectionReader(s.ReaderAt(), 0, size), content); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := iotest.TestReader(ReaderAt(bytes.NewReader(content), 7).Reader(), content[:7]); err != nil {
		t.Errorf("a ReaderAt that holds more than the size: %v", err)
	}
	if err := iotest.TestReader(Stream(bytes.NewReader(content), size).Reader(), content); err != nil {
		t.Errorf("stream: %v", err)
	}
}

func TestStreamOfAnotherLengthIsSourceLength(t *testing.T) {
	for _, c := range []struct {
		name   string
		r      io.Reader
		size   int64
		read   int
		offset int64
	}{
		{"empty", strings.NewReader(""), 1, 0, 0},
		{"one short", strings.NewReader("abc"), 4, 3, 3},
		{"one short, with EOF", steps(give("abc", io.EOF)), 4, 3, 3},
		{"one long", strings.NewReader("abcd"), 3, 3, 3},
		{"one long, with EOF", steps(give("abc", nil), give("d", io.EOF)), 3, 3, 3},
		{"one long, with an error", steps(give("abc", nil), give("d", errReader)), 3, 3, 3},
		{"not empty", strings.NewReader("a"), 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Stream(c.r, c.size).Reader()
			got, err := io.ReadAll(r)
			wantSourceError(t, err, c.offset, ErrSourceLength)
			if len(got) != c.read {
				t.Errorf("%d bytes came, want %d", len(got), c.read)
			}
			if n, again := r.Read(make([]byte, 1)); n != 0 || again != err { //nolint:errorlint // the very same
				t.Errorf("the next Read is %d, %v: the error does not stick", n, again)
			}
		})
	}
}

// None of these may look like the end of the content: an end that is no io.EOF, a failure, a broken reader.
func TestFailingStreamNeverEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		r      func() io.Reader
		offset int64
		target error
	}{
		{"error", func() io.Reader { return iotest.ErrReader(errReader) }, 0, errReader},
		{"time-out", func() io.Reader { return iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("abc"))) }, 1, iotest.ErrTimeout},
		{"bytes and error", func() io.Reader { return steps(give("ab", errReader), give("", io.EOF)) }, 2, errReader},
		{"all bytes and error", func() io.Reader { return steps(give("abc", errReader), give("", io.EOF)) }, 3, errReader},
		{"unexpected EOF", func() io.Reader { return steps(give("ab", io.ErrUnexpectedEOF)) }, 2, io.ErrUnexpectedEOF},
		{"wrapped EOF", func() io.Reader { return steps(give("abc", nil), count(0, fmt.Errorf("cut: %w", io.EOF))) }, 3, io.EOF},
		{"panic", func() io.Reader { return steps(give("ab", nil), func([]byte) (int, error) { panic(errReader) }) }, 2, errReader},
		{"panic with text", func() io.Reader { return steps(give("ab", nil), func([]byte) (int, error) { panic("boom") }) }, 2, nil},
		{"nil pointer", func() io.Reader { return (*strings.Reader)(nil) }, 0, nil},
		{"count too large", func() io.Reader { return readerFunc(func(p []byte) (int, error) { return len(p) + 1, nil }) }, 0, nil},
		{"count too large with EOF", func() io.Reader { return readerFunc(func(p []byte) (int, error) { return len(p) + 1, io.EOF }) }, 0, nil},
		{"negative count", func() io.Reader { return steps(give("a", nil), count(-1, nil)) }, 1, nil},
		{"negative count with EOF", func() io.Reader { return steps(count(-1, io.EOF)) }, 0, nil},
		{"empty reads for ever", func() io.Reader { return steps(give("a", nil), count(0, nil)) }, 1, io.ErrNoProgress},
	} {
		for _, size := range []int64{3, -1} {
			t.Run(fmt.Sprintf("%s, size %d", c.name, size), func(t *testing.T) {
				r := Stream(c.r(), size).Reader()
				_, err := io.ReadAll(r)
				wantSourceError(t, err, c.offset, c.target)
				if errors.Is(err, ErrSourceLength) {
					t.Errorf("%v is taken for a wrong length", err)
				}
				if n, again := r.Read(make([]byte, 1)); n != 0 || again != err { //nolint:errorlint // the very same
					t.Errorf("the next Read is %d, %v: the error does not stick", n, again)
				}
			})
		}
	}
}

func TestAnEmptyBufferReadsNothing(t *testing.T) {
	r := Stream(strings.NewReader("a"), 1).Reader()
	for range 2 * maxEmptyReads {
		if n, err := r.Read(nil); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got, err := io.ReadAll(r); string(got) != "a" || err != nil {
		t.Error(got, err)
	}
}

func TestReaderAtSourceOfWrongBehaviour(t *testing.T) {
	const size = 10
	full := func(err error) readerAtFunc { return func(p []byte, _ int64) (int, error) { return len(p), err } }
	n := func(n int, err error) readerAtFunc { return func([]byte, int64) (int, error) { return n, err } }
	for _, c := range []struct {
		name   string
		r      io.ReaderAt
		offset int64
		target error // nil: none of its own
		count  int
	}{
		{"ends early", strings.NewReader("abcdef"), 6, ErrSourceLength, 4},
		{"ends before", strings.NewReader(""), 2, ErrSourceLength, 0},
		{"fewer bytes and no error", n(3, nil), 5, nil, 3},
		{"nothing and no error", n(0, nil), 2, nil, 0},
		{"error", n(0, errReader), 2, errReader, 0},
		{"some bytes and error", n(3, errReader), 5, errReader, 3},
		{"all bytes and error", full(errReader), 7, errReader, 0},
		{"unexpected EOF", n(3, io.ErrUnexpectedEOF), 5, io.ErrUnexpectedEOF, 3},
		{"wrapped EOF", n(3, fmt.Errorf("cut: %w", io.EOF)), 5, io.EOF, 3},
		{"panic", readerAtFunc(func([]byte, int64) (int, error) { panic(errReader) }), 2, errReader, 0},
		{"nil pointer", (*strings.Reader)(nil), 2, nil, 0},
		{"count too large", n(6, nil), 2, nil, 0},
		{"count too large with EOF", n(6, io.EOF), 2, nil, 0},
		{"negative count", n(-1, nil), 2, nil, 0},
		{"negative count with EOF", n(-1, io.EOF), 2, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ReaderAt(c.r, size)
			got, err := s.ReaderAt().ReadAt(make([]byte, 5), 2)
			wantSourceError(t, err, c.offset, c.target)
			if errors.Is(err, ErrSourceLength) != (c.target == ErrSourceLength) || got != c.count { //nolint:errorlint // the table's
				t.Errorf("%d, %v", got, err)
			}
			// What a store uses must fail too, none of it may end well.
			if _, err := readAll(s); err == nil {
				t.Error("reading it to the end succeeds")
			}
			if _, err := io.ReadFull(s.Section(2, 5), make([]byte, 5)); err == nil {
				t.Error("reading a section succeeds")
			}
		})
	}
}

func TestReaderAtSourceReadsWithinItsSize(t *testing.T) {
	asked := func(p []byte, off int64) (int, error) {
		if off < 0 || off+int64(len(p)) > 10 {
			t.Errorf("the reader was asked for [%d, +%d)", off, len(p))
		}
		return len(p), nil
	}
	r := ReaderAt(readerAtFunc(asked), 10).ReaderAt()
	for _, c := range []struct {
		off  int64
		p, n int
		err  error
	}{
		{0, 4, 4, nil}, {0, 10, 10, io.EOF}, {0, 11, 10, io.EOF}, {9, 5, 1, io.EOF}, {10, 1, 0, io.EOF}, {11, 1, 0, io.EOF}, {3, 0, 0, nil},
	} {
		if n, err := r.ReadAt(make([]byte, c.p), c.off); n != c.n || err != c.err { //nolint:errorlint // io.EOF itself
			t.Errorf("%d bytes at %d: %d, %v", c.p, c.off, n, err)
		}
	}
	if n, err := r.ReadAt(make([]byte, 1), -1); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a negative offset: %d, %v", n, err)
	}
	// io.EOF together with the last bytes is the other way that io.ReaderAt allows.
	r = ReaderAt(readerAtFunc(func(p []byte, _ int64) (int, error) { return len(p), io.EOF }), 10).ReaderAt()
	if n, err := r.ReadAt(make([]byte, 5), 2); n != 5 || err != nil {
		t.Errorf("io.EOF before the declared size is passed on: %d, %v", n, err)
	}
}

func TestReaderAtSourceServesManyAtOnce(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 1000)
	for _, s := range []Source{Bytes(content), ReaderAt(bytes.NewReader(content), int64(len(content)))} {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				off := int64(i * 1000)
				part, err := io.ReadAll(s.Section(off, 1000))
				if err != nil || !bytes.Equal(part, content[off:off+1000]) {
					t.Errorf("section at %d: %d bytes, %v", off, len(part), err)
				}
				if whole, err := readAll(s); err != nil || !bytes.Equal(whole, content) {
					t.Errorf("whole: %d bytes, %v", len(whole), err)
				}
			})
		}
		wg.Wait()
	}
}

func TestStreamServesOneReaderAmongAllItsCopies(t *testing.T) {
	streams := make([]Source, 100_000)
	for i := range streams {
		streams[i] = Stream(strings.NewReader("once"), 4)
	}
	// All take the streams in the same order. To take one is slower than to be refused, so those behind catch up with
	// the first and race with it for each from there on.
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, s := range slices.Clone(streams) { // copies
				if s.Reader() != nil {
					taken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := taken.Load(); n != int64(len(streams)) {
		t.Errorf("%d streams have %d readers", len(streams), n)
	}
	for _, s := range streams {
		if err := s.Check(); !errors.Is(err, ErrInvalidOption) || !s.Taken() {
			t.Fatalf("a stream that has been taken: Taken %v, Check %v", s.Taken(), err)
		}
	}
}

func TestSourceSaysWhatItIs(t *testing.T) {
	content := []byte("12345")
	for _, c := range []struct {
		name     string
		s        Source
		size     int64
		at, read bool // has a ReaderAt, a Reader
		bad      string
	}{
		{"zero", Source{}, 0, false, false, "the zero Source"},
		{"bytes", Bytes(content), 5, true, true, ""},
		{"no bytes", Bytes(nil), 0, true, true, ""},
		{"reader at", ReaderAt(bytes.NewReader(content), 4), 4, true, true, ""},
		{"nil reader at", ReaderAt(nil, 4), 4, true, true, "ReaderAt source of a nil reader"},
		{"reader at of negative size", ReaderAt(bytes.NewReader(content), -1), -1, true, true, "ReaderAt source of negative size -1"},
		{"stream", Stream(bytes.NewReader(content), 5), 5, false, true, ""},
		{"stream of unknown size", Stream(bytes.NewReader(content), -7), -1, false, true, ""},
		{"nil stream", Stream(nil, 5), 5, false, true, "Stream source of a nil reader"},
	} {
		err := c.s.Check()
		if c.bad == "" && err != nil || c.bad != "" && (!errors.Is(err, ErrInvalidOption) || err.Error() != "invalid option: "+c.bad) {
			t.Errorf("%s: Check is %v", c.name, err)
		}
		if c.s.Size() != c.size || c.s.Taken() || (c.s.ReaderAt() != nil) != c.at || (c.s.Reader() != nil) != c.read {
			t.Errorf("%s: size %d, taken %v, ReaderAt %v, Reader %v", c.name, c.s.Size(), c.s.Taken(), c.s.ReaderAt(), c.s.Reader())
		}
		if c.bad == "" && (c.s.Section(0, 0) != nil) != c.at {
			t.Errorf("%s: Section %v", c.name, c.s.Section(0, 0))
		}
	}
	if r := Stream(bytes.NewReader(content), 5); r.Check() != nil || r.Taken() {
		t.Error("Check took the stream")
	}
}

// FuzzExactReader drives a Stream by a script and compares it with what io.Reader's documentation says about the script.
// A byte of the script is one answer of the inner reader: its low 4 bits the count, then io.EOF, then an error.
func FuzzExactReader(f *testing.F) {
	f.Add([]byte{3, 0x10}, int64(3), uint8(8))
	f.Add([]byte{0x13}, int64(3), uint8(2))
	f.Add([]byte{3, 1, 0x10}, int64(3), uint8(8))
	f.Add([]byte{3, 0x22}, int64(-1), uint8(8))
	f.Add([]byte{0, 0, 0, 0x31}, int64(1), uint8(1))
	f.Fuzz(func(t *testing.T, script []byte, size int64, buffer uint8) {
		size = max(-1, size%64)
		i, sent := 0, 0
		var end error // what the script said at the end: io.EOF or errReader
		r := Stream(readerFunc(func(p []byte) (int, error) {
			if i == len(script) || end != nil {
				end = io.EOF
				return 0, io.EOF
			}
			b := script[i]
			n := min(int(b&0x0f), len(p))
			for k := range n {
				p[k] = byte(sent + k)
			}
			sent += n
			if int(b&0x0f) > n {
				script[i] -= byte(n) // the rest with the next Read
				return n, nil
			}
			i++
			switch {
			case b&0x20 != 0:
				end = errReader
			case b&0x10 != 0:
				end = io.EOF
			}
			return n, end
		}), size).Reader()
		script = bytes.Clone(script)

		var got []byte
		var err error
		for err == nil {
			p := make([]byte, int(buffer%16)+1)
			var n int
			n, err = r.Read(p)
			got = append(got, p[:n]...)
		}
		for k := range got {
			if got[k] != byte(k) {
				t.Fatalf("byte %d is %d", k, got[k])
			}
		}
		var s *SourceError
		switch {
		case err == io.EOF:
			if end != io.EOF || len(got) != sent || size >= 0 && int64(sent) != size { //nolint:errorlint // as above
				t.Fatalf("ended well after %d of %d bytes of size %d; the reader said %v", len(got), sent, size, end)
			}
		case !errors.As(err, &s):
			t.Fatalf("%v is no *SourceError", err)
		case errors.Is(err, ErrSourceLength):
			if size < 0 || int64(sent) == size || int64(len(got)) > size {
				t.Fatalf("%v, of %d bytes sent with size %d", err, sent, size)
			}
		case errors.Is(err, errReader):
			if end != errReader || len(got) != sent { //nolint:errorlint // as above
				t.Fatalf("%v after %d of %d bytes; the reader said %v", err, len(got), sent, end)
			}
		case !errors.Is(err, io.ErrNoProgress):
			t.Fatal(err)
		}
	})
}
