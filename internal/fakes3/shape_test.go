package fakes3_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// digits is a multipart object of 25 bytes in parts of 10, 10 and 5.
var digits = [][]byte{[]byte("0123456789"), []byte("abcdefghij"), []byte("ABCDE")}

const allDigits = "0123456789abcdefghijABCDE"

// TestShapesOfReads has one case for every way in which a read's answer can
// deviate, and the plain ones beside them.
func TestShapesOfReads(t *testing.T) {
	type shape = fakes3.Shape
	const rng, cr, count = "Range", "Content-Range", "X-Amz-Mp-Parts-Count"
	cases := map[string]struct {
		shape shape
		query string
		rng   string
		want  want
	}{
		"plain part":                   {shape{}, "?partNumber=2", "", want{status: 206, body: "abcdefghij", header: map[string]string{cr: "bytes 10-19/25", count: "3"}}},
		"plain range":                  {shape{}, "", "bytes=5-14", want{status: 206, body: "56789abcde", header: map[string]string{cr: "bytes 5-14/25", count: ""}}},
		"range ignored":                {shape{IgnoreRange: true}, "", "bytes=5-14", want{status: 200, body: allDigits, header: map[string]string{cr: ""}}},
		"part ignored":                 {shape{IgnorePartNumber: true}, "?partNumber=2", "", want{status: 200, body: allDigits, header: map[string]string{cr: "", count: ""}}},
		"part refused":                 {shape{RefusePartNumber: 405}, "?partNumber=2", "", want{status: 405, inBody: "<Code>MethodNotAllowed</Code>"}},
		"no parts count":               {shape{NoPartsCount: true}, "?partNumber=2", "", want{status: 206, body: "abcdefghij", header: map[string]string{cr: "bytes 10-19/25", count: ""}}},
		"Content-Range early":          {shape{ContentRange: fakes3.RangeEarly}, "?partNumber=2", "", want{status: 206, body: "abcdefghij", header: map[string]string{cr: "bytes 9-18/25"}}},
		"Content-Range late":           {shape{ContentRange: fakes3.RangeLate}, "?partNumber=2", "", want{status: 206, body: "abcdefghij", header: map[string]string{cr: "bytes 11-20/25"}}},
		"Content-Range total":          {shape{ContentRange: fakes3.RangeOtherTotal}, "?partNumber=2", "", want{status: 206, body: "abcdefghij", header: map[string]string{cr: "bytes 10-19/26"}}},
		"Content-Range open":           {shape{ContentRange: fakes3.RangeNoTotal}, "?partNumber=2", "", want{status: 206, body: "abcdefghij", header: map[string]string{cr: "bytes 10-19/*"}}},
		"Content-Range none":           {shape{ContentRange: fakes3.RangeNone}, "?partNumber=2", "", want{status: 206, body: "abcdefghij", header: map[string]string{cr: "", count: "3"}}},
		"Content-Range garbage":        {shape{ContentRange: fakes3.RangeGarbage}, "?partNumber=2", "", want{status: 206, body: "abcdefghij", header: map[string]string{cr: "bytes what/ever"}}},
		"Content-Range whole":          {shape{ContentRange: fakes3.RangeWhole}, "?partNumber=2", "", want{status: 206, body: "abcdefghij", header: map[string]string{cr: "bytes 0-24/25"}}},
		"shifted back":                 {shape{ShiftRange: -2}, "", "bytes=5-14", want{status: 206, body: "3456789abc", header: map[string]string{cr: "bytes 3-12/25"}}},
		"shifted on":                   {shape{ShiftRange: 2}, "", "bytes=20-24", want{status: 206, body: "CDE", header: map[string]string{cr: "bytes 22-24/25"}}},
		"short":                        {shape{Short: 1}, "?partNumber=1", "", want{status: 206, body: "012345678", header: map[string]string{cr: "bytes 0-8/25", "Content-Length": "9"}}},
		"last short, not the last":     {shape{ShortLast: 1}, "?partNumber=2", "", want{status: 206, body: "abcdefghij"}},
		"last short":                   {shape{ShortLast: 1}, "?partNumber=3", "", want{status: 206, body: "ABCD", header: map[string]string{cr: "bytes 20-23/25", "Content-Length": "4"}}},
		"length one too much":          {shape{LengthOff: 1}, "", "", want{status: 200, body: allDigits, broken: true, header: map[string]string{"Content-Length": "26"}}},
		"length one too little":        {shape{LengthOff: -1}, "", "", want{status: 200, body: allDigits[:24], header: map[string]string{"Content-Length": "24"}}},
		"chunked":                      {shape{Length: fakes3.Chunked}, "", "", want{status: 200, body: allDigits, header: map[string]string{"Content-Length": ""}}},
		"close-delimited":              {shape{Length: fakes3.CloseDelimited}, "", "bytes=5-14", want{status: 206, body: "56789abcde", header: map[string]string{"Content-Length": "", cr: "bytes 5-14/25"}}},
		"no ETag":                      {shape{ETag: fakes3.NoETag}, "", "", want{status: 200, body: allDigits, header: map[string]string{"Etag": ""}}},
		"unquoted ETag":                {shape{ETag: fakes3.UnquotedETag}, "", "", want{status: 200, header: map[string]string{"Etag": "1b2cf535f27731c974343645a3985328"}}},
		"gzip not offered by this one": {shape{Gzip: true}, "", "", want{status: 200, body: allDigits, header: map[string]string{"Content-Encoding": ""}}},
	}
	r := startRaw(t, fakes3.Options{})
	r.s.PutObject("bucket", "k", digits, nil)
	etag := r.do("HEAD", "/bucket/k", "").Header.Get("Etag")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &raw{t, r.s, r.c}
			if name == "unquoted ETag" {
				tc.want.header["Etag"] = etag[1 : len(etag)-1]
			}
			// As a trait of the server, and then as a fault of one request.
			ask := func() reply {
				if tc.rng != "" {
					return r.do("GET", "/bucket/k"+tc.query, "", rng, tc.rng)
				}
				return r.do("GET", "/bucket/k"+tc.query, "")
			}
			r.s.Set(func(k *fakes3.Knobs) { k.Shape = tc.shape })
			r.expect(ask(), tc.want)
			r.s.Set(func(k *fakes3.Knobs) { k.Shape = fakes3.Shape{} })
			r.s.Inject(fakes3.Fault{Op: "GetObject", Shape: tc.shape})
			r.expect(ask(), tc.want)
			if got := ask(); got.err != nil || got.Header.Get("Etag") != etag {
				t.Errorf("the fault went on: %v %v", got.err, got.Header)
			}
			r.s.ClearFaults()
		})
	}
}

func TestGzipOnTheWire(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	r.s.Set(func(k *fakes3.Knobs) { k.Gzip = true })
	r.s.PutObject("bucket", "k", [][]byte{[]byte(allDigits)}, nil)
	got := r.do("GET", "/bucket/k", "", "Accept-Encoding", "gzip")
	r.expect(got, want{status: 200, header: map[string]string{"Content-Encoding": "gzip", "Content-Length": ""}})
	z, err := gzip.NewReader(bytes.NewReader([]byte(got.body)))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(z); err != nil || string(plain) != allDigits {
		t.Errorf("unpacked %q, %v", plain, err)
	}
}

func TestConditionsOnlyIgnoredWhenAsked(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	put := func(header, value string) reply { return r.do("PUT", "/bucket/k", "x", header, value) }
	get := func() reply { return r.do("GET", "/bucket/k", "", "If-Match", `"other"`) }
	r.expect(put("If-None-Match", "*"), want{status: 200})
	r.expect(put("If-None-Match", "*"), want{status: 412})
	r.expect(put("If-Match", `"other"`), want{status: 412})
	r.expect(get(), want{status: 412})
	r.expect(r.do("DELETE", "/bucket/k", "", "If-Match", `"other"`), want{status: 412})
	r.s.Set(func(k *fakes3.Knobs) { k.IgnoreIfNoneMatch = true })
	r.expect(put("If-None-Match", "*"), want{status: 200})
	r.expect(put("If-Match", `"other"`), want{status: 412})
	r.s.Set(func(k *fakes3.Knobs) { k.IgnoreIfMatch = true })
	r.expect(put("If-Match", `"other"`), want{status: 200})
	r.expect(get(), want{status: 200})
	r.expect(r.do("DELETE", "/bucket/k", "", "If-Match", `"other"`), want{status: 204})
}

func TestObjectsThatNoClientCouldUpload(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	r.s.PutObject("bucket", "gap", [][]byte{nil, []byte("tail")}, nil)
	r.expect(r.do("GET", "/bucket/gap?partNumber=1", ""), want{status: 206, header: map[string]string{
		"Content-Length": "0", "Content-Range": "", "X-Amz-Mp-Parts-Count": "2"}})
	r.expect(r.do("GET", "/bucket/gap?partNumber=2", ""), want{status: 206, body: "tail", header: map[string]string{"Content-Range": "bytes 0-3/4"}})
	huge := bytes.Repeat([]byte("h"), 20<<20)
	r.s.PutObject("bucket", "huge", [][]byte{huge, []byte("t")}, nil)
	got := r.do("GET", "/bucket/huge?partNumber=1", "")
	r.expect(got, want{status: 206})
	if got.body != string(huge) {
		t.Errorf("huge part came back as %d bytes", len(got.body))
	}
}

func TestEmptyObjectsHaveNoRanges(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	r.s.PutObject("bucket", "k", nil, nil)
	whole := want{status: 200, header: map[string]string{"Content-Length": "0", "Content-Range": ""}}
	r.expect(r.do("GET", "/bucket/k", ""), whole)
	r.expect(r.do("GET", "/bucket/k?partNumber=1", ""), whole)
	r.expect(r.do("GET", "/bucket/k", "", "Range", "bytes=-5"), whole)
	r.expect(r.do("GET", "/bucket/k", "", "Range", "bytes=0-"), want{status: 416, header: map[string]string{"Content-Range": "bytes */0"}})
}
