package fakegcs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

func TestRequestsNeedAToken(t *testing.T) {
	c := newClock()
	r := newRaw(t, fakegcs.Options{Now: c.now, Tokens: []fakegcs.Token{{Value: "one", Expires: c.now().Add(time.Hour)}, {Value: "denied", Forbidden: true}}})
	r.s.PutObject("bucket", "k", []byte("x"), nil)
	try := func(status int, token, reason, code string) {
		t.Helper()
		if a := r.want(status, "GET", object+"k", nil, "Authorization", token); !strings.Contains(a.text, reason) {
			t.Errorf("%q: %s", token, a.text)
		}
		xml := status
		if token == "" {
			xml = 403
		}
		if a := r.want(xml, "GET", "/bucket/k", nil, "Authorization", token); !strings.Contains(a.text, code) {
			t.Errorf("%q: %s", token, a.text)
		}
	}
	try(200, "Bearer one", `"name"`, "x")
	try(401, "", `"reason":"required"`, "<Code>AccessDenied</Code>")
	try(401, "Bearer two", `"reason":"authError"`, "<Code>AuthenticationRequired</Code>")
	try(403, "Bearer denied", `"reason":"forbidden"`, "<Code>AccessDenied</Code>")
	uri := r.want(200, "POST", upload+"resumable&name=new", nil, "Authorization", "Bearer one").Header.Get("Location")
	c.turn(time.Hour)
	if a := r.want(401, "GET", object+"k", nil, "Authorization", "Bearer one"); !strings.Contains(a.Header.Get("Www-Authenticate"), "invalid_token") {
		t.Errorf("%v", a.Header)
	}
	r.s.SetTokens(fakegcs.Token{Value: "two"})
	try(200, "Bearer two", `"name"`, "x")
	r.want(401, "PUT", uri, []byte("x"), "Authorization", "Bearer one")
	r.want(200, "PUT", uri, []byte("x"), "Authorization", "") // the session URI is a credential of its own

	r = newRaw(t, fakegcs.Options{Anonymous: true})
	r.want(404, "GET", object+"k", nil, "Authorization", "")
	r.want(404, "GET", object+"k", nil, "Authorization", "Bearer any")
}

func TestScriptedAnswersLookLikeTheService(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	r.s.PutObject("bucket", "k", []byte("x"), nil)
	r.s.Inject(fakehttp.Fault{Replies: []fakehttp.Reply{
		{Status: 429, RetryAfter: 3 * time.Second}, {Status: 503}, {Status: 409, Code: "conflict", Message: "busy"}, {Status: 500},
	}})
	if a := r.want(429, "GET", object+"k", nil); a.Header.Get("Retry-After") != "3" || !strings.Contains(a.text, `"domain":"usageLimits","reason":"rateLimitExceeded"`) {
		t.Errorf("%v %s", a.Header, a.text)
	}
	if a := r.want(503, "GET", "/bucket/k", nil); !strings.Contains(a.text, "<Code>ServiceUnavailable</Code>") {
		t.Error(a.text)
	}
	if a := r.want(409, "GET", object+"k", nil); a.text != `{"error":{"code":409,"message":"busy","errors":[{"message":"busy","domain":"global","reason":"conflict"}]}}` {
		t.Error(a.text)
	}
	if a := r.want(500, "GET", object+"k?alt=media", nil); a.text != "Internal Server Error" {
		t.Error(a.text)
	}
	r.s.Inject(fakehttp.Fault{Op: "objects.insert", Key: "lost", Reply: &fakehttp.Reply{Status: 503, Commit: true}})
	r.want(503, "POST", upload+"media&name=lost", []byte("stored"))
	r.holds("lost", []byte("stored"))
}

func TestAnswersCanBeDeformed(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	r.put("k", "0123456789")
	for name, x := range map[string]struct {
		shape      fakehttp.Shape
		status     int
		text, told string
	}{
		"range ignored": {fakehttp.Shape{IgnoreRange: true}, 200, "0123456789", ""},
		"shifted":       {fakehttp.Shape{ShiftRange: 2}, 206, "456", "bytes 4-6/10"},
		"short":         {fakehttp.Shape{Short: 1}, 206, "23", "bytes 2-3/10"},
		"no range told": {fakehttp.Shape{ContentRange: fakehttp.RangeNone}, 206, "234", ""},
		"wrong total":   {fakehttp.Shape{ContentRange: fakehttp.RangeOtherTotal}, 206, "234", "bytes 2-4/11"},
	} {
		r.s.Inject(fakehttp.Fault{Shape: x.shape})
		a := r.want(x.status, "GET", object+"k?alt=media", nil, "Range", "bytes=2-4")
		if a.text != x.text || a.Header.Get("Content-Range") != x.told {
			t.Errorf("%s: %q %q", name, a.text, a.Header.Get("Content-Range"))
		}
	}
	r.s.Inject(fakehttp.Fault{Times: 3, Shape: fakehttp.Shape{ETag: func(string) string { return "7" }}})
	if a := r.want(200, "GET", object+"k?alt=media", nil); a.Header.Get("X-Goog-Generation") != "7" {
		t.Errorf("%v", a.Header)
	}
	if got := r.want(200, "GET", object+"k", nil).resource(t).Generation + r.put("k", "x").Generation; got != "77" {
		t.Error(got)
	}
	r.s.Inject(fakehttp.Fault{Times: -1, Shape: fakehttp.Shape{IgnoreIfMatch: true, IgnoreIfNoneMatch: true}})
	r.put("k", "x", "ifGenerationMatch=0")
	r.put("k", "x", "ifGenerationMatch=7")
	r.want(200, "GET", object+"k?ifMetagenerationNotMatch=1", nil)
	r.want(200, "PUT", r.want(200, "POST", upload+"resumable&name=k&ifGenerationMatch=0", nil).Header.Get("Location"), nil)
	r.want(204, "DELETE", object+"k?ifGenerationMatch=7", nil)
}

func TestMetadataCanBeLostOrTold(t *testing.T) {
	r := newRaw(t, fakegcs.Options{Knobs: fakegcs.Knobs{MediaMetadata: true}})
	const meta = `{"name":"k","metadata":{"one":"1"}}`
	r.multipart(200, "", meta, "x")
	if a := r.want(200, "GET", object+"k?alt=media", nil); a.Header.Get("X-Goog-Meta-One") != "1" {
		t.Errorf("%v", a.Header)
	}
	r.s.Set(func(k *fakegcs.Knobs) { k.LosesMetadata = true })
	if got := r.multipart(200, "", meta, "x").resource(t); got.Metadata != nil {
		t.Errorf("%v", got.Metadata)
	}
	uri := r.want(200, "POST", upload+"resumable", []byte(meta)).Header.Get("Location")
	if got := r.want(200, "PUT", uri, []byte("x"), "X-Goog-Meta-Two", "2").resource(t); got.Metadata != nil {
		t.Errorf("%v", got.Metadata)
	}
}

func TestTheLogIsTheSameInEveryRun(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	gen := r.put("a b", "x", "ifGenerationMatch=0").Generation
	r.multipart(200, "&ifGenerationMatch=0", `{"name":"m"}`, "hello")
	r.want(412, "GET", object+"a%20b?alt=media&ifGenerationMatch=7", nil, "Range", "bytes=0-3")
	r.want(200, "GET", "/bucket/a%20b?generation="+gen, nil)
	uri := r.want(200, "POST", upload+"resumable", []byte(`{"name":"s"}`)).Header.Get("Location")
	r.chunk(308, uri, content(quantum+1), 0, quantum, -1)
	r.query(uri, "*", quantum)
	r.chunk(200, uri, content(quantum+1), quantum, quantum+1, quantum+1)
	r.want(410, "DELETE", uri, nil)
	r.want(200, "GET", listURL+"prefix=a&delimiter=/&maxResults=1", nil)
	r.want(412, "DELETE", object+"m?ifGenerationMatch=7", nil)
	want := `objects.insert "a b" uploadType=media ifGenerationMatch=0 1B -> 200
objects.insert m uploadType=multipart ifGenerationMatch=0 5B -> 200
objects.media "a b" bytes=0-3 ifGenerationMatch -> 412
xml.get "a b" generation -> 200
uploads.start s uploadType=resumable -> 200
uploads.put s bytes 0-262143/* 262144B -> 308
uploads.query s bytes */* -> 308
uploads.put s bytes 262144-262144/262145 1B -> 200
uploads.cancel s -> 410
objects.list prefix=a delimiter=/ maxResults=1 -> 200
objects.delete m ifGenerationMatch -> 412
`
	if got := r.s.Log().String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
