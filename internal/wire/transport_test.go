package wire

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// memory is a source in memory that counts how it is taken.
type memory struct {
	*bytes.Reader
	read, chunks int
}

func (m *memory) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.read += n
	return n, err
}

func (m *memory) WriteChunk(w io.Writer, most int64) (int64, error) {
	m.chunks++
	if m.Len() == 0 {
		return 0, io.EOF
	}
	return io.CopyN(w, m.Reader, min(most, int64(m.Len())))
}

// Over plain TCP a body goes out in chunks from where it lies, and nothing of it is copied on the way; the trace tells of its connection.
func TestABodyInMemoryIsNotCopied(t *testing.T) {
	const size = 3*chunkSize + 5
	data := bytes.Repeat([]byte("0123456"), size/7+1)[:size]
	var got []byte
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
	}))
	defer srv.Close()
	tr := NewTransport()
	defer tr.CloseIdleConnections()

	src := &memory{Reader: bytes.NewReader(data)}
	s := &Sent{Body: NewBody(src, size)}
	req, err := http.NewRequestWithContext(s.Traced(t.Context()), http.MethodPut, srv.URL, io.NopCloser(s.Body))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size
	s.Body.Carry(req)
	s.Enter()
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if !bytes.Equal(got, data) || src.read != 0 || src.chunks < 4 {
		t.Errorf("the server got %d bytes of %d; %d were read, %d chunks written", len(got), size, src.read, src.chunks)
	}
	if err := s.Unread(http.StatusOK); err != nil {
		t.Error(err)
	}
	if e := s.Lost(t.Context(), &blob.Error{}, nil); e.Outcome != blob.Unknown { // there was a connection
		t.Errorf("outcome %v", e.Outcome)
	}
}

// A success that comes before the body has gone out is none.
func TestASuccessBeforeTheBodyIsNone(t *testing.T) {
	s := &Sent{Body: NewBody(bytes.NewReader([]byte("12345")), 5)}
	if err := s.Unread(http.StatusOK); blob.KindOf(err) != blob.ErrUnavailable || blob.OutcomeOf(err) != blob.Unknown {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, s.Body); err != nil {
		t.Fatal(err)
	}
	if err := s.Unread(http.StatusOK); err != nil {
		t.Error(err)
	}
	if err := new(Sent).Unread(http.StatusOK); err != nil {
		t.Error(err)
	}
}
