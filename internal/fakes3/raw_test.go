package fakes3_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// raw speaks plain net/http to a server that checks no signatures.
type raw struct {
	t *testing.T
	s *fakes3.Server
	c *http.Client
}

func startRaw(t *testing.T, opts fakes3.Options) *raw {
	t.Helper()
	opts.Anonymous = true
	s := start(t, opts)
	c := s.Client()
	t.Cleanup(c.CloseIdleConnections)
	return &raw{t, s, c}
}

// reply is an answer read to its end; err is what ended it, if anything.
type reply struct {
	*http.Response
	body string
	err  error
}

// do sends one request; headers are pairs. A reply without a Response means
// that no headers came.
func (r *raw) do(method, path, body string, headers ...string) reply {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.s.URL()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.c.Do(req)
	if err != nil {
		return reply{err: err}
	}
	data, err := io.ReadAll(resp.Body)
	closeBody(r.t, resp)
	return reply{resp, string(data), err}
}

// want is what a test expects of a reply; zero fields are not looked at.
type want struct {
	status int
	body   string
	header map[string]string // "" for absent
	broken bool              // the body, or the whole answer, must fail
	inBody string
}

func (r *raw) expect(got reply, w want) {
	r.t.Helper()
	if broken := got.err != nil; broken != w.broken {
		r.t.Errorf("error %v, want broken: %v", got.err, w.broken)
	}
	if got.Response == nil {
		if w.status != 0 {
			r.t.Errorf("no answer, want status %d", w.status)
		}
		return
	}
	if w.status != 0 && got.StatusCode != w.status {
		r.t.Errorf("status %d, want %d: %s", got.StatusCode, w.status, got.body)
	}
	if w.body != "" && got.body != w.body {
		r.t.Errorf("body %q, want %q", got.body, w.body)
	}
	if w.inBody != "" && !bytes.Contains([]byte(got.body), []byte(w.inBody)) {
		r.t.Errorf("body %q does not contain %q", got.body, w.inBody)
	}
	for name, v := range w.header {
		if got.Header.Get(name) != v {
			r.t.Errorf("%s: %q, want %q", name, got.Header.Get(name), v)
		}
	}
}
