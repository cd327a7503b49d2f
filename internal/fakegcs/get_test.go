package fakegcs_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
)

const (
	object = "/storage/v1/b/bucket/o/"
	upload = "/upload/storage/v1/b/bucket/o?uploadType="
)

func TestMetadataIsWhatTheDiscoveryDocumentDescribes(t *testing.T) {
	r := newRaw(t, fakegcs.Options{Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC) }})
	put := r.put("a/b", "hello", "contentEncoding=identity")
	got := r.want(200, "GET", object+"a%2Fb", nil).resource(t)
	want := resource{
		Name: "a/b", Generation: "1767323045678000", Metageneration: "1", Size: "5", CRC32C: "mnG7TA==", MD5Hash: "XUFAKrxLKna5cZ2REBfFkg==",
		ContentType: "text/plain", ContentEncoding: "identity", TimeCreated: "2026-01-02T03:04:05.678Z", Updated: "2026-01-02T03:04:05.678Z",
		ETag: got.ETag, MediaLink: r.s.URL() + "/download/storage/v1/b/bucket/o/a%2Fb?generation=1767323045678000&alt=media",
	}
	for _, g := range []resource{put, got} {
		if g.ETag == "" || !equal(g, want) {
			t.Errorf("got  %+v\nwant %+v", g, want)
		}
	}
	if a := r.want(200, "GET", got.MediaLink, nil); a.text != "hello" {
		t.Errorf("mediaLink leads to %q", a.text)
	}
}

func equal(a, b resource) bool {
	return a.Name == b.Name && a.Generation == b.Generation && a.Metageneration == b.Metageneration && a.Size == b.Size &&
		a.CRC32C == b.CRC32C && a.MD5Hash == b.MD5Hash && a.ContentType == b.ContentType && a.ContentEncoding == b.ContentEncoding &&
		a.TimeCreated == b.TimeCreated && a.Updated == b.Updated && a.ETag == b.ETag && a.MediaLink == b.MediaLink
}

func TestReadsTellTheHeadersOfTheStoredObject(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	gen := r.s.PutObject("bucket", "k", []byte("hello"), &fakegcs.PutOptions{
		ContentType: "text/plain", CacheControl: "no-cache", Metadata: map[string]string{"one": "1"},
	})
	common := map[string]string{
		"Content-Type": "text/plain", "Cache-Control": "no-cache", "X-Goog-Generation": itoa(gen), "X-Goog-Metageneration": "1",
		"X-Goog-Stored-Content-Length": "5", "X-Goog-Stored-Content-Encoding": "identity", "X-Goog-Storage-Class": "STANDARD",
	}
	for _, x := range []struct {
		method, url, hash, meta, etag string
	}{
		{"GET", object + "k?alt=media", "crc32c=mnG7TA==,md5=XUFAKrxLKna5cZ2REBfFkg==", "", ""},
		{"GET", "/download" + object + "k?alt=media", "crc32c=mnG7TA==,md5=XUFAKrxLKna5cZ2REBfFkg==", "", ""},
		{"GET", "/bucket/k", "crc32c=mnG7TA==|md5=XUFAKrxLKna5cZ2REBfFkg==", "1", `"5d41402abc4b2a76b9719d911017c592"`},
		{"HEAD", "/bucket/k", "crc32c=mnG7TA==|md5=XUFAKrxLKna5cZ2REBfFkg==", "1", `"5d41402abc4b2a76b9719d911017c592"`},
	} {
		a := r.want(200, x.method, x.url, nil, "Range", "")
		for name, want := range common {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", x.method, x.url, name, got, want)
			}
		}
		if got := strings.Join(a.Header.Values("X-Goog-Hash"), "|"); got != x.hash {
			t.Errorf("%s %s: hash %q", x.method, x.url, got)
		}
		if got := a.Header.Get("X-Goog-Meta-One"); got != x.meta {
			t.Errorf("%s %s: metadata %q", x.method, x.url, got)
		}
		if got := a.Header.Get("ETag"); x.etag != "" && got != x.etag || got == "" || a.Header.Get("X-Guploader-Uploadid") == "" {
			t.Errorf("%s %s: %v", x.method, x.url, a.Header)
		}
		if a.ContentLength != 5 || x.method == "GET" && a.text != "hello" {
			t.Errorf("%s %s: %d, %q", x.method, x.url, a.ContentLength, a.text)
		}
	}
}

func TestRangesAreServed(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	r.s.PutObject("bucket", "k", []byte("0123456789"), nil)
	r.s.PutObject("bucket", "empty", nil, nil)
	for _, x := range []struct {
		key, asked string
		status     int
		text, told string
	}{
		{"k", "bytes=0-3", 206, "0123", "bytes 0-3/10"},
		{"k", "bytes=4-", 206, "456789", "bytes 4-9/10"},
		{"k", "bytes=8-100", 206, "89", "bytes 8-9/10"},
		{"k", "bytes=-3", 206, "789", "bytes 7-9/10"},
		{"k", "bytes=-30", 206, "0123456789", "bytes 0-9/10"},
		{"k", "bytes=10-", 416, "", "bytes */10"},
		{"k", "bytes=-0", 416, "", "bytes */10"},
		{"k", "bytes=1-2,4-5", 200, "0123456789", ""},
		{"k", "letters=1-2", 200, "0123456789", ""},
		{"empty", "bytes=0-", 416, "", "bytes */0"},
		{"empty", "bytes=-5", 200, "", ""},
	} {
		for _, url := range []string{object + x.key + "?alt=media", "/bucket/" + x.key} {
			a := r.want(x.status, "GET", url, nil, "Range", x.asked)
			if got := a.Header.Get("Content-Range"); got != x.told {
				t.Errorf("%s %s: Content-Range %q, want %q", url, x.asked, got, x.told)
			}
			if x.status != 416 && a.text != x.text {
				t.Errorf("%s %s: %q, want %q", url, x.asked, a.text, x.text)
			}
		}
	}
}

func TestReadsObeyConditions(t *testing.T) {
	r := newRaw(t, fakegcs.Options{Versioned: true})
	old := itoa(r.s.PutObject("bucket", "k", []byte("old"), nil))
	gen := itoa(r.s.PutObject("bucket", "k", []byte("new"), nil))
	etag := r.want(200, "GET", object+"k", nil).resource(t).ETag
	for _, x := range []struct {
		status int
		query  string
		header string
	}{
		{200, "", ""},
		{200, "ifGenerationMatch=" + gen, ""}, {412, "ifGenerationMatch=" + old, ""}, {412, "ifGenerationMatch=0", ""},
		{304, "ifGenerationNotMatch=" + gen, ""}, {200, "ifGenerationNotMatch=" + old, ""}, {200, "ifGenerationNotMatch=0", ""},
		{200, "ifMetagenerationMatch=1", ""}, {412, "ifMetagenerationMatch=2", ""},
		{304, "ifMetagenerationNotMatch=1", ""}, {200, "ifMetagenerationNotMatch=2", ""},
		{200, "generation=" + old, ""}, {404, "generation=5", ""},
		{400, "ifGenerationMatch=x", ""}, {400, "ifGenerationMatch=-1", ""}, {400, "generation=x", ""},
		{200, "", "If-Match: " + etag}, {412, "", "If-Match: other"}, {304, "", "If-None-Match: " + etag},
	} {
		name, value, _ := strings.Cut(x.header, ": ")
		for _, alt := range []string{"json", "media"} {
			a := r.want(x.status, "GET", object+"k?alt="+alt+"&"+x.query, nil, "X-Test", "1", firstOf(name, "X-Other"), value)
			if x.status == 304 && a.text != "" {
				t.Errorf("a body with 304: %q", a.text)
			}
		}
	}
	r.want(404, "GET", object+"missing?ifGenerationMatch=5", nil)
	r.want(404, "GET", object+"missing?ifGenerationMatch=0", nil)
	r.s.Set(func(k *fakegcs.Knobs) { k.MissingFailsCondition = true })
	r.want(412, "GET", object+"missing?ifGenerationMatch=5", nil)
	r.want(404, "GET", object+"missing", nil)
}

func firstOf(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func TestXMLReadsObeyConditions(t *testing.T) {
	clock := time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)
	r := newRaw(t, fakegcs.Options{Versioned: true, Now: func() time.Time { return clock }})
	old := itoa(r.s.PutObject("bucket", "k", []byte("old"), nil))
	gen := itoa(r.s.PutObject("bucket", "k", []byte("new"), nil))
	etag := r.want(200, "HEAD", "/bucket/k", nil).Header.Get("ETag")
	same, earlier := clock.Format(http.TimeFormat), clock.Add(-time.Hour).Format(http.TimeFormat)
	for _, x := range []struct {
		status        int
		name, value   string
		query, answer string
	}{
		{200, "X-Goog-If-Generation-Match", gen, "", "new"}, {412, "X-Goog-If-Generation-Match", old, "", ""},
		{200, "X-Goog-If-Metageneration-Match", "1", "", "new"}, {412, "X-Goog-If-Metageneration-Match", "7", "", ""},
		{200, "If-Match", etag, "", "new"}, {412, "If-Match", `"x"`, "", ""},
		{304, "If-None-Match", etag, "", ""}, {200, "If-None-Match", `"x"`, "", "new"},
		{304, "If-Modified-Since", same, "", ""}, {200, "If-Modified-Since", earlier, "", "new"},
		{200, "If-Unmodified-Since", same, "", "new"}, {412, "If-Unmodified-Since", earlier, "", ""},
		{200, "X-Other", "1", "?generation=" + old, "old"}, {404, "X-Other", "1", "?generation=5", ""},
	} {
		a := r.want(x.status, "GET", "/bucket/k"+x.query, nil, x.name, x.value)
		if x.answer != "" && a.text != x.answer {
			t.Errorf("%s %s: %q", x.name, x.query, a.text)
		}
	}
}

func TestGzipIsUnpackedForWhoDoesNotTakeIt(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write([]byte("hello, hello, hello")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	packed := buf.String()
	put := func(key, cache string) {
		r.s.PutObject("bucket", key, buf.Bytes(), &fakegcs.PutOptions{ContentEncoding: "gzip", CacheControl: cache})
	}
	put("k", "")
	put("kept", "no-transform")
	r.s.PutObject("bucket", "liar", []byte("plain"), &fakegcs.PutOptions{ContentEncoding: "gzip"})
	for _, x := range []struct {
		key, accepts, asked string
		status              int
		text, encoding      string
		unpacked            bool
	}{
		{"k", "", "", 200, "hello, hello, hello", "", true},
		{"k", "identity", "bytes=3-5", 200, "hello, hello, hello", "", true}, // the range is ignored
		{"k", "gzip", "", 200, packed, "gzip", false},
		{"k", "br, gzip;q=0.5", "bytes=1-3", 206, packed[1:4], "gzip", false},
		{"kept", "", "", 200, packed, "gzip", false},
		{"liar", "", "", 200, "plain", "gzip", false},
	} {
		for _, url := range []string{object + x.key + "?alt=media", "/bucket/" + x.key} {
			a := r.want(x.status, "GET", url, nil, "Accept-Encoding", x.accepts, "Range", x.asked)
			if a.text != x.text || a.Header.Get("Content-Encoding") != x.encoding {
				t.Errorf("%s %q: %q, encoding %q", url, x.accepts, a.text, a.Header.Get("Content-Encoding"))
			}
			if (a.ContentLength < 0) != x.unpacked || (a.Header.Get("Warning") == "214 UploadServer gunzipped") != x.unpacked {
				t.Errorf("%s %q: length %d, %v", url, x.accepts, a.ContentLength, a.Header)
			}
			if a.Header.Get("X-Goog-Stored-Content-Encoding") != "gzip" {
				t.Errorf("%s: the stored encoding is not told", url)
			}
		}
	}
	if a := r.want(200, "HEAD", "/bucket/k", nil); a.ContentLength >= 0 {
		t.Errorf("HEAD tells a length of %d", a.ContentLength)
	}
}

func TestRefusalsHaveTheDocumentedForm(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	for _, x := range []struct {
		status       int
		method, url  string
		reason, text string
	}{
		{404, "GET", object + "k", "notFound", "No such object: bucket/k"},
		{404, "DELETE", object + "k", "notFound", "No such object: bucket/k"},
		{404, "GET", "/storage/v1/b/other/o/k", "notFound", "The specified bucket does not exist."},
		{404, "GET", "/storage/v1/b/other/o", "notFound", "The specified bucket does not exist."},
		{404, "GET", "/storage/v1/b/other", "notFound", "The specified bucket does not exist."},
		{412, "POST", upload + "media&name=k&ifGenerationMatch=7", "conditionNotMet", "At least one of the pre-conditions you specified did not hold."},
		{404, "GET", "/storage/v1/b/bucket/o/a/b", "notFound", "Not Found"},
	} {
		var doc struct {
			Error struct {
				Code    int
				Message string
				Errors  []struct{ Domain, Reason, Message string }
			}
		}
		a := r.want(x.status, x.method, x.url, nil)
		a.decode(t, &doc)
		e := doc.Error
		if e.Code != x.status || e.Message != x.text || len(e.Errors) != 1 || e.Errors[0].Reason != x.reason || e.Errors[0].Domain != "global" || e.Errors[0].Message != x.text {
			t.Errorf("%s %s: %s", x.method, x.url, a.text)
		}
	}
	for url, want := range map[string]string{
		"/bucket/k": "<Code>NoSuchKey</Code><Message>The specified key does not exist.</Message><Details>No such object: bucket/k</Details>",
		"/other/k":  "<Code>NoSuchBucket</Code><Message>The specified bucket does not exist.</Message>",
	} {
		if a := r.want(404, "GET", url, nil); a.text != "<?xml version='1.0' encoding='UTF-8'?><Error>"+want+"</Error>" {
			t.Errorf("%s: %s", url, a.text)
		}
	}
	if a := r.want(404, "GET", object+"k?alt=media", nil); a.text != "No such object: bucket/k" {
		t.Errorf("media: %s", a.text)
	}
	r.s.Set(func(k *fakegcs.Knobs) { k.JSONMediaErrors = true })
	if a := r.want(404, "GET", object+"k?alt=media", nil); !strings.HasPrefix(a.text, `{"error":{"code":404`) {
		t.Errorf("media: %s", a.text)
	}
}

func TestFieldsSelectWhatIsSent(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	r.s.PutObject("bucket", "k", []byte("hello"), &fakegcs.PutOptions{Metadata: map[string]string{"one": "1", "two": "2"}})
	for mask, want := range map[string]string{
		"name,size":            `{"name":"k","size":"5"}`,
		"metadata/one":         `{"metadata":{"one":"1"}}`,
		"metadata(two)":        `{"metadata":{"two":"2"}}`,
		"nothing":              `{}`,
		"metadata/*,bucket":    `{"bucket":"bucket","metadata":{"one":"1","two":"2"}}`,
		"metadata(one,two),id": "",
	} {
		a := r.want(200, "GET", object+"k?fields="+escape(mask), nil)
		if want != "" && a.text != want {
			t.Errorf("%s: %s, want %s", mask, a.text, want)
		}
	}
	list := r.want(200, "GET", "/storage/v1/b/bucket/o?fields="+escape("items(name,size),nextPageToken"), nil)
	if list.text != `{"items":[{"name":"k","size":"5"}]}` {
		t.Error(list.text)
	}
	for _, bad := range []string{"(", "a(", "a(b", "a)", ","} {
		r.want(400, "GET", object+"k?fields="+escape(bad), nil)
	}
}
