package fakehttp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is the smallest protocol: it answers with the body it got, refuses who has no key, and reads at most 100 bytes.
type echo struct {
	*fakehttp.Call
	handled func(error)
}

func (e echo) Authenticate() *fakehttp.Answer {
	if e.Header.Get("Key") == "" {
		return e.Error(http.StatusUnauthorized, "", "")
	}
	return nil
}

func (e echo) Handle() *fakehttp.Answer {
	body, err := e.ReadBody(100)
	if e.handled(err); err != nil {
		return e.Error(http.StatusBadRequest, "", err.Error())
	}
	a := fakehttp.NewAnswer(http.StatusOK)
	a.Body = fakehttp.Rope{body[:len(body)/2], body[len(body)/2:]}
	a.Length = 7 // of answers to HEAD only
	return a
}

func (e echo) Error(status int, code, message string) *fakehttp.Answer {
	a := fakehttp.Document(status, "text/error", []byte(code+" "+message))
	a.Set("Code", "secret of the document")
	return a
}

func (e echo) Finish(a *fakehttp.Answer) { a.Header.Set("Request", e.ID) }

type server struct {
	*fakehttp.Server
	t    *testing.T
	errs chan error
}

func start(t *testing.T, opts fakehttp.Options) *server {
	t.Helper()
	s := &server{t: t, errs: make(chan error, 100)}
	var err error
	if s.Server, err = fakehttp.Listen(opts); err != nil {
		t.Fatal(err)
	}
	s.Serve(func(c *fakehttp.Call) fakehttp.Exchange {
		c.Op, c.Key, c.Content = "Echo", strings.TrimPrefix(c.RawPath, "/"), true
		c.Notes = []string{"note"}
		return echo{c, func(err error) { s.errs <- err }}
	})
	t.Cleanup(s.Close)
	return s
}

// reply is an answer, read to its end.
type reply struct {
	status int
	header http.Header
	length int64 // as announced
	body   string
}

// do sends a request; an empty key is not sent.
func (s *server) do(method, key string, body io.Reader) reply {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL()+"/k", body)
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Key", key)
	}
	c := s.Client()
	defer c.CloseIdleConnections()
	res, err := c.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Error(err)
	}
	_ = res.Body.Close()
	return reply{res.StatusCode, res.Header, res.ContentLength, string(data)}
}

// unsized hides the length of a body.
func unsized(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }

func TestBodiesAreReadWhole(t *testing.T) {
	for _, opts := range []fakehttp.Options{{HashBodies: true}, {HashBodies: true, InMemory: true}, {HashBodies: true, TLS: true}} {
		s := start(t, opts)
		for _, n := range []int{0, 1, 99, 100} {
			want := strings.Repeat("x", n)
			sum := sha256.Sum256([]byte(want))
			for _, body := range []io.Reader{strings.NewReader(want), unsized(want)} {
				s.ResetLog()
				if got := s.do("PUT", "yes", body); got.status != 200 || got.body != want {
					t.Errorf("%d bytes: status %d, %q", n, got.status, got.body)
				}
				if e := s.Log()[0]; e.BodyLen != int64(n) || e.BodySHA256 != hex.EncodeToString(sum[:]) || e.Sent != int64(n) {
					t.Errorf("%d bytes: the log has %+v", n, e)
				}
			}
		}
		for _, body := range []io.Reader{strings.NewReader(strings.Repeat("x", 101)), unsized(strings.Repeat("x", 101))} {
			if got := s.do("PUT", "yes", body); got.status != 400 || !strings.Contains(got.body, "limit") {
				t.Errorf("101 bytes: status %d, %q", got.status, got.body)
			}
		}
	}
}

func TestBodyThatEndsEarlyIsAnErrorWithWhatCame(t *testing.T) {
	s := start(t, fakehttp.Options{})
	for _, head := range []string{"Content-Length: 50\r\n\r\n12345", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"} {
		s.ResetLog()
		seen := s.Inject(fakehttp.Fault{})
		conn, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "PUT /k HTTP/1.1\r\nHost: x\r\nKey: yes\r\n"+head); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		<-seen.Reached()
		if err := <-s.errs; err == nil || errors.Is(err, fakehttp.ErrTooLarge) {
			t.Errorf("read with %v", err)
		}
		s.CloseIdleConns() // the request is over, and the log has it
		if e := s.Log()[0]; e.BodyLen != 5 {
			t.Errorf("the log has %d bytes", e.BodyLen)
		}
		seen.Remove()
	}
}

func TestHeadHasALengthAndNoBody(t *testing.T) {
	s := start(t, fakehttp.Options{})
	got := s.do("HEAD", "yes", nil)
	if got.length != 7 || got.body != "" || got.header.Get("Request") == "" {
		t.Errorf("length %d, body %q, headers %v", got.length, got.body, got.header)
	}
}

// A request that is not authentic meets no fault, and is finished like every answer.
func TestRefusedRequestsMeetNoFault(t *testing.T) {
	s := start(t, fakehttp.Options{})
	in := s.Inject(fakehttp.Fault{Op: "Echo", Key: "k", Reply: &fakehttp.Reply{Status: 503}})
	if got := s.do("PUT", "", strings.NewReader("x")); got.status != 401 || got.header.Get("Request") == "" || in.Seen() != 0 {
		t.Errorf("status %d, %d seen", got.status, in.Seen())
	}
	if got := s.do("PUT", "yes", strings.NewReader("x")); got.status != 503 || in.Hits() != 1 {
		t.Errorf("status %d, %d hits", got.status, in.Hits())
	}
	if got, want := s.Log().String(), "Echo k note 0B -> 401\nEcho k note 0B -> 503\n"; got != want {
		t.Errorf("log:\n%s", got)
	}
}

// A scripted body comes with nothing else of the service's errors, which would give it away; an error document with all of it.
func TestScriptedBodyHasOnlyTheTypeOfAnError(t *testing.T) {
	s := start(t, fakehttp.Options{})
	for _, c := range []struct {
		reply fakehttp.Reply
		body  string
		code  bool
	}{
		{fakehttp.Reply{Status: 500, Code: "C", Message: "M"}, "C M", true},
		{fakehttp.Reply{Body: "page"}, "page", false},
		{fakehttp.Reply{Status: 201, NoBody: true}, "", false},
	} {
		s.Inject(fakehttp.Fault{Reply: &c.reply})
		got := s.do("PUT", "yes", nil)
		if got.body != c.body || (got.header.Get("Code") != "") != c.code || got.header.Get("Content-Type") != "text/error" {
			t.Errorf("%+v: %q, %v", c.reply, got.body, got.header)
		}
	}
}

func TestRanges(t *testing.T) {
	for value, want := range map[string]string{
		"bytes=0-":    "{0 10 true} true",
		"bytes=3-5":   "{3 3 true} true",
		"bytes=3-99":  "{3 7 true} true",
		"bytes=9-":    "{9 1 true} true",
		"bytes=10-":   "{0 0 false} false",
		"bytes=-3":    "{7 3 true} true",
		"bytes=-30":   "{0 10 true} true",
		"bytes=-0":    "{0 0 false} false",
		"bytes=5-3":   "{0 10 false} true",
		"bytes=+1-2":  "{0 10 false} true",
		"bytes=1-2,4": "{0 10 false} true",
		"lines=1-2":   "{0 10 false} true",
	} {
		sp, ok := fakehttp.ParseRange(value, 10)
		if got := fmt.Sprint(sp, ok); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
	if sp, ok := fakehttp.ParseRange("bytes=-3", 0); fmt.Sprint(sp, ok) != "{0 0 false} true" {
		t.Errorf("the end of nothing: %v %t", sp, ok)
	}
}

func TestSteadyLosesNoChange(t *testing.T) {
	var s fakehttp.Steady[struct{ n int }]
	if s.Load().n != 0 {
		t.Error("not zero")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				s.Set(func(k *struct{ n int }) { k.n++ })
			}
		})
	}
	wg.Wait()
	if n := s.Load().n; n != 800 {
		t.Errorf("%d of 800 changes", n)
	}
}
