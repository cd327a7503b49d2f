package fakes3_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakes3"
)

func TestFaultsHitTheChosenRequests(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	r.s.PutObject("bucket", "k", [][]byte{[]byte("x")}, nil)
	r.s.PutObject("bucket", "other", [][]byte{[]byte("x")}, nil)
	statuses := func(method, path string, n int) string {
		var b strings.Builder
		for range n {
			got := r.do(method, path, "")
			if got.err != nil {
				t.Fatal(got.err)
			}
			fmt.Fprint(&b, got.StatusCode, " ")
		}
		return strings.TrimSpace(b.String())
	}
	busy := &fakes3.Reply{Status: 503}
	cases := map[string]struct {
		fault        fakes3.Fault
		method, path string
		want         string
	}{
		"once by default":     {fakes3.Fault{Reply: busy}, "GET", "/bucket/k", "503 200 200 200"},
		"nth":                 {fakes3.Fault{Nth: 3, Reply: busy}, "GET", "/bucket/k", "200 200 503 200"},
		"several":             {fakes3.Fault{Nth: 2, Times: 2, Reply: busy}, "GET", "/bucket/k", "200 503 503 200"},
		"always":              {fakes3.Fault{Nth: 2, Times: -1, Reply: busy}, "GET", "/bucket/k", "200 503 503 503"},
		"list":                {fakes3.Fault{Replies: fakes3.Statuses(429, 0, 500)}, "GET", "/bucket/k", "429 200 500 200"},
		"operation":           {fakes3.Fault{Op: "GetObject", Times: -1, Reply: busy}, "HEAD", "/bucket/k", "200 200 200 200"},
		"operation that fits": {fakes3.Fault{Op: "HeadObject", Times: -1, Reply: busy}, "HEAD", "/bucket/k", "503 503 503 503"},
		"key":                 {fakes3.Fault{Key: "other", Times: -1, Reply: busy}, "GET", "/bucket/k", "200 200 200 200"},
		"key that fits":       {fakes3.Fault{Key: "other", Times: -1, Reply: busy}, "GET", "/bucket/other", "503 503 503 503"},
		"predicate": {fakes3.Fault{Times: -1, Reply: busy, Match: func(r *fakes3.Request) bool { return r.PartNumber == 1 }},
			"GET", "/bucket/k?partNumber=1", "503 503 503 503"},
		"predicate that does not fit": {fakes3.Fault{Times: -1, Reply: busy, Match: func(r *fakes3.Request) bool { return r.PartNumber == 2 }},
			"GET", "/bucket/k?partNumber=1", "206 206 206 206"},
	}
	for name, tc := range cases {
		in := r.s.Inject(tc.fault)
		if got := statuses(tc.method, tc.path, 4); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		want := strings.Count(tc.want, "503") + strings.Count(tc.want, "429 200 500")*3
		if in.Hits() != want {
			t.Errorf("%s: %d hits, want %d", name, in.Hits(), want)
		}
		in.Remove()
	}
	if got := statuses("GET", "/bucket/k", 2); got != "200 200" {
		t.Errorf("after Remove: %s", got)
	}
}

func TestScriptedReplies(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	cases := map[string]struct {
		reply fakes3.Reply
		want  want
	}{
		"slow down":   {fakes3.Reply{Status: 503, RetryAfter: 2 * time.Second}, want{status: 503, inBody: "<Code>SlowDown</Code>", header: map[string]string{"Retry-After": "2"}}},
		"too many":    {fakes3.Reply{Status: 429}, want{status: 429, inBody: "<Code>TooManyRequests</Code>", header: map[string]string{"Retry-After": ""}}},
		"conflict":    {fakes3.Reply{Status: 409}, want{status: 409, inBody: "<Code>ConditionalRequestConflict</Code>"}},
		"own code":    {fakes3.Reply{Status: 403, Code: "RequestTimeTooSkewed"}, want{status: 403, inBody: "<Code>RequestTimeTooSkewed</Code>"}},
		"region":      {*fakes3.WrongRegion("eu-west-1"), want{status: 301, inBody: "PermanentRedirect", header: map[string]string{"X-Amz-Bucket-Region": "eu-west-1"}}},
		"error in ok": {fakes3.Reply{Body: fakes3.ErrorXML("InternalError", "sorry")}, want{status: 200, inBody: "<Code>InternalError</Code>"}},
		"html":        {fakes3.Reply{Body: fakes3.HTMLPage, Header: map[string]string{"Content-Type": "text/html"}}, want{status: 200, body: fakes3.HTMLPage, header: map[string]string{"Content-Type": "text/html"}}},
		"empty":       {fakes3.Reply{NoBody: true}, want{status: 200, header: map[string]string{"Content-Length": "0"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &raw{t, r.s, r.c}
			r.s.Inject(fakes3.Fault{Op: "PutObject", Reply: &tc.reply})
			got := r.do("PUT", "/bucket/"+name[:3], "x")
			r.expect(got, tc.want)
			if _, stored := r.s.Object("bucket", name[:3]); stored {
				t.Error("stored although the reply was scripted without Commit")
			}
			tc.reply.Commit = true
			r.s.Inject(fakes3.Fault{Op: "PutObject", Reply: &tc.reply})
			r.expect(r.do("PUT", "/bucket/"+name[:3], "x"), tc.want)
			if _, stored := r.s.Object("bucket", name[:3]); !stored {
				t.Error("not stored although the reply was scripted with Commit")
			}
		})
	}
}

func TestSpacesComeBeforeTheAnswer(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	r.s.Inject(fakes3.Fault{Reply: &fakes3.Reply{Body: fakes3.ErrorXML("InternalError", "late")}, Shape: fakes3.Shape{Spaces: 30}})
	got := r.do("POST", "/bucket/k?uploads", "")
	r.expect(got, want{status: 200, inBody: "InternalError", header: map[string]string{"Content-Length": ""}})
	if !strings.HasPrefix(got.body, strings.Repeat(" ", 30)+"<?xml") {
		t.Errorf("body %.60q", got.body)
	}
}

func TestConnectionsThatEnd(t *testing.T) {
	cases := map[string]struct {
		fault  fakes3.Fault
		broken bool
		stored bool
	}{
		"nothing":       {fakes3.Fault{}, false, true},
		"before, close": {fakes3.Fault{Before: fakes3.Close}, true, false},
		"before, reset": {fakes3.Fault{Before: fakes3.Reset}, true, false},
		"after, close":  {fakes3.Fault{After: fakes3.Close}, true, true},
		"after, reset":  {fakes3.Fault{After: fakes3.Reset}, true, true},
	}
	for _, mode := range []fakes3.Options{{}, {TLS: true}, {InMemory: true}} {
		r := startRaw(t, mode)
		for name, tc := range cases {
			tc.fault.Op = "PutObject"
			in := r.s.Inject(tc.fault)
			got := r.do("PUT", "/bucket/"+name[:1], "data")
			if broken := got.err != nil; broken != tc.broken {
				t.Errorf("%s: error %v, want broken: %v", name, got.err, tc.broken)
			}
			o, stored := r.s.Object("bucket", name[:1])
			if stored != tc.stored || stored && string(o.Bytes()) != "data" {
				t.Errorf("%s: stored %v, want %v", name, stored, tc.stored)
			}
			r.s.DeleteObject("bucket", name[:1])
			in.Remove()
		}
	}
}

func TestCutBodies(t *testing.T) {
	for _, mode := range []fakes3.Options{{}, {TLS: true}, {InMemory: true}} {
		r := startRaw(t, mode)
		r.s.PutObject("bucket", "k", digits, nil)
		for _, length := range []fakes3.LengthStyle{fakes3.Announced, fakes3.Chunked} {
			r.s.Inject(fakes3.Fault{Cut: &fakes3.Cut{At: 7}, Shape: fakes3.Shape{Length: length}})
			r.expect(r.do("GET", "/bucket/k", ""), want{status: 200, body: allDigits[:7], broken: true})
		}
		// Without the last chunk even a whole body is not known to be whole.
		r.s.Inject(fakes3.Fault{Cut: &fakes3.Cut{At: 25}, Shape: fakes3.Shape{Length: fakes3.Chunked}})
		r.expect(r.do("GET", "/bucket/k", ""), want{status: 200, body: allDigits, broken: true})
		// A body that ends with the connection looks whole wherever it ends.
		r.s.Inject(fakes3.Fault{Cut: &fakes3.Cut{At: 7}, Shape: fakes3.Shape{Length: fakes3.CloseDelimited}})
		r.expect(r.do("GET", "/bucket/k", ""), want{status: 200, body: allDigits[:7]})
		r.s.Inject(fakes3.Fault{Cut: &fakes3.Cut{At: 0, How: fakes3.Reset}})
		r.expect(r.do("GET", "/bucket/k", ""), want{broken: true})
	}
}

// TestSilenceEnds has a client that gives up, a release, and a server that
// closes: each ends the silence, and no goroutine is left (TestMain).
func TestSilenceEnds(t *testing.T) {
	cases := map[string]fakes3.Fault{
		"no headers": {Before: fakes3.Silence},
		"lost reply": {After: fakes3.Silence},
		"mid-body":   {Cut: &fakes3.Cut{At: 7, How: fakes3.Silence}},
	}
	for name, fault := range cases {
		for _, how := range []string{"client", "release", "close"} {
			t.Run(name+" ended by "+how, func(t *testing.T) {
				r := startRaw(t, fakes3.Options{})
				r.s.PutObject("bucket", "k", digits, nil)
				in := r.s.Inject(fault)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan reply)
				go func() {
					req, _ := http.NewRequestWithContext(ctx, http.MethodGet, r.s.URL()+"/bucket/k", nil)
					resp, err := r.c.Do(req)
					if err == nil {
						_, err = resp.Body.Read(make([]byte, 100))
						for err == nil {
							_, err = resp.Body.Read(make([]byte, 100))
						}
						_ = resp.Body.Close()
					}
					done <- reply{err: err}
				}()
				<-in.Reached()
				switch how {
				case "client":
					cancel()
				case "release":
					in.Release()
				case "close":
					r.s.Close()
				}
				if got := <-done; got.err == nil {
					t.Error("no error")
				}
			})
		}
	}
}

func TestHeldRequests(t *testing.T) {
	cases := map[string]struct {
		fault  fakes3.Fault
		stored bool // while held
	}{
		"before": {fakes3.Fault{HoldBefore: true}, false},
		"after":  {fakes3.Fault{HoldAfter: true}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := startRaw(t, fakes3.Options{})
			in := r.s.Inject(tc.fault)
			done := make(chan reply)
			go func() { done <- r.do("PUT", "/bucket/k", "x") }()
			<-in.Reached()
			if _, stored := r.s.Object("bucket", "k"); stored != tc.stored {
				t.Errorf("stored %v while held, want %v", stored, tc.stored)
			}
			if n := r.s.InFlight(); n != 1 {
				t.Errorf("%d requests in flight, want 1", n)
			}
			select {
			case got := <-done:
				t.Fatalf("answered while held: %+v", got)
			default:
			}
			in.Release()
			r.expect(<-done, want{status: 200})
		})
	}
}

func TestCloseEndsHeldRequests(t *testing.T) {
	for _, fault := range []fakes3.Fault{{HoldBefore: true}, {HoldAfter: true}} {
		r := startRaw(t, fakes3.Options{})
		in := r.s.Inject(fault)
		done := make(chan reply)
		go func() { done <- r.do("PUT", "/bucket/k", "x") }()
		<-in.Reached()
		r.s.Close() // never returns where the hold does not end
		<-done
		if n := r.s.InFlight() + r.s.OpenConns(); n != 0 {
			t.Errorf("%d requests and connections after Close", n)
		}
	}
}

func TestWaitingForSeveralHeldRequests(t *testing.T) {
	for _, fault := range []fakes3.Fault{{HoldBefore: true, Times: -1}, {HoldAfter: true, Times: -1}} {
		r := startRaw(t, fakes3.Options{})
		in := r.s.Inject(fault)
		done := make(chan reply)
		for i := range 3 {
			go func() { done <- r.do("PUT", fmt.Sprintf("/bucket/%d", i), "x") }()
		}
		if err := in.WaitFor(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		if n := r.s.InFlight(); n != 3 || in.Hits() != 3 || in.Seen() != 3 {
			t.Errorf("%d in flight, %d hits, %d seen, want 3", n, in.Hits(), in.Seen())
		}
		in.Remove()
		for range 3 {
			r.expect(<-done, want{status: 200})
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := in.WaitFor(ended, 4); err == nil {
			t.Error("a fourth request was waited for with success")
		}
	}
}

func TestSwapAfterARequest(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	r.s.PutObject("bucket", "k", [][]byte{[]byte("old")}, nil)
	r.s.Inject(fakes3.Fault{Op: "GetObject", Nth: 2, Then: func() {
		r.s.PutObject("bucket", "k", [][]byte{[]byte("new")}, nil)
	}})
	for i, body := range []string{"old", "old", "new"} {
		got := r.do("GET", "/bucket/k", "")
		if got.body != body {
			t.Errorf("request %d: %q, want %q", i+1, got.body, body)
		}
	}
}

func TestCompleteThatAnswers200AndFails(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	r.s.Inject(fakes3.Fault{Op: "CompleteMultipartUpload", Cut: &fakes3.Cut{At: 40}, Shape: fakes3.Shape{Length: fakes3.CloseDelimited}})
	id := r.upload("k", "data")
	got := r.complete(id, 1)
	r.expect(got, want{status: 200})
	if len(got.body) != 40 {
		t.Errorf("%d bytes of XML, want 40", len(got.body))
	}
	r.expect(r.complete(id, 1), want{status: 200, inBody: "CompleteMultipartUploadResult"})
}
