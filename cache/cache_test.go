package cache

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

const block = 4 << 10

// pattern returns n bytes that differ from place to place.
func pattern(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%07x ", i)
	}
	return b.String()[:n]
}

func wantRange(t *testing.T, b blob.Blob, r blob.Range, content string) {
	t.Helper()
	o, err := b.Get(t.Context(), key, &blob.GetOptions{Range: r})
	off, n, _ := r.Resolve(int64(len(content)))
	if err != nil || o.Offset != off || string(o.Data) != content[off:off+n] || o.Size != int64(len(content)) {
		t.Errorf("Get %v: %d bytes from %d of %d, %v", r, len(o.Data), o.Offset, o.Size, err)
	}
}

func TestAdjacentMissingBlocksAreFetchedByOneRequest(t *testing.T) {
	h := newHooked()
	content := pattern(20*block + 100)
	set(t, h.inner, key, content)
	c := over(t, h, Options{Block: block})
	defer mustClose(t, c)
	for _, step := range []struct {
		r     blob.Range
		fetch []blob.Range
	}{
		{blob.Span(block+10, 5), []blob.Range{blob.Span(block, block)}},
		{blob.Span(block+1000, block-1000), nil},
		{blob.Span(10, 4*block), []blob.Range{blob.Span(0, block), blob.Span(2*block, 3*block)}},
		{blob.Span(0, 5*block), nil},
		{blob.Last(10), []blob.Range{blob.Span(20*block, 100)}},
		{blob.From(20*block + 7), nil},
		{blob.Span(3, 0), nil},
		{blob.Span(19*block, 500*block), []blob.Range{blob.Span(19*block, block)}},
	} {
		h.ranges = nil
		wantRange(t, c, step.r, content)
		if len(h.ranges) == 2 && h.ranges[0] != step.fetch[0] {
			h.ranges[0], h.ranges[1] = h.ranges[1], h.ranges[0] // they go at once
		}
		if !reflect.DeepEqual(h.ranges, step.fetch) {
			t.Errorf("%v fetched %v, want %v", step.r, h.ranges, step.fetch)
		}
	}
	h.ranges = nil
	rs := []blob.Range{blob.Span(7*block, 10), blob.Span(0, 10), blob.Span(9*block-5, 10), blob.Span(7*block+100, 10)}
	objs, err := c.GetRanges(t.Context(), key, rs, nil)
	if err != nil || len(objs) != len(rs) {
		t.Fatal(err)
	}
	for i, o := range objs {
		off, n, _ := rs[i].Resolve(int64(len(content)))
		if string(o.Data) != content[off:off+n] || o.Offset != off {
			t.Errorf("range %d: %q from %d", i, o.Data, o.Offset)
		}
	}
	if want := []blob.Range{blob.Span(7*block, 3*block)}; !reflect.DeepEqual(h.ranges, want) {
		t.Errorf("GetRanges fetched %v, want %v", h.ranges, want)
	}
	wantCalls(t, h, blob.OpGetRanges, 0)
}

func TestFirstGetRangesOfAnObject(t *testing.T) {
	for name, rs := range map[string][]blob.Range{
		"spans": {blob.Span(5*block, 10), blob.Span(0, 10), blob.Last(5)},
		"tails": {blob.Last(10), blob.From(9 * block)},
	} {
		h := newHooked()
		content := pattern(10 * block)
		set(t, h.inner, key, content)
		c := over(t, h, Options{Block: block})
		for range 2 {
			objs, err := c.GetRanges(t.Context(), key, rs, nil)
			if err != nil {
				t.Fatal(name, err)
			}
			for i, o := range objs {
				off, n, _ := rs[i].Resolve(int64(len(content)))
				if string(o.Data) != content[off:off+n] {
					t.Errorf("%s: range %d is %q", name, i, o.Data)
				}
			}
		}
		if n := h.count(blob.OpGet); n > 3 || h.count(blob.OpGetRanges) != 0 {
			t.Errorf("%s: %d requests", name, n)
		}
		mustClose(t, c)
	}
}

func TestSkipCacheNeitherReadsNorFills(t *testing.T) {
	h := newHooked()
	set(t, h.inner, key, "v1")
	c := over(t, h, Options{})
	defer mustClose(t, c)
	skip := &blob.GetOptions{SkipCache: true}
	for range 2 {
		if _, err := c.Get(t.Context(), key, skip); err != nil {
			t.Fatal(err)
		}
		if _, err := c.GetRanges(t.Context(), key, []blob.Range{blob.Span(0, 1)}, skip); err != nil {
			t.Fatal(err)
		}
	}
	wantCalls(t, h, blob.OpGet, 2)
	wantCalls(t, h, blob.OpGetRanges, 2)
	wantGet(t, c, key, "v1")
	wantCalls(t, h, blob.OpGet, 3)
	set(t, h.inner, key, "v2") // theirs
	if o, err := c.Get(t.Context(), key, skip); err != nil || string(o.Data) != "v2" {
		t.Errorf("%q, %v", o.Data, err)
	}
	if s := c.Stats(); s.Bypassed != 5 || s.Misses != 1 || s.MemoryHits != 0 {
		t.Errorf("%d bypassed, %d misses, %d hits", s.Bypassed, s.Misses, s.MemoryHits)
	}
}

func TestOffMakesEveryReadReachTheStore(t *testing.T) {
	h := newHooked()
	c := over(t, h, Options{Off: true})
	defer mustClose(t, c)
	set(t, c, key, "v1")
	for range 3 {
		wantGet(t, c, key, "v1")
	}
	wantCalls(t, h, blob.OpGet, 3)
	if _, err := c.GetRanges(t.Context(), key, []blob.Range{blob.Span(0, 1)}, nil); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s != (Stats{Bypassed: 4}) {
		t.Errorf("counted %+v", s)
	}
}

func TestSetIsReadBackWithoutTheStore(t *testing.T) {
	h := newHooked()
	c := over(t, h, Options{})
	defer mustClose(t, c)
	mine := []byte("content")
	opts := &blob.SetOptions{Metadata: map[string]string{"a": "1"}, ContentType: "text/plain"}
	if _, err := c.Set(t.Context(), key, blob.Bytes(mine), opts); err != nil {
		t.Fatal(err)
	}
	clear(mine) // the caller's again
	opts.Metadata["a"] = "2"
	o, err := c.Get(t.Context(), key, nil)
	if err != nil || string(o.Data) != "content" || o.Metadata["a"] != "1" || o.ContentType != "text/plain" || o.ModTime.IsZero() {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := c.Stat(t.Context(), key); err != nil {
		t.Error(err)
	}
	wantCalls(t, h, blob.OpGet, 0)
	wantCalls(t, h, blob.OpStat, 0)
}

// S3 says no ModTime with a Set.
func TestWhatSetDoesNotSayIsAskedForAndNotInvented(t *testing.T) {
	h := newHooked()
	h.mangle = func(i *blob.Info) { i.ModTime, i.ContentType, i.Metadata = time.Time{}, "", nil }
	c := over(t, h, Options{})
	defer mustClose(t, c)
	if _, err := c.Set(t.Context(), key, blob.Bytes([]byte("v1")), &blob.SetOptions{Metadata: map[string]string{"a": "1"}}); err != nil {
		t.Fatal(err)
	}
	h.ranges = nil
	for range 2 {
		o, err := c.Get(t.Context(), key, nil)
		if err != nil || string(o.Data) != "v1" || o.ModTime.IsZero() || o.Metadata["a"] != "1" {
			t.Errorf("%+v, %v", o, err)
		}
	}
	if want := []blob.Range{blob.Span(0, 0)}; !reflect.DeepEqual(h.ranges, want) {
		t.Errorf("fetched %v, want %v", h.ranges, want)
	}
}

func TestOthersWritesAreSeenAsRevalidateSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, r := range []time.Duration{0, time.Minute, Always} {
			h := newHooked()
			c := over(t, h, Options{Revalidate: r})
			set(t, h.inner, key, "v1")
			wantGet(t, c, key, "v1")
			set(t, h.inner, key, "v2")
			want := "v1"
			if r == Always {
				want = "v2"
			}
			wantGet(t, c, key, want)
			<-time.After(59 * time.Second)
			wantGet(t, c, key, want)
			<-time.After(2 * time.Second)
			if r != 0 {
				want = "v2"
			}
			wantGet(t, c, key, want)
			if err := h.inner.Delete(t.Context(), key, nil); err != nil {
				t.Fatal(err)
			}
			<-time.After(61 * time.Second)
			if r != 0 {
				want = "absent"
			}
			wantGet(t, c, key, want)
			mustClose(t, c)
		}
	})
}

func TestRevalidationSendsNoPayloadWhileNothingChanged(t *testing.T) {
	h := newHooked()
	c := over(t, h, Options{Revalidate: Always})
	defer mustClose(t, c)
	set(t, h.inner, key, "v1")
	wantGet(t, c, key, "v1")
	h.ranges = nil
	wantGet(t, c, key, "v1")
	if want := []blob.Range{blob.Span(0, 0)}; !reflect.DeepEqual(h.ranges, want) {
		t.Errorf("fetched %v, want %v", h.ranges, want)
	}
}

// A block of a version that others have replaced is not there any more: the read begins anew with the current one.
func TestRangeOfAReplacedObjectIsOfTheNewOne(t *testing.T) {
	inner := memblob.New(nil)
	c := over(t, inner, Options{Block: block})
	defer mustClose(t, c)
	v1, v2 := pattern(10*block), strings.ToUpper(pattern(9*block))
	set(t, inner, key, v1)
	wantRange(t, c, blob.Span(0, 10), v1)
	set(t, inner, key, v2)
	wantRange(t, c, blob.Span(0, 10), v1)
	wantRange(t, c, blob.Span(block, 10), v2)
	wantRange(t, c, blob.Span(0, 10), v2)
}

// A store that sends too little or something else breaks its promise: the answer is passed on, but not kept.
func TestAnswersThatAreNotWholeAreNotKept(t *testing.T) {
	for _, keep := range []int64{0, -1, 1, block, 2 * block} {
		for _, r := range []blob.Range{{}, blob.Span(0, 3*block), blob.Span(block, block+1), blob.Last(100)} {
			inner := memblob.New(nil)
			content := pattern(2*block + 1000)
			set(t, inner, key, content)
			faults := blobtest.NewFaults(inner, blobtest.Fault{Do: blobtest.Truncate, Op: blob.OpGet, Keep: keep, Times: 2})
			c := over(t, faults, Options{Block: block})
			for range 2 {
				_, _ = c.Get(t.Context(), key, &blob.GetOptions{Range: r})
			}
			for range 2 {
				wantRange(t, c, r, content)
				wantRange(t, c, blob.Range{}, content)
			}
			mustClose(t, c)
		}
	}
}

func TestBytesHandedOutStayValid(t *testing.T) {
	inner := memblob.New(nil)
	c := over(t, inner, Options{Memory: 256 << 10, Block: block})
	content := pattern(5 * block)
	set(t, c, key, content)
	whole, err := c.Get(t.Context(), key, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.invalidate(key)
	part, err := c.Get(t.Context(), key, &blob.GetOptions{Range: blob.Span(block, block)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		k := fmt.Sprint(i)
		set(t, c, k, pattern(block))
		get(t, c, k)
	}
	dst := make([]byte, 5*block)
	if _, err := c.Get(t.Context(), key, &blob.GetOptions{Dst: dst}); err != nil {
		t.Fatal(err)
	}
	clear(dst) // the caller's own
	wantGet(t, c, key, content)
	if err := c.Delete(t.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
	mustClose(t, c)
	if string(whole.Data) != content || string(part.Data) != content[block:2*block] {
		t.Error("what was handed out has changed")
	}
	if cap(part.Data) != len(part.Data) || cap(whole.Data)-len(whole.Data) > len(whole.Data)/8 {
		t.Error("an append to what was handed out would write into the cache")
	}
}

func TestWantThatTheCopyDoesNotMeetAsksTheStore(t *testing.T) {
	inner := memblob.New(nil)
	c := over(t, inner, Options{})
	defer mustClose(t, c)
	set(t, inner, key, "v1")
	wantGet(t, c, key, "v1")
	v2 := set(t, inner, key, "second")
	for _, o := range []blob.GetOptions{{Want: blob.Want{Size: 6, HasSize: true}}, {If: blob.IfVersion(v2.Version)}} {
		obj, err := c.Get(t.Context(), key, &o)
		if err != nil || !bytes.Equal(obj.Data, []byte("second")) {
			t.Errorf("%+v: %q, %v", o, obj.Data, err)
		}
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, o := range []Options{
		{Block: 1000}, {Block: -4096}, {MaxFill: -1}, {FillBytes: -1}, {MaxGet: -1}, {Dir: "x"}, {Disk: 1 << 20}, {Disk: -1, Dir: "x"}, {Disk: 1000, Dir: "x"}, {Revalidate: -2},
	} {
		_, err := New(t.Context(), memblob.New(nil), &o)
		var e *blob.Error
		if !errors.Is(err, blob.ErrInvalidOption) || !errors.As(err, &e) || e.Op != blob.OpOpen {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
