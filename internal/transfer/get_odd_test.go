package transfer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/blob"
)

// oddities are what replies of real services and proxies were seen to do, each to one reply: every one of them can be
// noticed. whole brings the whole object, as a service does that ignores the question.
var oddities = map[string]func(rep *ReadReply, whole []byte){
	"":             func(*ReadReply, []byte) {},
	"no count":     func(rep *ReadReply, _ []byte) { rep.Parts = 0 },
	"odd count":    func(rep *ReadReply, _ []byte) { rep.Parts++ },
	"no total":     func(rep *ReadReply, _ []byte) { rep.Total = -1 },
	"more total":   func(rep *ReadReply, _ []byte) { rep.Total++ },
	"no length":    func(rep *ReadReply, _ []byte) { rep.Length = -1 },
	"no place":     func(rep *ReadReply, _ []byte) { rep.HasRange = false },
	"disguised":    func(rep *ReadReply, _ []byte) { rep.HasRange, rep.Partial = false, false },
	"masked":       func(rep *ReadReply, _ []byte) { rep.HasRange, rep.Partial, rep.Length = false, false, -1 },
	"elsewhere":    func(rep *ReadReply, _ []byte) { rep.Off, rep.End, rep.Total = rep.Off+1, rep.End+1, -1 },
	"further":      func(rep *ReadReply, _ []byte) { rep.End++ },
	"no version":   func(rep *ReadReply, _ []byte) { rep.Version = "" },
	"cut":          func(rep *ReadReply, _ []byte) { rep.replace(cutAfter(rep.Length / 2)) },
	"cut, masked":  func(rep *ReadReply, _ []byte) { rep.Length = -1; rep.replace(cutAfter(3)) },
	"whole":        func(rep *ReadReply, whole []byte) { rep.whole(whole, int64(len(whole))) },
	"whole, blank": func(rep *ReadReply, whole []byte) { rep.whole(whole, -1) },
	"goes on": func(rep *ReadReply, _ []byte) {
		rep.replace(func(r io.Reader) io.Reader { return io.MultiReader(r, bytes.NewReader([]byte("and on"))) })
	},
}

func (r *ReadReply) whole(data []byte, length int64) {
	r.Partial, r.HasRange, r.Length, r.Parts = false, false, length, 0
	r.replace(func(io.Reader) io.Reader { return bytes.NewReader(data) })
}

// Whatever replies do, and in whatever order, a Get returns the bytes asked for or an error, for every layout.
func TestOddRepliesGiveTheRightBytesOrAnError(t *testing.T) {
	failed, worked := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(rt, name) }
		s := serve(t, s3Like())
		size := draw(0, 450, "size")
		data := content(size)
		var parts []int
		if part := draw(0, 120, "part"); part > 0 {
			for n := size; n > 0; n -= part {
				parts = append(parts, min(n, part))
			}
		}
		s.put("k", data, parts...)
		odd := rapid.SliceOfN(rapid.SampledFrom(names(oddities)), 0, 6).Draw(rt, "oddities")
		var n atomic.Int32
		s.edit = func(_ ReadRequest, rep *ReadReply) {
			if i := int(n.Add(1)) - 1; i < len(odd) {
				oddities[odd[i]](rep, data)
			}
		}
		lo := int64(draw(0, size, "from"))
		r := rapid.SampledFrom([]blob.Range{{}, blob.From(lo), blob.Span(lo, int64(draw(0, 300, "n"))), blob.Last(lo)}).Draw(rt, "range")
		o := &blob.GetOptions{Range: r, Dst: bytes.Repeat([]byte{0xAA}, draw(0, size, "dst"))}
		if rapid.Bool().Draw(rt, "manifest") {
			o.Want = blob.Want{Size: int64(size), HasSize: true}
		}
		st := open(t, s, concurrency(draw(1, 3, "concurrency")), func(o *Options) { o.ReadRanges = rapid.Bool().Draw(rt, "ranges") })
		obj, err := st.Get(t.Context(), "k", o)
		if err != nil {
			if len(odd) == 0 {
				rt.Fatal(err)
			}
			failed++
			return
		}
		worked++
		off, m, _ := r.Resolve(int64(size))
		if !bytes.Equal(obj.Data, data[off:off+m]) || obj.Offset != off || obj.Size != int64(size) && !slices.Contains(odd, "more total") {
			rt.Fatalf("other bytes: %d from %d of %d; want %d from %d of %d", len(obj.Data), obj.Offset, obj.Size, m, off, size)
		}
	})
	t.Logf("%d reads worked, %d failed", worked, failed)
}

func names[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// A service that answers in one odd way for ever is still read right, where that can be: at the price of requests.
func TestOddServicesWork(t *testing.T) {
	for _, c := range []struct {
		what string
		// of the whole object, by part and by range, and of a range; 0: an error
		whole, ranged, span int
	}{
		{"no count", 3, 3, 2},
		{"odd count", 3, 3, 2},
		{"no total", 4, 4, 3},  // and a Stat
		{"no length", 3, 3, 2}, // the place is enough
		{"no version", 3, 3, 2},
		{"no place", 3, 2, 2},     // by part, by range, plain
		{"disguised", 5, 3, 3},    // and a Stat, which shows that they are not whole
		{"whole", 5, 2, 2},        // and a Stat; as part 1 it counts as a huge one at first
		{"whole, blank", 7, 4, 3}, // how long it is shows only after a Stat, and then it is more than a range's limits are for
	} {
		data := content(250)
		for name, want := range map[string]int{"whole": c.whole, "ranged": c.ranged, "span": c.span} {
			s := serve(t, s3Like())
			s.put("k", data, 100, 100, 50)
			s.edit = func(r ReadRequest, rep *ReadReply) {
				if r.N >= 0 || r.Part > 0 {
					oddities[c.what](rep, data)
				} else if c.what == "whole, blank" {
					rep.Length = -1
				}
			}
			o := &blob.GetOptions{}
			if name == "span" {
				o.Range = blob.Span(30, 200)
			}
			st := open(t, s, concurrency(1), func(o *Options) { o.ReadRanges = name == "ranged" })
			obj, err := st.Get(t.Context(), "k", o)
			lo, n, _ := o.Range.Resolve(250)
			if err != nil || !bytes.Equal(obj.Data, data[lo:lo+n]) {
				t.Errorf("%s, %s: %v", c.what, name, err)
			}
			if log := s.takeLog(); len(log) != want {
				t.Errorf("%s, %s: %d requests, want %d: %q", c.what, name, len(log), want, log)
			}
		}
	}
}

// Parts that the service counts but does not serve are read by range.
func TestRefusedPartsAreReadByRange(t *testing.T) {
	for _, kind := range []error{blob.ErrUnsupported, blob.ErrInvalidRange, blob.ErrInvalidOption} {
		for _, first := range []int{1, 2} {
			s := serve(t, s3Like())
			data := content(250)
			s.put("k", data, 100, 100, 50)
			s.before = func(_ context.Context, r request) error {
				if r.read.Part >= first {
					return refusal(kind)
				}
				return nil
			}
			obj, err := open(t, s).Get(t.Context(), "k", nil)
			if err != nil {
				t.Errorf("%v from part %d: %v", kind, first, err)
				continue
			}
			wantBytes(t, obj.Data, data)
		}
	}
	s := serve(t, s3Like())
	s.put("k", content(250), 100, 100, 50)
	s.before = func(context.Context, request) error { return refusal(blob.ErrPermission) }
	wantKind(t, getError(open(t, s), nil), blob.ErrPermission)
	wantLog(t, s, "read part 1")
}

// A service that refuses even a range that exists is asked for the whole object, once.
func TestRefusedRangeThatExists(t *testing.T) {
	for _, works := range []bool{true, false} {
		s := serve(t, s3Like())
		s.put("k", content(50))
		s.before = func(_ context.Context, r request) error {
			if r.verb == "read" && (!works || r.read.N > 0) {
				return refusal(blob.ErrInvalidRange)
			}
			return nil
		}
		err := getError(open(t, s), &blob.GetOptions{Range: blob.From(7)})
		if works && err != nil {
			t.Error(err)
		} else if !works {
			wantKind(t, err, blob.ErrTruncated)
		}
		if n := len(s.takeLog()); n > 4 {
			t.Errorf("%d requests", n)
		}
	}
}

// The end of an object is empty, beyond it is ErrInvalidRange, and neither is remembered (pingcap/tidb #33029).
func TestReadsAtTheEnd(t *testing.T) {
	for name, p := range personalities() {
		s := serve(t, p)
		st := open(t, s)
		for _, size := range []int64{0, 10} {
			s.put("k", content(int(size)))
			for _, r := range []blob.Range{blob.From(size), blob.Span(size, 5), blob.Span(size, 0), blob.Last(0)} {
				if obj := get(t, st, &blob.GetOptions{Range: r}); len(obj.Data) != 0 || obj.Offset != size || obj.Size != size {
					t.Errorf("%s: %v of %d: %+v", name, r, size, obj)
				}
			}
			for _, r := range []blob.Range{blob.From(size + 1), blob.Span(size+1, 5), blob.Span(size+1, 0), blob.From(1 << 40)} {
				if e := wantKind(t, getError(st, &blob.GetOptions{Range: r}), blob.ErrInvalidRange); e.Outcome != blob.NotApplied {
					t.Error(fmt.Sprint(name, e))
				}
			}
			wantBytes(t, get(t, st, nil).Data, content(int(size)))
			wantBytes(t, get(t, st, &blob.GetOptions{Range: blob.Last(1000)}).Data, content(int(size)))
		}
	}
}
