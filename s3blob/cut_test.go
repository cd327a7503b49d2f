package s3blob_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// A body that ends before its announced length is never the end of the object: it is fetched again, or
// ErrTruncated when that fails for good (minio/minio-go #1451). For each way of reading and each way of ending.
func TestCutBodyIsFetchedAgainOrTruncated(t *testing.T) {
	data := content(5 * P)
	reads := map[string]struct {
		shape fakes3.Shape
		o     blob.GetOptions
	}{
		"whole by parts":  {},
		"whole by ranges": {shape: fakes3.Shape{RefusePartNumber: 405}},
		"one plain body":  {shape: fakes3.Shape{IgnoreRange: true, IgnorePartNumber: true}},
		"chunked":         {shape: fakes3.Shape{Length: fakes3.Chunked}},
		"close-delimited": {shape: fakes3.Shape{Length: fakes3.CloseDelimited}},
		"a range":         {o: blob.GetOptions{Range: blob.Span(P/2, 3*P)}},
		"the last bytes":  {o: blob.GetOptions{Range: blob.Last(P + 100)}},
		"a known size":    {o: blob.GetOptions{Want: blob.Want{Size: 5 * P, HasSize: true}}},
	}
	for name, read := range reads {
		for how, ending := range map[string]fakes3.Ending{"close": fakes3.Close, "reset": fakes3.Reset} {
			for _, at := range []int64{0, 5, P - 1} {
				for _, times := range []int{1, -1} {
					if times < 0 && at == 5 {
						continue // it would come through, five bytes a time
					}
					t.Run(fmt.Sprintf("%s/%s at %d, %d times", name, how, at, times), func(t *testing.T) {
						srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{Shape: read.shape}})
						srv.PutObject("b", "k", inParts(data, P), nil)
						srv.Inject(fakes3.Fault{Op: "GetObject", Nth: 2, Times: times, Cut: &fakes3.Cut{At: at, How: ending}})
						off, n, _ := read.o.Range.Resolve(int64(len(data)))
						o := read.o
						o.Dst = bytes.Repeat([]byte{0xAA}, int(n))
						obj, err := open(t, srv, small).Get(t.Context(), "k", &o)
						if err == nil {
							wantBytes(t, obj.Data, data[off:off+n])
						} else if times == 1 {
							t.Error(err)
						} else {
							wantKind(t, err, blob.ErrTruncated)
						}
						if n := len(srv.Log()); n > 60 {
							t.Errorf("%d requests", n)
						}
					})
				}
			}
		}
	}
}

// Five parallel ranges, the body of one cut: no hole of old buffer content is left, and only the missing bytes are asked for
// again (pingcap/tidb #59752 and #59694).
func TestCutRangeLeavesNoHole(t *testing.T) {
	srv := fake(t, fakes3.Options{})
	data := content(5 * P)
	srv.PutObject("b", "k", [][]byte{data}, nil)
	cut := func(r *fakes3.Request) bool { return strings.HasPrefix(r.Range, fmt.Sprintf("bytes=%d-", 3*P)) }
	srv.Inject(fakes3.Fault{Op: "GetObject", Match: cut, Cut: &fakes3.Cut{At: 100}})
	dst := bytes.Repeat([]byte{0xAA}, 4*P)
	obj := mustGet(t, open(t, srv, small), "k", &blob.GetOptions{Range: blob.From(P), Dst: dst})
	wantBytes(t, obj.Data, data[P:])
	if &obj.Data[0] != &dst[0] {
		t.Error("Dst was not used")
	}
	wantLog(t, srv, `
GetObject k bytes=12288-16383 If-Match=etag -> 206 cut
GetObject k bytes=12388-16383 If-Match=etag -> 206
GetObject k bytes=16384-20479 If-Match=etag -> 206
GetObject k bytes=4096-8191 -> 206
GetObject k bytes=8192-12287 If-Match=etag -> 206
`)
}

// An empty object and the end of an object are empty, not errors, and leave the store as it was.
func TestEmptyReads(t *testing.T) {
	for _, ranges := range []bool{false, true} {
		srv := fake(t, fakes3.Options{})
		st := open(t, srv, func(o *s3blob.Options) { o.ReadRanges = ranges })
		srv.PutObject("b", "empty", nil, nil)
		srv.PutObject("b", "ten", [][]byte{content(10)}, nil)
		for _, c := range []struct {
			key string
			r   blob.Range
			n   int
		}{
			{"empty", blob.Range{}, 0}, {"empty", blob.Span(0, 5), 0}, {"empty", blob.Last(5), 0},
			{"ten", blob.Span(10, 5), 0}, {"ten", blob.From(10), 0}, {"ten", blob.Span(9, 10), 1}, {"ten", blob.Range{}, 10},
		} {
			if obj := mustGet(t, st, c.key, &blob.GetOptions{Range: c.r}); len(obj.Data) != c.n {
				t.Errorf("%s %v: %d bytes, want %d", c.key, c.r, len(obj.Data), c.n)
			}
		}
		wantKind(t, getError(st, "ten", &blob.GetOptions{Range: blob.Span(11, 1)}), blob.ErrInvalidRange)
		wantKind(t, getError(st, "empty", &blob.GetOptions{Range: blob.From(1)}), blob.ErrInvalidRange)
		wantBytes(t, mustGet(t, st, "ten", nil).Data, content(10))
	}
}

// Stored bytes come back as stored: nothing on the way unpacks them (rclone/rclone #2658).
func TestCompressionIsNotOfferedNorUndone(t *testing.T) {
	srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{Shape: fakes3.Shape{Gzip: true}}})
	st := open(t, srv, nil)
	packed := []byte("\x1f\x8b\b\x00\x00\x00\x00\x00\x00\xffnot really")
	srv.PutObject("b", "packed", [][]byte{packed}, &fakes3.PutOptions{ContentEncoding: "gzip"})
	plain := bytes.Repeat([]byte("plain "), 1000)
	srv.PutObject("b", "plain", [][]byte{plain}, nil)
	wantBytes(t, mustGet(t, st, "packed", nil).Data, packed)
	wantBytes(t, mustGet(t, st, "plain", nil).Data, plain)
	for _, e := range srv.Log() {
		if ae := e.Header.Get("Accept-Encoding"); strings.Contains(ae, "gzip") {
			t.Errorf("%v offers %q", e, ae)
		}
	}
}

// Keys that need care reach the server as they are, in both ways of addressing a bucket; the server checks the
// signature over the raw path (apache/arrow-rs-object-store #457).
func TestKeysAreSignedAndSentAlike(t *testing.T) {
	keys := []string{
		"a+b", "a b", "a%2Fb", "a%25", "~x", "k=v/p", "[f]", "\u00e9", "e\u0301", "//a", "/a", "a//b", "a/", "?x#y", "a&b;c",
		"*'\"<>()!@$^`{}|,:", " edge ", "\U0001F600", strings.Repeat("k", 896),
	}
	for _, pathStyle := range []bool{true, false} {
		t.Run(fmt.Sprintf("path style %t", pathStyle), func(t *testing.T) {
			const bucket = "bucket" // a name of one letter cannot be a host's
			srv := fake(t, fakes3.Options{Buckets: []string{bucket}})
			o := options(srv)
			tr := srv.Transport()
			o.PathStyle, o.Transport = pathStyle, tr
			if !pathStyle {
				o.Endpoint = "http://localhost"
			}
			st, err := s3blob.New(t.Context(), bucket, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(tr.CloseIdleConnections)
			for i, k := range keys {
				if _, err := st.Set(t.Context(), k, blob.Bytes(content(i+1)), nil); err != nil {
					t.Fatal(err)
				}
			}
			var listed []string
			for info, err := range st.List(t.Context(), "", nil) {
				if err != nil {
					t.Fatal(err)
				}
				listed = append(listed, info.Key)
			}
			slices.Sort(keys)
			if !slices.Equal(listed, keys) {
				t.Errorf("listed %q, want %q", listed, keys)
			}
			for _, k := range keys {
				if _, ok := srv.Object(bucket, k); !ok {
					t.Errorf("%q is not stored under its name", k)
				}
				mustGet(t, st, k, nil)
			}
			if err := st.DeleteAll(t.Context(), keys[:10]); err != nil {
				t.Error(err)
			}
			for _, k := range keys[10:] {
				if err := st.Delete(t.Context(), k, nil); err != nil {
					t.Error(err)
				}
			}
			if left := srv.Objects(bucket); len(left) > 0 {
				t.Errorf("%d objects left", len(left))
			}
			if host := srv.Log()[0].Host; strings.HasPrefix(host, bucket+".") == pathStyle {
				t.Errorf("host %q with path style %t", host, pathStyle)
			}
		})
	}
}

// A line that breaks all the time but brings something each time delivers the object, with three attempts allowed; one that
// breaks at the same place does not go on for ever (benbjohnson/litestream #1472).
func TestProgressResetsTheCountOfAttempts(t *testing.T) {
	const pieces, piece = 50, 1000
	data := content(pieces * piece)
	for _, ranges := range []bool{false, true} {
		srv := fake(t, fakes3.Options{})
		srv.PutObject("b", "k", [][]byte{data}, nil)
		srv.Inject(fakes3.Fault{Op: "GetObject", Times: -1, Cut: &fakes3.Cut{At: piece}})
		st := open(t, srv, func(o *s3blob.Options) { o.ReadRanges = ranges })
		wantBytes(t, mustGet(t, st, "k", nil).Data, data)
		if n := len(srv.Log()); n != pieces {
			t.Errorf("%d requests, want %d", n, pieces)
		}
	}
	srv := fake(t, fakes3.Options{})
	srv.PutObject("b", "k", [][]byte{data}, nil)
	srv.Inject(fakes3.Fault{Op: "GetObject", Cut: &fakes3.Cut{At: piece}})
	srv.Inject(fakes3.Fault{Op: "GetObject", Nth: 2, Times: -1, Cut: &fakes3.Cut{At: 0}})
	wantKind(t, getError(open(t, srv, nil), "k", nil), blob.ErrTruncated)
	if n := len(srv.Log()); n != 4 {
		t.Errorf("%d requests, want the one with progress and 3 more", n)
	}
}
