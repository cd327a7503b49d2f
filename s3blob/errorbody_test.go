package s3blob

import (
	"io"
	"net/http"
	"testing"

	"github.com/wholeblob/wholeblob/internal/transfer"
)

// flood is a transport whose replies are errors with a body that does not end by itself.
type flood struct {
	line
	read, closed int
}

// RoundTrip implements http.RoundTripper.
func (f *flood) RoundTrip(req *http.Request) (*http.Response, error) {
	reply, err := f.line.RoundTrip(req)
	reply.Body, reply.ContentLength = f, -1
	f.read, f.closed = 0, 0
	return reply, err
}

// Read implements io.Reader.
func (f *flood) Read(p []byte) (int, error) {
	f.read += len(p)
	if f.read > 16<<20 { // enough for the test
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

// Close implements io.Closer.
func (f *flood) Close() error {
	f.closed++
	return nil
}

// The document of an error is kept in memory to be read, and so only up to a bound. Beyond it the status speaks.
func TestBodiesOfErrorsAreBounded(t *testing.T) {
	f := &flood{line: line{status: http.StatusForbidden}}
	r, sdk := bothWays(t, "b", Options{Endpoint: "http://127.0.0.1:1"}, f)
	check := func(name string, err error) {
		t.Helper()
		if err == nil || f.read > 1<<20 || f.closed == 0 {
			t.Errorf("%s: %d bytes read, closed %d times: %v", name, f.read, f.closed, err)
		}
	}
	for _, c := range leanCalls() {
		if c.name == "head" {
			continue
		}
		_, err := c.call(t.Context(), r, "k")
		check(c.name, err)
		_, err = c.call(t.Context(), sdk, "k")
		check(c.name+" by the SDK", err)
	}
	_, err := r.List(t.Context(), transfer.ListRequest{})
	check("list", err)
}
