package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// content returns n bytes that differ at every offset's neighbourhood, the same for the same n.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	_, _ = r.Read(b)
	return b
}

// inParts cuts b into parts of size bytes.
func inParts(b []byte, size int) [][]byte { return slices.Collect(slices.Chunk(b, size)) }

func mustGet(t *testing.T, st blob.Blob, key string, o *blob.GetOptions) blob.Object {
	t.Helper()
	obj, err := st.Get(t.Context(), key, o)
	if err != nil {
		t.Fatalf("Get(%q): %v", key, err)
	}
	return obj
}

func wantBytes(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes, want %d, equal prefix of %d", len(got), len(want), equalPrefix(got, want))
	}
}

func equalPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// The incident this library exists for (MaterializeInc/materialize #38800): a store that does not send the number of parts
// looked like a store of objects with one part, and a multipart object was read as its first 8 MiB.
func TestMissingPartsCountIsNotOnePart(t *testing.T) {
	const part, size = 8 << 20, 20 << 20
	data := content(size)
	setup := func(t *testing.T, shape fakes3.Shape) (*fakes3.Server, *s3blob.Store) {
		srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{Shape: shape}, FastETag: true})
		srv.PutObject("b", "k", inParts(data, part), nil)
		return srv, open(t, srv, nil)
	}
	t.Run("the rest comes by range", func(t *testing.T) {
		srv, st := setup(t, fakes3.Shape{NoPartsCount: true})
		wantBytes(t, mustGet(t, st, "k", nil).Data, data)
		wantLog(t, srv, `
GetObject k bytes=16777216-20971519 If-Match=etag -> 206
GetObject k bytes=8388608-16777215 If-Match=etag -> 206
GetObject k partNumber=1 -> 206
`)
	})
	t.Run("a last part one byte short is truncated", func(t *testing.T) {
		_, st := setup(t, fakes3.Shape{NoPartsCount: true, ShortLast: 1})
		wantKind(t, getError(st, "k", nil), blob.ErrTruncated)
	})
	t.Run("without Content-Range too", func(t *testing.T) {
		srv, st := setup(t, fakes3.Shape{NoPartsCount: true, ContentRange: fakes3.RangeNone})
		wantBytes(t, mustGet(t, st, "k", nil).Data, data)
		if n := len(srv.Log()); n > 3 {
			t.Errorf("%d requests: %s", n, srv.Log())
		}
	})
	t.Run("a part that answers 200 without Content-Range", func(t *testing.T) {
		// Nothing in this reply tells the part from a whole object of 8 MiB.
		srv := fake(t, fakes3.Options{FastETag: true})
		srv.PutObject("b", "k", [][]byte{data}, nil)
		srv.Inject(fakes3.Fault{Op: "GetObject", Match: func(r *fakes3.Request) bool { return r.PartNumber > 0 }, Times: -1,
			Reply: &fakes3.Reply{Status: 200, Body: string(data[:part])}})
		wantBytes(t, mustGet(t, open(t, srv, nil), "k", nil).Data, data)
	})
	t.Run("all parts of a store that counts them", func(t *testing.T) {
		srv, st := setup(t, fakes3.Shape{})
		wantBytes(t, mustGet(t, st, "k", nil).Data, data)
		wantLog(t, srv, `
GetObject k partNumber=1 -> 206
GetObject k partNumber=2 If-Match=etag -> 206
GetObject k partNumber=3 If-Match=etag -> 206
`)
	})
}

func getError(st blob.Blob, key string, o *blob.GetOptions) error {
	obj, err := st.Get(context.Background(), key, o)
	if err == nil {
		return errors.New("got " + obj.Key + " without an error")
	}
	return err
}

func wantKind(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want kind %v", err, kind)
	}
}

// wantLog compares the requests, sorted since parts are parallel.
func wantLog(t *testing.T, srv *fakes3.Server, want string) {
	t.Helper()
	if got := "\n" + srv.Log().Sorted().String(); got != want {
		t.Errorf("requests:%s\nwant:%s", got, want)
	}
}

// Every layout of an object and every way a server may answer gives the right bytes, or is not served at all; never
// other bytes. Read whole and in ranges around the borders.
func TestOddServersGiveRightBytesOrAnError(t *testing.T) {
	const P = 1000
	layouts := map[string][][]byte{
		"one put":           {content(2500)},
		"tiny":              {content(10)},
		"empty":             {},
		"equal parts":       inParts(content(4*P+17), P),
		"exact parts":       inParts(content(4*P), P),
		"one huge part":     append([][]byte{content(9 * P)}, inParts(content(P+5), P)...),
		"unequal parts":     {content(700), content(1300), content(50), content(1000)},
		"zero-length first": {nil, content(3000)},
		"zero-length last":  {content(1000), nil},
		"small first":       {content(3), content(2000), content(999)},
	}
	odd := map[string]fakes3.Shape{
		"none":                    {},
		"ignores partNumber":      {IgnorePartNumber: true},
		"ignores Range":           {IgnoreRange: true},
		"ignores both":            {IgnorePartNumber: true, IgnoreRange: true},
		"refuses partNumber 405":  {RefusePartNumber: 405},
		"refuses partNumber 400":  {RefusePartNumber: 400},
		"refuses partNumber 501":  {RefusePartNumber: 501},
		"no count":                {NoPartsCount: true},
		"no Content-Range":        {ContentRange: fakes3.RangeNone},
		"garbage Content-Range":   {ContentRange: fakes3.RangeGarbage},
		"whole Content-Range":     {ContentRange: fakes3.RangeWhole},
		"early Content-Range":     {ContentRange: fakes3.RangeEarly},
		"late Content-Range":      {ContentRange: fakes3.RangeLate},
		"other total":             {ContentRange: fakes3.RangeOtherTotal},
		"no total":                {ContentRange: fakes3.RangeNoTotal},
		"shifted":                 {ShiftRange: 1},
		"short":                   {Short: 1},
		"short last":              {ShortLast: 1},
		"length too long":         {LengthOff: 5},
		"length too short":        {LengthOff: -5},
		"chunked":                 {Length: fakes3.Chunked},
		"close-delimited":         {Length: fakes3.CloseDelimited},
		"chunked, ignores both":   {Length: fakes3.Chunked, IgnorePartNumber: true, IgnoreRange: true},
		"HTTP/1.0, ignores both":  {Length: fakes3.CloseDelimited, IgnorePartNumber: true, IgnoreRange: true},
		"no ETag":                 {ETag: fakes3.NoETag},
		"unquoted ETag":           {ETag: fakes3.UnquotedETag},
		"ignores If-Match":        {IgnoreIfMatch: true},
		"no count, no ETag":       {NoPartsCount: true, ETag: fakes3.NoETag},
		"200 to ranges, no count": {NoPartsCount: true, IgnoreRange: true},
	}
	mustWork := map[string]bool{
		"none": true, "ignores partNumber": true, "ignores Range": true, "ignores both": true,
		"refuses partNumber 405": true, "refuses partNumber 400": true, "refuses partNumber 501": true, "no count": true,
		"no Content-Range": true, "garbage Content-Range": true, "no total": true, "no ETag": true, "unquoted ETag": true,
		"ignores If-Match": true, "no count, no ETag": true, "200 to ranges, no count": true,
	} // Of the others, "chunked" and HTTP/1.0 leave the size out of HEAD too, and the rest lie.
	for oddName, shape := range odd {
		for layoutName, parts := range layouts {
			t.Run(oddName+"/"+layoutName, func(t *testing.T) {
				t.Parallel()
				srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{Shape: shape}})
				data := slices.Concat(parts...)
				srv.PutObject("b", "k", parts, nil)
				for _, ranges := range []bool{false, true} {
					st := open(t, srv, func(o *s3blob.Options) { o.Segment, o.ReadRanges = P, ranges })
					readAll(t, st, data, mustWork[oddName])
				}
			})
		}
	}
}

// readAll reads every kind of range of data.
func readAll(t *testing.T, st blob.Blob, data []byte, mustWork bool) {
	size := int64(len(data))
	rs := []blob.Range{{}, blob.From(1), blob.From(size), blob.Last(1), blob.Last(1500), blob.Last(size + 1), blob.Span(0, size), blob.Span(size/2, 1e9)}
	for _, off := range []int64{0, 1, 999, 1000, 1001, 2000} {
		rs = append(rs, blob.Span(off, 1), blob.Span(off, 1000), blob.Span(off, 2500))
	}
	for _, r := range rs {
		off, n, err := r.Resolve(size)
		dst := bytes.Repeat([]byte{0xAA}, int(n)+3)
		obj, got := st.Get(context.Background(), "k", &blob.GetOptions{Range: r, Dst: dst})
		switch {
		case err != nil:
			if !errors.Is(got, blob.ErrInvalidRange) && mustWork {
				t.Errorf("%v of %d: got %v, want ErrInvalidRange", r, size, got)
			}
			if got == nil {
				t.Errorf("%v of %d: no error", r, size)
			}
		case got != nil && mustWork:
			t.Errorf("%v of %d: %v", r, size, got)
		case got != nil:
			if e := new(blob.Error); !errors.As(got, &e) || e.Kind == nil || e.Attempts > 3 {
				t.Errorf("%v of %d: %v: %+v", r, size, got, e)
			}
		case !bytes.Equal(obj.Data, data[off:off+n]) || obj.Offset != off:
			t.Errorf("%v of %d: WRONG BYTES: got %d at %d", r, size, len(obj.Data), obj.Offset)
		case obj.Size != size && mustWork:
			t.Errorf("%v of %d: got the size %d", r, size, obj.Size)
		}
	}
}

// A range whose end would be beyond every number is a range beyond the object, and asks for no more than it says.
func TestRangesAtTheEndOfAllNumbers(t *testing.T) {
	srv := fake(t, fakes3.Options{})
	srv.PutObject("b", "k", [][]byte{content(10)}, nil)
	st := open(t, srv, small)
	for _, r := range []blob.Range{
		blob.Span(math.MaxInt64-5, 100), blob.Span(math.MaxInt64, math.MaxInt64), blob.From(math.MaxInt64 - 5), blob.From(math.MaxInt64),
	} {
		wantKind(t, getError(st, "k", &blob.GetOptions{Range: r}), blob.ErrInvalidRange)
	}
	wantBytes(t, mustGet(t, st, "k", &blob.GetOptions{Range: blob.Span(5, math.MaxInt64)}).Data, content(10)[5:])
	for _, e := range srv.Log() {
		if e.Op == "GetObject" && (strings.Contains(e.String(), "--") || strings.Contains(e.String(), "-> 200")) {
			t.Errorf("asked for another range: %s", e)
		}
	}
}
