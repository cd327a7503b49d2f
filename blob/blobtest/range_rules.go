package blobtest

import (
	"math"

	"github.com/wholeblob/wholeblob/blob"
)

func rangeRules() []rule {
	return []rule{
		{name: "range/exact", says: "A range is half-open and returns exactly its bytes, with the object's total in Info.Size.", run: rangeExact},
		{name: "range/clipped", says: "A range that goes past the end is clipped.", run: rangeClipped},
		{name: "range/at-the-end", says: "An offset equal to the size gives empty Data.", run: rangeAtEnd},
		{name: "range/beyond-the-end", says: "An offset greater than the size is ErrInvalidRange, and later calls work.", run: rangeBeyond},
		{name: "range/empty", says: "Span of no bytes is empty and no error.", run: rangeEmpty},
		{name: "range/last", says: "Last is the end of the object: Last(0) is empty, Last of more than the size the whole object.", run: rangeLast},
		{name: "range/huge", says: "Numbers near the largest int64 are clipped like any other.", run: rangeHuge},
		{name: "range/negative", says: "A negative number is ErrInvalidOption before any I/O.", run: rangeNegative},
		{name: "range/across-parts", says: "Ranges that begin or end at, before and after the boundary of a part return exactly their bytes.", run: rangeAcrossParts},
	}
}

// rangeCase is a range of an object and what it resolves to.
type rangeCase struct {
	r      blob.Range
	off, n int64
}

// ranges checks cases on an object of 100 bytes, through Get and through GetRanges.
func (e *env) ranges(cases ...rangeCase) {
	k, d := e.key("x"), e.data("x", 100)
	e.mustSet(k, d, nil)
	e.rangesOf(k, d, cases...)
}

func (e *env) rangesOf(k string, d []byte, cases ...rangeCase) {
	for _, c := range cases {
		o, err := e.store.Get(e.ctx, k, &blob.GetOptions{Range: c.r})
		if err != nil {
			e.Errorf("Get(%q) %v of %d bytes: %v", k, c.r, len(d), err)
			continue
		}
		e.isPart(o, k, d, c.off, c.n)
		os, err := e.store.GetRanges(e.ctx, k, []blob.Range{c.r}, nil)
		if err != nil || len(os) != 1 {
			e.Errorf("GetRanges(%q) %v of %d bytes: %d objects, %v", k, c.r, len(d), len(os), err)
			continue
		}
		e.isPart(os[0], k, d, c.off, c.n)
	}
}

func rangeExact(e *env) {
	e.ranges(rangeCase{blob.Span(0, 1), 0, 1}, rangeCase{blob.Span(0, 100), 0, 100}, rangeCase{blob.Span(1, 98), 1, 98},
		rangeCase{blob.Span(99, 1), 99, 1}, rangeCase{blob.Span(50, 10), 50, 10}, rangeCase{blob.From(0), 0, 100},
		rangeCase{blob.From(1), 1, 99}, rangeCase{blob.From(99), 99, 1})
}

func rangeClipped(e *env) {
	e.ranges(rangeCase{blob.Span(0, 101), 0, 100}, rangeCase{blob.Span(99, 2), 99, 1}, rangeCase{blob.Span(99, 10), 99, 1}, rangeCase{blob.Span(50, 1000), 50, 50})
}

func rangeAtEnd(e *env) {
	e.ranges(rangeCase{blob.Span(100, 1), 100, 0}, rangeCase{blob.Span(100, 0), 100, 0}, rangeCase{blob.Span(100, 1000), 100, 0}, rangeCase{blob.From(100), 100, 0})
}

func rangeBeyond(e *env) {
	k, d := e.key("x"), e.data("x", 100)
	e.mustSet(k, d, nil)
	for _, r := range []blob.Range{blob.Span(101, 1), blob.Span(101, 0), blob.Span(1000, 5), blob.From(101), blob.From(math.MaxInt64)} {
		_, err := e.store.Get(e.ctx, k, &blob.GetOptions{Range: r})
		e.refused(err, blob.OpGet, k, blob.ErrInvalidRange)
		_, err = e.store.GetRanges(e.ctx, k, []blob.Range{r}, nil)
		e.refused(err, blob.OpGetRanges, k, blob.ErrInvalidRange)
	}
	e.holds(k, d)
}

func rangeEmpty(e *env) {
	e.ranges(rangeCase{blob.Span(0, 0), 0, 0}, rangeCase{blob.Span(5, 0), 5, 0}, rangeCase{blob.Span(99, 0), 99, 0})
}

func rangeLast(e *env) {
	e.ranges(rangeCase{blob.Last(0), 100, 0}, rangeCase{blob.Last(1), 99, 1}, rangeCase{blob.Last(99), 1, 99},
		rangeCase{blob.Last(100), 0, 100}, rangeCase{blob.Last(101), 0, 100}, rangeCase{blob.Last(5000), 0, 100})
}

func rangeHuge(e *env) {
	const huge = math.MaxInt64
	e.ranges(rangeCase{blob.Span(0, huge), 0, 100}, rangeCase{blob.Span(1, huge), 1, 99}, rangeCase{blob.Span(99, huge), 99, 1},
		rangeCase{blob.Span(100, huge), 100, 0}, rangeCase{blob.Span(50, huge-49), 50, 50}, rangeCase{blob.Last(huge), 0, 100})
}

func rangeNegative(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 100), nil)
	for _, key := range []string{k, e.key("missing")} { // refused before the store is asked, so the same for both
		for _, r := range []blob.Range{blob.Span(-1, 1), blob.Span(0, -1), blob.Span(-5, -5), blob.From(-1), blob.Last(-1), blob.Span(math.MinInt64, 1)} {
			e.noRequests("Get of "+r.String(), func() {
				_, err := e.store.Get(e.ctx, key, &blob.GetOptions{Range: r})
				e.refused(err, blob.OpGet, key, blob.ErrInvalidOption)
				_, err = e.store.GetRanges(e.ctx, key, []blob.Range{blob.Span(0, 1), r}, nil)
				e.refused(err, blob.OpGetRanges, key, blob.ErrInvalidOption)
			})
		}
	}
}

func rangeAcrossParts(e *env) {
	p := e.PartSize
	size := 3*p + p/2
	k, d := e.key("x"), e.data("x", size)
	e.mustSet(k, d, nil)
	var cases []rangeCase
	for _, off := range []int64{0, 1, p - 1, p, p + 1, 2*p - 1, 2 * p, 3 * p, size - 1} {
		for _, n := range []int64{1, 2, p - 1, p, p + 1, 2 * p, size} {
			cases = append(cases, rangeCase{blob.Span(off, n), off, min(n, size-off)})
		}
		cases = append(cases, rangeCase{blob.From(off), off, size - off}, rangeCase{blob.Last(off), size - off, off})
	}
	e.rangesOf(k, d, cases...)
}
