package fakegcs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
)

// related is a multipart/related body and its type.
func related(parts ...string) ([]byte, string) {
	var b bytes.Buffer
	for i, p := range parts {
		kind := "application/json; charset=UTF-8"
		if i > 0 {
			kind = "text/css"
		}
		fmt.Fprintf(&b, "--xx\r\nContent-Type: %s\r\n\r\n%s\r\n", kind, p)
	}
	b.WriteString("--xx--\r\n")
	return b.Bytes(), "multipart/related; boundary=xx"
}

func (r *raw) multipart(status int, query string, parts ...string) answer {
	r.t.Helper()
	body, kind := related(parts...)
	return r.want(status, "POST", upload+"multipart"+query, body, "Content-Type", kind)
}

func TestMultipartUploadsCarryMetadata(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	a := r.multipart(200, "", `{"name":"a/b","metadata":{"one":"1"},"cacheControl":"no-cache"}`, "hello\r\n--x")
	if got := a.resource(t); got.Name != "a/b" || got.Size != "10" || got.ContentType != "text/css" || got.Metadata["one"] != "1" {
		t.Errorf("%+v", got)
	}
	a = r.multipart(200, "&name=from%20query", `{"name":"other","contentType":"text/html"}`, "")
	if got := a.resource(t); got.Name != "from query" || got.ContentType != "text/html" || got.Size != "0" {
		t.Errorf("%+v", got)
	}
	if got, ok := r.s.Object("bucket", "a/b"); !ok || string(got.Bytes()) != "hello\r\n--x" || got.CacheControl != "no-cache" {
		t.Errorf("%+v", got)
	}
	r.multipart(400, "", `{"metadata":{}}`, "no name")
	r.multipart(400, "", `{"name":`, "no JSON")
	r.multipart(400, "", `{"name":"k"}`)
	r.multipart(400, "", `{"name":"k"}`, "a", "three parts")
	r.want(400, "POST", upload+"multipart&name=k", []byte("x"), "Content-Type", "text/plain")
	r.want(400, "POST", upload+"other&name=k", nil)
	r.want(400, "POST", upload+"media", nil)
	r.want(404, "POST", "/upload/storage/v1/b/other/o?uploadType=media&name=k", nil)
	if _, ok := r.s.Object("bucket", "k"); ok {
		t.Error("a refused upload stored something")
	}
}

func TestUploadsAreHeldToTheirChecksums(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	const crc, md5 = "mnG7TA==", "XUFAKrxLKna5cZ2REBfFkg==" // of hello
	for _, x := range []struct {
		status   int
		metadata string
	}{
		{200, `"crc32c":"` + crc + `"`}, {200, `"md5Hash":"` + md5 + `"`}, {200, `"crc32c":"` + crc + `","md5Hash":"` + md5 + `"`},
		{400, `"crc32c":"AAAAAA=="`}, {400, `"md5Hash":"AAAA"`}, {400, `"crc32c":"` + crc + `","md5Hash":"AAAA"`},
	} {
		key := fmt.Sprintf("k%d", x.status)
		r.multipart(x.status, "&name="+key, `{`+x.metadata+`}`, "hello")
	}
	for header, status := range map[string]int{
		"crc32c=" + crc: 200, "md5=" + md5: 200, "crc32c=" + crc + ",md5=" + md5: 200, "crc32c=AAAAAA==": 400, "crc32c=" + crc + ",md5=AAAA": 400, "sha=1": 400,
	} {
		r.want(status, "POST", upload+fmt.Sprintf("media&name=k%d", status), []byte("hello"), "X-Goog-Hash", header)
	}
	if _, ok := r.s.Object("bucket", "k400"); ok {
		t.Error("a wrong checksum stored something")
	}
}

func TestUploadsObeyConditions(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	const media = upload + "media&name="
	gen := r.put("k", "1", "ifGenerationMatch=0").Generation
	r.want(412, "POST", media+"k&ifGenerationMatch=0", nil)
	r.want(412, "POST", media+"k&ifGenerationMatch=1", nil)
	r.want(412, "POST", media+"missing&ifGenerationMatch=1", nil)
	r.want(412, "POST", media+"missing&ifMetagenerationMatch=1", nil)
	r.want(412, "POST", media+"k&ifMetagenerationMatch=2", nil)
	r.want(304, "POST", media+"k&ifGenerationNotMatch="+gen, nil)
	r.want(304, "POST", media+"missing&ifGenerationNotMatch=0", nil)
	r.want(304, "POST", media+"k&ifMetagenerationNotMatch=1", nil)
	if got, _ := r.s.Object("bucket", "k"); string(got.Bytes()) != "1" {
		t.Errorf("a failed condition wrote %q", got.Bytes())
	}
	next := r.put("k", "2", "ifGenerationMatch="+gen, "ifMetagenerationMatch=1", "ifGenerationNotMatch=0").Generation
	if next <= gen {
		t.Errorf("generation %s after %s", next, gen)
	}
}

func TestMetadataAndSizeHaveLimits(t *testing.T) {
	r := newRaw(t, fakegcs.Options{MaxObject: 20_000})
	meta := func(n int) string { return `{"name":"k","metadata":{"k":"` + strings.Repeat("v", n-1) + `"}}` }
	r.multipart(200, "", meta(8192), "x")
	r.multipart(400, "", meta(8193), "x")
	r.want(400, "POST", upload+"resumable", []byte(meta(8193)))
	r.want(413, "POST", upload+"media&name=k", make([]byte, 20_001))
	r.want(200, "POST", upload+"media&name=k", make([]byte, 20_000))
	r.want(413, "POST", upload+"resumable&name=k", nil, "X-Upload-Content-Length", "20001")
}

func TestNamesAreHeldToTheNamingRules(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	for _, key := range []string{"", ".", "..", "a\nb", "a\rb", ".well-known/acme-challenge/x", strings.Repeat("k", 1025), "\xff"} {
		r.want(400, "POST", upload+"media&name="+escape(key), nil)
		r.want(400, "POST", upload+"resumable&name="+escape(key), nil)
	}
	for _, key := range []string{
		"a", "a/", "a/b", "//a", "a//b", "/", "a+b", "a%2Fb", "a%25", "a b", "~", "=", "a?b#c&d", "é", "e\u0301", "A", "😀", "～",
		"restore", "a/restore", "rewriteTo/b/bucket/o/x", "o", "b/o", "a.tmp", "x\\y", "a\tb", "...", "./a", "a/../b", strings.Repeat("k", 1024),
	} {
		if got := r.put(key, "text of "+key).Name; got != key {
			t.Errorf("put %q as %q", key, got)
		}
		path := escape(key)
		for _, url := range []string{object + path + "?alt=media", "/bucket/" + path} {
			if a := r.want(200, "GET", url, nil); a.text != "text of "+key {
				t.Errorf("%q by %s: %q", key, url, a.text)
			}
		}
		if got := r.want(200, "GET", "/storage/v1/b/bucket/o?prefix="+path+"&maxResults=1", nil).list(t); got != key {
			t.Errorf("%q is listed as %q", key, got)
		}
		r.want(204, "DELETE", object+path, nil)
		r.want(404, "GET", object+path, nil)
	}
	if n := len(r.s.Objects("bucket")); n != 0 {
		t.Errorf("%d objects are left", n)
	}
	r.want(200, "POST", upload+"media&name=a%2Fb", []byte("1"))
	if a := r.want(200, "GET", "/bucket/a/b", nil); a.text != "1" { // the XML API takes slashes as they are
		t.Error(a.text)
	}
	r.want(404, "GET", object+"a/b", nil)
}

// exact is a connection on which a test writes a request byte by byte.
func exact(t *testing.T, s *fakegcs.Server, head string, body []byte) net.Conn {
	t.Helper()
	conn, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(body); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestABodyThatEndsEarlyStoresNothing(t *testing.T) {
	s := start(t, fakegcs.Options{})
	s.PutObject("bucket", "k", []byte("old"), nil)
	conn := exact(t, s, "POST "+upload+"media&name=k HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+fakegcs.DefaultToken+
		"\r\nContent-Length: 1000\r\n\r\n", make([]byte, 999))
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503") {
		t.Errorf("%q, %v", answer, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if got, _ := s.Object("bucket", "k"); string(got.Bytes()) != "old" {
		t.Errorf("%q", got.Bytes())
	}
}

func TestOfRacingCreatorsExactlyOneWins(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	for round := range 10 {
		key := fmt.Sprintf("k%d", round)
		locations := make([]string, 8)
		for i := range locations {
			locations[i] = r.want(200, "POST", upload+"resumable&ifGenerationMatch=0&name="+key, nil).Header.Get("Location")
		}
		statuses := make(chan int, 16)
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				body := fmt.Appendf(nil, "writer %d", i)
				if i%2 == 0 {
					statuses <- r.send("POST", upload+"media&ifGenerationMatch=0&name="+key, body).StatusCode
				} else {
					statuses <- r.send("PUT", locations[i/2], body).StatusCode
				}
			})
		}
		wg.Wait()
		won := 0
		for range 16 {
			switch st := <-statuses; st {
			case 200:
				won++
			case 412:
			default:
				t.Errorf("status %d", st)
			}
		}
		if won != 1 {
			t.Errorf("%d won", won)
		}
	}
}

func TestAReaderBesideAWriterSeesOneGeneration(t *testing.T) {
	s := start(t, fakegcs.Options{Anonymous: true, NoLog: true})
	hc := s.Client()
	t.Cleanup(hc.CloseIdleConnections)
	s.PutObject("bucket", "k", bytes.Repeat([]byte("a"), 512<<10), nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			s.PutObject("bucket", "k", bytes.Repeat([]byte{byte('a' + i%26)}, 512<<10-i%3), nil)
		}
	})
	for range 20 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+object+"k?alt=media", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if cerr := resp.Body.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		if n := bytes.Count(b, b[:1]); n != len(b) || int64(n) != resp.ContentLength {
			t.Fatalf("%d of %d bytes are alike", n, len(b))
		}
	}
	cancel()
	wg.Wait()
}
