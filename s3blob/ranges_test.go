package s3blob_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// Near ranges cost one request, far ones one each, in the order of the caller, and never more than Segment is read in one.
func TestNearRangesAreReadTogether(t *testing.T) {
	srv := fake(t, fakes3.Options{})
	data := content(10 * P)
	srv.PutObject("b", "k", [][]byte{data}, nil)
	st := open(t, srv, func(o *s3blob.Options) { small(o); o.Gap = 100 })
	rs := []blob.Range{
		blob.Span(5*P, 10), blob.Span(100, 10), blob.Span(0, 10), blob.Span(205, 10), blob.Span(105, 3), // one group: 0 to 215
		blob.Span(316, 10), // one byte too far
		blob.Last(20), blob.Span(7, 0), blob.Span(100, 10),
	}
	objs, err := st.GetRanges(t.Context(), "k", rs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rs {
		off, n, _ := r.Resolve(int64(len(data)))
		wantBytes(t, objs[i].Data, data[off:off+n])
		if objs[i].Offset != off || objs[i].Size != int64(len(data)) || cap(objs[i].Data) > int(n)+64 {
			t.Errorf("%v: offset %d of %d, capacity %d", r, objs[i].Offset, objs[i].Size, cap(objs[i].Data))
		}
	}
	wantLog(t, srv, `
GetObject k bytes=0-214 -> 206
GetObject k bytes=20480-20489 If-Match=etag -> 206
GetObject k bytes=316-325 If-Match=etag -> 206
GetObject k bytes=40940-40959 If-Match=etag -> 206
`)
}

// Any ranges of any object give what a read of each alone gives.
func TestRangesAgreeWithSingleReads(t *testing.T) {
	srv := fake(t, fakes3.Options{NoLog: true})
	for _, size := range []int{0, 1, 50, 500} {
		srv.PutObject("b", fmt.Sprint(size), [][]byte{content(size)}, nil)
	}
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 50, 500}).Draw(rt, "size")
		st := open(t, srv, func(o *s3blob.Options) {
			o.Segment = rapid.Int64Range(1, 100).Draw(rt, "segment")
			o.Gap = rapid.Int64Range(-1, 60).Draw(rt, "gap")
			o.Concurrency = rapid.IntRange(1, 4).Draw(rt, "concurrency")
		})
		rs := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) blob.Range {
			off, n := rapid.Int64Range(0, 520).Draw(rt, "off"), rapid.Int64Range(0, 120).Draw(rt, "n")
			return rapid.SampledFrom([]blob.Range{blob.Span(off, n), blob.Span(off, n), blob.From(off), blob.Last(n), {}}).Draw(rt, "range")
		}), 1, 12).Draw(rt, "ranges")
		bad := false
		for _, r := range rs {
			if _, _, err := r.Resolve(int64(size)); err != nil {
				bad = true
			}
		}
		objs, err := st.GetRanges(t.Context(), fmt.Sprint(size), rs, nil)
		if bad {
			wantKind(t, err, blob.ErrInvalidRange)
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		for i, r := range rs {
			off, n, _ := r.Resolve(int64(size))
			if want := content(size)[off : off+n]; string(objs[i].Data) != string(want) || objs[i].Offset != off || objs[i].Data == nil {
				rt.Fatalf("%v: got %d bytes at %d, want %d at %d", r, len(objs[i].Data), objs[i].Offset, n, off)
			}
		}
	})
}
