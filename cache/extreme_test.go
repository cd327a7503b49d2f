package cache

import (
	"fmt"
	"math"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// "As much as there is" is written as a very large number: no option turns into its opposite there, what is set and read is kept, and comes
// back right.
func TestOptionsAreGoodUpToTheLargestNumber(t *testing.T) {
	const most, pages = math.MaxInt64, math.MaxInt64 / minBlock * minBlock
	for _, n := range []int64{most, pages, pages - minBlock, most/9*8 + 8, 1<<60 + minBlock} {
		page := n / minBlock * minBlock
		for name, c := range map[string]struct {
			o      Options
			ranges bool // are kept
		}{
			"Memory":                {Options{Memory: n}, true},
			"Disk":                  {Options{Memory: -1, Disk: n}, true},
			"MaxFill":               {Options{Disk: 8 << 20, MaxFill: n}, true},
			"FillBytes":             {Options{Disk: 8 << 20, FillBytes: n}, true},
			"MaxGet":                {Options{Disk: 8 << 20, MaxGet: n}, true},
			"Block":                 {Options{Disk: 8 << 20, Block: page}, false},
			"all":                   {Options{Memory: n, Disk: n, MaxFill: n, FillBytes: n, MaxGet: n, Block: page}, false},
			"all, on disk":          {Options{Memory: -1, Disk: n, MaxFill: n, FillBytes: n, MaxGet: n, Block: page}, false},
			"all but Block":         {Options{Memory: n, Disk: n, MaxFill: n, FillBytes: n, MaxGet: n}, true},
			"Block fits":            {Options{Memory: n, MaxFill: n, FillBytes: n, MaxGet: n, Block: min(n, maxSize) / 8 / minBlock * minBlock}, true},
			"Block fits, with Disk": {Options{Memory: n, Disk: n, MaxFill: n, FillBytes: n, MaxGet: n, Block: min(n, maxSize) / 8 / minBlock * minBlock}, true},
		} {
			t.Run(fmt.Sprint(n, "/", name), func(t *testing.T) { wantKept(t, c.o, c.ranges) })
		}
	}
}

// wantKept wants that a cache with those options asks the store once for what it reads, and not at all for what was set; for ranges once for each, if
// they are not kept.
func wantKept(t *testing.T, o Options, ranges bool) {
	t.Helper()
	content := string(tiertest.Bytes(1, 300_000))
	h := newHooked()
	for _, k := range []string{"whole", "range", "ranges"} {
		set(t, h.inner, k, content)
	}
	c := over(t, h, o)
	defer mustClose(t, c)
	set(t, c, key, content)
	for i := range 3 {
		if c.disk != nil {
			written(t, c.disk)
		}
		before := h.count(blob.OpGet) + h.count(blob.OpGetRanges)
		wantGet(t, c, key, content)
		wantGet(t, c, "whole", content)
		got, err := c.Get(t.Context(), "range", &blob.GetOptions{Range: blob.Span(5000, 10_000)})
		if err != nil || string(got.Data) != content[5000:15_000] {
			t.Errorf("Get of a range: %d bytes, %v", len(got.Data), err)
		}
		objs, err := c.GetRanges(t.Context(), "ranges", []blob.Range{blob.Span(5000, 10_000), blob.Span(200_000, 5), blob.Last(7)}, nil)
		if err != nil || string(objs[0].Data) != content[5000:15_000] || string(objs[1].Data) != content[200_000:200_005] || string(objs[2].Data) != content[299_993:] {
			t.Errorf("GetRanges: %v", err)
		}
		if n := h.count(blob.OpGet) + h.count(blob.OpGetRanges) - before; i > 0 && n > 0 && (ranges || n > 2) {
			t.Errorf("%d requests for what had been read", n)
		}
	}
	if s := c.Stats(); s.FillsSkipped != 0 || s.Disk.SkippedFills != 0 || s.Disk.Off {
		t.Errorf("%+v", s)
	}
	stateless(t, c)
}
