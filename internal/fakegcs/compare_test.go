package fakegcs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/realserver"
)

// step is a request that both servers get, and what is compared of the answer
// beside the status. BUCKET stands for the bucket, GEN for the generation that the last
// step with an object in its answer told, SESSION for the session it began.
type step struct {
	method, url, body string
	headers           []string
	compare           func(t *testing.T, a answer) string
}

func text(_ *testing.T, a answer) string   { return a.text }
func status(_ *testing.T, _ answer) string { return "" }
func names(t *testing.T, a answer) string  { return a.list(t) }

func piece(_ *testing.T, a answer) string {
	return fmt.Sprint(a.text, a.Header.Get("Content-Range"), a.ContentLength, a.Header.Get("X-Goog-Stored-Content-Length"))
}

// stored is what the metadata says, but for times, names and generations.
func stored(t *testing.T, a answer) string {
	o := a.resource(t)
	return fmt.Sprint(o.Name, o.Size, o.CRC32C, o.MD5Hash, o.ContentType, o.Metadata)
}

// persisted is how far a session is.
func persisted(_ *testing.T, a answer) string { return a.Header.Get("Range") }

// The steps are those where fake-gcs-server is known to be right: it ignores conditions on reads and deletes, takes gaps in
// sessions and repeats prefixes, for some.
var steps = func() []step {
	in, at := "/upload/storage/v1/b/BUCKET/o?uploadType=", "/storage/v1/b/BUCKET/o"
	first, kind := related(`{"name":"a/1","metadata":{"one":"1"}}`, "0123456789")
	related := []string{"Content-Type", kind}
	sum := func(s string) string { b, _ := relatedSum(s); return b }
	typed := []string{"Content-Type", "text/plain"}
	chunks := string(content(quantum + 5))
	out := []step{
		{"POST", in + "multipart", string(first), related, stored},
		{"POST", in + "media&name=a%2F2", "hello", typed, stored},
		{"POST", in + "media&name=empty", "", typed, stored},
		{"POST", in + "media&name=b", "x", typed, stored},
		{"POST", in + "media&name=b&ifGenerationMatch=0", "y", typed, status},
		{"POST", in + "media&name=b&ifGenerationMatch=7", "y", typed, status},
		{"POST", in + "media&name=new&ifGenerationMatch=0", "y", typed, stored},
		{"POST", in + "multipart", sum("AAAAAA=="), related, status},
		{"POST", in + "multipart", sum("mnG7TA=="), related, stored},
		{"GET", at + "/sum", "", nil, stored},
		{"GET", at + "/a%2F1?alt=media", "", nil, piece},
		{"GET", "/BUCKET/a/1", "", nil, piece},
		{"GET", at + "/a%2F1?alt=media", "", []string{"Range", "bytes=2-4"}, piece},
		{"GET", at + "/a%2F1?alt=media", "", []string{"Range", "bytes=7-100"}, piece},
		{"GET", at + "/a%2F1?alt=media", "", []string{"Range", "bytes=-3"}, piece},
		{"GET", "/BUCKET/a/1", "", []string{"Range", "bytes=4-"}, piece},
		{"GET", at + "/a%2F1?alt=media", "", []string{"Range", "bytes=10-"}, status},
		{"GET", at + "/missing", "", nil, status},
		{"GET", at + "/missing?alt=media", "", nil, status},
		{"GET", "/storage/v1/b/nowhere/o", "", nil, status},
		{"DELETE", at + "/missing", "", nil, status},
		{"GET", at, "", nil, names},
		{"GET", at + "?prefix=a/", "", nil, names},
		{"GET", at + "?delimiter=/", "", nil, names},
		{"GET", at + "?startOffset=a/2&endOffset=empty", "", nil, names},
		{"GET", at + "?maxResults=2", "", nil, names},
		{"POST", in + "resumable&name=session", `{"contentType":"text/css","metadata":{"one":"1"}}`, []string{"Content-Type", "application/json"}, status},
		{"PUT", "SESSION", chunks[:quantum], []string{"Content-Range", "bytes 0-262143/*"}, persisted},
		{"PUT", "SESSION", chunks[quantum:], []string{"Content-Range", "bytes 262144-262148/262149"}, stored},
		{"GET", at + "/session?alt=media", "", nil, text},
		{"POST", at + "/session/rewriteTo/b/BUCKET/o/copied", "", nil, status},
		{"GET", at + "/copied", "", nil, stored},
		{"POST", in + "media&name=v", "old", typed, stored},
		{"GET", at + "/v?generation=GEN", "", nil, stored},
		{"POST", in + "media&name=v&ifGenerationMatch=GEN", "newer", typed, status},
		{"GET", at + "?versions=true&prefix=v", "", nil, names},
		{"GET", at + "/v?alt=media", "", nil, text},
		{"DELETE", at + "/a%2F1", "", nil, status},
		{"GET", at + "/a%2F1", "", nil, status},
	}
	for _, key := range []string{"a+b", "a%2Fb", "//a", "a//b", "~=", "ü", "x y", "dir/", "a?b#c&d", "😀", "～"} {
		out = append(out,
			step{"POST", in + "media&name=" + escape(key), key, typed, stored},
			step{"GET", at + "/" + escape(key) + "?alt=media", "", nil, text},
			step{"GET", at + "?prefix=" + escape(key), "", nil, names})
	}
	return append(out, step{"GET", at, "", nil, names})
}()

func relatedSum(crc string) (string, string) {
	b, kind := related(`{"name":"sum","crc32c":"`+crc+`"}`, "hello")
	return string(b), kind
}

// follow sends the steps and returns what each was answered.
func (r *raw) follow(bucket string) []string {
	gen, session := "", ""
	var out []string
	for _, s := range steps {
		url := strings.NewReplacer("BUCKET", bucket, "GEN", gen, "SESSION", session).Replace(s.url)
		body := []byte(s.body)
		if s.method != "POST" && s.method != "PUT" {
			body = nil
		}
		a := r.send(s.method, url, body, s.headers...)
		seen := fmt.Sprint(a.StatusCode)
		if s.method == "DELETE" && a.StatusCode == http.StatusOK {
			seen = "204" // what Google answers
		}
		if a.StatusCode < 400 {
			seen += " " + s.compare(r.t, a)
		}
		out = append(out, seen)
		var o resource
		if json.Unmarshal([]byte(a.text), &o) == nil && o.Generation != "" {
			gen = o.Generation
		}
		if l := a.Header.Get("Location"); l != "" {
			session = l
		}
	}
	return out
}

// What this fake says, another server that is not of this project says too.
func TestFakeGCSServerAnswersAlike(t *testing.T) {
	server := realserver.FakeGCS(t)
	bucket := server.NewBucket(t, realserver.Versioned)
	hc := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(hc.CloseIdleConnections)
	other := &raw{t: t, base: server.Endpoint, hc: hc}
	ours := newRaw(t, fakegcs.Options{Buckets: []string{bucket}, Versioned: true})
	a, b := ours.follow(bucket), other.follow(bucket)
	for i, s := range steps {
		if a[i] != b[i] {
			t.Errorf("%s %s %q:\nours:  %.300s\nother: %.300s", s.method, s.url, s.headers, a[i], b[i])
		}
	}
}
