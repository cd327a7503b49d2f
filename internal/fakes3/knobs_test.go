package fakes3_test

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// upload begins an upload of key and sends the given parts.
func (r *raw) upload(key string, parts ...string) (id string) {
	r.t.Helper()
	var out struct {
		ID string `xml:"UploadId"`
	}
	if err := xml.Unmarshal([]byte(r.do("POST", "/bucket/"+key+"?uploads", "").body), &out); err != nil {
		r.t.Fatal(err)
	}
	for i, p := range parts {
		r.expect(r.do("PUT", fmt.Sprintf("/bucket/%s?partNumber=%d&uploadId=%s", key, i+1, out.ID), p), want{status: 200})
	}
	return out.ID
}

// complete finishes an upload of "k" in n parts; it takes the ETags from ListParts.
func (r *raw) complete(id string, n int) reply {
	r.t.Helper()
	var out struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	list := r.do("GET", "/bucket/k?uploadId="+id, "")
	if list.StatusCode == http.StatusOK {
		if err := xml.Unmarshal([]byte(list.body), &out); err != nil {
			r.t.Fatal(err)
		}
	} else { // gone: any list will do
		for i := range n {
			out.Part = append(out.Part, struct {
				PartNumber int
				ETag       string
			}{i + 1, `"x"`})
		}
	}
	var b strings.Builder
	b.WriteString("<CompleteMultipartUpload>")
	for _, p := range out.Part[:n] {
		fmt.Fprintf(&b, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", p.PartNumber, p.ETag)
	}
	b.WriteString("</CompleteMultipartUpload>")
	return r.do("POST", "/bucket/k?uploadId="+id, b.String())
}

func TestPartRules(t *testing.T) {
	cases := map[string]struct {
		opts  fakes3.Options
		parts []string
		want  want
	}{
		"no minimum":             {fakes3.Options{MinPartSize: -1}, []string{"1", "22", "3"}, want{status: 200}},
		"too small":              {fakes3.Options{MinPartSize: 2}, []string{"1", "22"}, want{status: 400, inBody: "EntityTooSmall"}},
		"last may be small":      {fakes3.Options{MinPartSize: 2}, []string{"22", "1"}, want{status: 200}},
		"equal":                  {fakes3.Options{MinPartSize: -1, Knobs: fakes3.Knobs{EqualParts: true}}, []string{"22", "22", "1"}, want{status: 200}},
		"not equal":              {fakes3.Options{MinPartSize: -1, Knobs: fakes3.Knobs{EqualParts: true}}, []string{"22", "1", "22"}, want{status: 400, inBody: "InvalidPart"}},
		"last larger":            {fakes3.Options{MinPartSize: -1, Knobs: fakes3.Knobs{EqualParts: true}}, []string{"22", "22", "333"}, want{status: 400, inBody: "InvalidPart"}},
		"no parts":               {fakes3.Options{}, nil, want{status: 400, inBody: "MalformedXML"}},
		"no parts where allowed": {fakes3.Options{Knobs: fakes3.Knobs{AllowNoParts: true}}, nil, want{status: 200}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := startRaw(t, tc.opts)
			id := r.upload("k", tc.parts...)
			r.expect(r.complete(id, len(tc.parts)), tc.want)
			o, stored := r.s.Object("bucket", "k")
			if stored != (tc.want.status == 200) || stored && string(o.Bytes()) != strings.Join(tc.parts, "") {
				t.Errorf("stored: %v", stored)
			}
			if open := len(r.s.Uploads("bucket")); stored && open != 0 || !stored && open != 1 {
				t.Errorf("%d uploads open", open)
			}
		})
	}
}

func TestMostParts(t *testing.T) {
	r := startRaw(t, fakes3.Options{MaxParts: 2})
	id := r.upload("k", "1", "2")
	r.expect(r.do("PUT", "/bucket/k?partNumber=3&uploadId="+id, "x"), want{status: 400, inBody: "InvalidArgument"})
	if got := r.s.Uploads("bucket"); len(got) != 1 || len(got[0].Parts) != 2 || got[0].Key != "k" || got[0].Parts[2] != 1 {
		t.Errorf("uploads: %+v", got)
	}
}

func TestForgottenUploads(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	id := r.upload("k", "1")
	r.expect(r.complete(id, 1), want{status: 200})
	r.expect(r.complete(id, 1), want{status: 200})
	r.s.Set(func(k *fakes3.Knobs) { k.ForgetUploads = true })
	r.expect(r.complete(id, 1), want{status: 404, inBody: "NoSuchUpload"})
}

// TestRacingCompletesMakeOneVersion: a client that sends Complete again while
// the first is under way gets the same answer and not a second object.
func TestRacingCompletesMakeOneVersion(t *testing.T) {
	r := startRaw(t, fakes3.Options{Versioned: true})
	for round := range 30 {
		id := r.upload("k", "1")
		in := r.s.Inject(fakes3.Fault{Op: "CompleteMultipartUpload", HoldBefore: true, Times: -1})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { r.expect(r.complete(id, 1), want{status: 200}) })
		}
		if err := in.WaitFor(t.Context(), 8); err != nil {
			t.Fatal(err)
		}
		in.Remove()
		wg.Wait()
		if n := len(r.s.Versions("bucket", "k")); n != round+1 {
			t.Fatalf("%d versions after %d uploads", n, round+1)
		}
	}
}

const framedBody = "4;chunk-signature=x\r\nabcd\r\n2\r\nef\r\n0\r\nx-amz-checksum-crc32c:%s\r\n\r\n"

func TestAwsChunkedBodies(t *testing.T) {
	good := crc32cOf([]byte("abcdef"))
	headers := func(length string) []string {
		return []string{"x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "x-amz-decoded-content-length", length,
			"x-amz-trailer", "x-amz-checksum-crc32c", "Content-Encoding", "aws-chunked,gzip"}
	}
	cases := map[string]struct {
		sum, length string
		knobs       fakes3.Knobs
		want        want
		stored      string
	}{
		"good":           {good, "6", fakes3.Knobs{}, want{status: 200}, "abcdef"},
		"wrong checksum": {crc32cOf([]byte("x")), "6", fakes3.Knobs{}, want{status: 400, inBody: "BadDigest"}, ""},
		"decoded longer": {good, "7", fakes3.Knobs{}, want{status: 400, inBody: "IncompleteBody"}, ""},
		"decoded less":   {good, "5", fakes3.Knobs{}, want{status: 400, inBody: "IncompleteBody"}, ""},
		"no trailer":     {"", "6", fakes3.Knobs{}, want{status: 400, inBody: "MalformedTrailerError"}, ""},
		"refused 400":    {good, "6", fakes3.Knobs{RefuseChecksums: 400}, want{status: 400}, ""},
		"refused 501":    {good, "6", fakes3.Knobs{RefuseChecksums: 501}, want{status: 501, inBody: "NotImplemented"}, ""},
		"framing stored": {good, "6", fakes3.Knobs{StoreFraming: true}, want{status: 200}, fmt.Sprintf(framedBody, good)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := startRaw(t, fakes3.Options{Knobs: tc.knobs})
			r.expect(r.do("PUT", "/bucket/k", fmt.Sprintf(framedBody, tc.sum), headers(tc.length)...), tc.want)
			o, stored := r.s.Object("bucket", "k")
			if stored != (tc.stored != "") {
				t.Fatalf("stored %v", stored)
			}
			if stored && string(o.Bytes()) != tc.stored {
				t.Errorf("stored %q, want %q", o.Bytes(), tc.stored)
			}
			if stored && !tc.knobs.StoreFraming && o.Header.Get("Content-Encoding") != "gzip" {
				t.Errorf("encoding %q", o.Header.Get("Content-Encoding"))
			}
		})
	}
}

func TestChecksumFeaturesRefused(t *testing.T) {
	r := startRaw(t, fakes3.Options{Knobs: fakes3.Knobs{RefuseChecksums: 501}})
	r.expect(r.do("PUT", "/bucket/k", "x"), want{status: 200})
	r.expect(r.do("PUT", "/bucket/k", "x", "x-amz-checksum-crc32", "AAAAAA=="), want{status: 501})
	r.expect(r.do("PUT", "/bucket/k", "x", "x-amz-sdk-checksum-algorithm", "CRC32"), want{status: 501})
	r.expect(r.do("POST", "/bucket/k?uploads", "", "x-amz-checksum-algorithm", "CRC32"), want{status: 501})
	id := r.upload("k")
	r.expect(r.do("PUT", "/bucket/k?partNumber=1&uploadId="+id, "x", "x-amz-checksum-crc32", "AAAAAA=="), want{status: 501})
}

const deleteTwo = "<Delete><Object><Key>a</Key></Object><Object><Key>b</Key></Object></Delete>"

func TestBatchDeleteKnobs(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	md5 := []string{"Content-MD5", md5Of([]byte(deleteTwo))}
	sum := []string{"x-amz-checksum-crc32", crc32Of([]byte(deleteTwo))}
	r.s.PutObject("bucket", "a", nil, nil)
	r.s.PutObject("bucket", "b", nil, nil)

	r.expect(r.do("POST", "/bucket?delete", deleteTwo), want{status: 400, inBody: "Content-MD5"})
	r.s.Set(func(k *fakes3.Knobs) { k.RequireContentMD5 = true })
	r.expect(r.do("POST", "/bucket?delete", deleteTwo, sum...), want{status: 400, inBody: "Content-MD5"})
	r.s.Set(func(k *fakes3.Knobs) { k.NoBatchDelete = true })
	r.expect(r.do("POST", "/bucket?delete", deleteTwo, md5...), want{status: 501})
	r.s.Set(func(k *fakes3.Knobs) { k.NoBatchDelete = false })
	if n := len(r.s.Objects("bucket")); n != 2 {
		t.Fatalf("%d objects left of 2 that no answer said were deleted", n)
	}
	r.s.Set(func(k *fakes3.Knobs) {
		k.DeleteError = func(key string) string { return map[string]string{"a": "SlowDown"}[key] }
	})
	r.expect(r.do("POST", "/bucket?delete", deleteTwo, md5...), want{status: 200,
		inBody: "<Error><Key>a</Key><Code>SlowDown</Code><Message>scripted answer</Message></Error><Deleted><Key>b</Key></Deleted>"})
	if o := r.s.Objects("bucket"); len(o) != 1 || o[0].Key != "a" {
		t.Errorf("left: %v", o)
	}
}

func TestServersThatLoseThings(t *testing.T) {
	r := startRaw(t, fakes3.Options{Knobs: fakes3.Knobs{LosesMetadata: true, FoldSlashes: true, HidesMissing: true}})
	r.expect(r.do("PUT", "/bucket//a//b", "x", "x-amz-meta-m", "1"), want{status: 200})
	r.expect(r.do("GET", "/bucket//a//b", ""), want{status: 200, header: map[string]string{"X-Amz-Meta-M": ""}})
	r.expect(r.do("GET", "/bucket?list-type=2", ""), want{status: 200, inBody: "<Key>a/b</Key>"})
	r.expect(r.do("GET", "/bucket/absent", ""), want{status: 403, inBody: "AccessDenied"})
	r.expect(r.do("HEAD", "/bucket/absent", ""), want{status: 403})
	r.s.Set(func(k *fakes3.Knobs) { *k = fakes3.Knobs{} })
	r.expect(r.do("PUT", "/bucket//a//b", "x", "x-amz-meta-m", "1"), want{status: 200})
	r.expect(r.do("GET", "/bucket//a//b", ""), want{status: 200, header: map[string]string{"X-Amz-Meta-M": "1"}})
	r.expect(r.do("GET", "/bucket/absent", ""), want{status: 404, inBody: "NoSuchKey"})
}

// page is what a client sees of a listing.
type page struct {
	Keys  []string `xml:"Contents>Key"`
	More  bool     `xml:"IsTruncated"`
	Token *string  `xml:"NextContinuationToken"`
}

func (r *raw) page(query string) page {
	r.t.Helper()
	var p page
	if err := xml.Unmarshal([]byte(r.do("GET", "/bucket?list-type=2&"+query, "").body), &p); err != nil {
		r.t.Fatal(err)
	}
	return p
}

func TestScriptedListPages(t *testing.T) {
	r := startRaw(t, fakes3.Options{Knobs: fakes3.Knobs{PageSize: 2}})
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		r.s.PutObject("bucket", k, nil, nil)
	}
	first := r.page("")
	if !slices.Equal(first.Keys, []string{"a", "b"}) || !first.More || first.Token == nil {
		t.Fatalf("page size: %+v", first)
	}
	r.s.Inject(fakes3.Fault{Op: "ListObjectsV2", Shape: fakes3.Shape{List: fakes3.TruncatedNoToken}})
	if p := r.page(""); !p.More || p.Token != nil {
		t.Errorf("truncated without a token: %+v", p)
	}
	r.s.Inject(fakes3.Fault{Op: "ListObjectsV2", Times: -1, Shape: fakes3.Shape{List: fakes3.SameToken}})
	if p := r.page("continuation-token=" + *first.Token); !p.More || *p.Token != *first.Token || len(p.Keys) != 2 {
		t.Errorf("same token: %+v", p)
	}
	r.s.ClearFaults()
	r.s.Inject(fakes3.Fault{Op: "ListObjectsV2", Shape: fakes3.Shape{List: fakes3.EmptyPage}})
	p := r.page("continuation-token=" + *first.Token)
	if !p.More || len(p.Keys) != 0 {
		t.Errorf("empty page: %+v", p)
	}
	if p = r.page("continuation-token=" + *p.Token); !slices.Equal(p.Keys, []string{"c", "d"}) {
		t.Errorf("page after the empty one: %+v", p)
	}
	r.s.Inject(fakes3.Fault{Op: "ListObjectsV2", Shape: fakes3.Shape{List: fakes3.TokenAtEnd}})
	if p = r.page("continuation-token=" + *p.Token); p.More || p.Token == nil || len(p.Keys) != 1 {
		t.Errorf("token at the end: %+v", p)
	}
}

func TestListingOrder(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	for _, k := range []string{"～", "😀", "a"} {
		r.s.PutObject("bucket", k, nil, nil)
	}
	if p := r.page(""); !slices.Equal(p.Keys, []string{"a", "～", "😀"}) {
		t.Errorf("byte order: %q", p.Keys)
	}
	r.s.Set(func(k *fakes3.Knobs) {
		k.PageSize = 1
		k.Order = func(a, b string) int { return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) }
	})
	var keys []string
	token := ""
	for range 3 {
		p := r.page(token)
		keys = append(keys, p.Keys...)
		if p.Token != nil {
			token = "continuation-token=" + *p.Token
		}
	}
	if !slices.Equal(keys, []string{"a", "😀", "～"}) {
		t.Errorf("UTF-16 order: %q", keys)
	}
	r.s.Set(func(k *fakes3.Knobs) { k.Order = func(a, b string) int { return -cmp.Compare(a, b) } })
	if p := r.page("start-after=%F0%9F%98%80"); len(p.Keys) != 1 || p.Keys[0] != "～" {
		t.Errorf("after 😀 in reverse: %q", p.Keys)
	}
}
