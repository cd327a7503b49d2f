package blob

import (
	"errors"
	"math"
	"math/big"
	"testing"
)

func TestRangeResolves(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct {
		r            Range
		size, off, n int64
	}{
		{Range{}, 0, 0, 0},
		{Range{}, 10, 0, 10},
		{Range{}, most, 0, most},
		{From(0), 10, 0, 10},
		{From(3), 10, 3, 7},
		{From(10), 10, 10, 0}, // an offset equal to the size is empty
		{From(most), most, most, 0},
		{Span(0, 0), 0, 0, 0},
		{Span(0, 0), 10, 0, 0},
		{Span(3, 4), 10, 3, 4},
		{Span(3, 7), 10, 3, 7},
		{Span(3, 8), 10, 3, 7}, // clipped
		{Span(10, 1), 10, 10, 0},
		{Span(10, 0), 10, 10, 0},
		{Span(9, most), 10, 9, 1}, // off+n overflows
		{Span(most, most), most, most, 0},
		{Last(0), 10, 10, 0},
		{Last(0), 0, 0, 0},
		{Last(4), 10, 6, 4},
		{Last(10), 10, 0, 10},
		{Last(11), 10, 0, 10}, // more than there is: the whole
		{Last(most), 0, 0, 0},
	} {
		off, n, err := c.r.Resolve(c.size)
		if err != nil || off != c.off || n != c.n {
			t.Errorf("%v of %d bytes is [%d, +%d), %v; want [%d, +%d)", c.r, c.size, off, n, err, c.off, c.n)
		}
	}
}

func TestRangeBeyondTheEndIsInvalidRange(t *testing.T) {
	for _, r := range []Range{From(11), Span(11, 0), Span(11, 1), Span(math.MaxInt64, math.MaxInt64)} {
		off, n, err := r.Resolve(10)
		if !errors.Is(err, ErrInvalidRange) || off != 0 || n != 0 {
			t.Errorf("%v of 10 bytes is [%d, +%d), %v", r, off, n, err)
		}
	}
}

func TestRangeOfANegativeNumberIsInvalidOption(t *testing.T) {
	for _, r := range []Range{From(-1), Span(-1, 1), Span(1, -1), Span(math.MinInt64, math.MinInt64), Last(-1), Last(math.MinInt64)} {
		if err := r.Check(); !errors.Is(err, ErrInvalidOption) {
			t.Errorf("%v.Check is %v", r, err)
		}
		if _, _, err := r.Resolve(10); !errors.Is(err, ErrInvalidOption) {
			t.Errorf("%v.Resolve is %v", r, err)
		}
	}
	for _, r := range []Range{{}, From(0), Span(0, 0), Last(0), Span(math.MaxInt64, math.MaxInt64)} {
		if err := r.Check(); err != nil {
			t.Errorf("%v.Check is %v", r, err)
		}
	}
}

func TestRangeSaysWhatItIs(t *testing.T) {
	for _, c := range []struct {
		r        Range
		text     string
		whole    bool
		start    int64
		hasStart bool
		limit    int64
		hasLimit bool
	}{
		{r: Range{}, text: "whole", whole: true, hasStart: true},
		{r: From(0), text: "whole", whole: true, hasStart: true},
		{r: From(7), text: "From(7)", start: 7, hasStart: true},
		{r: Span(0, 0), text: "Span(0, 0)", hasStart: true, hasLimit: true},
		{r: Span(10, 5), text: "Span(10, 5)", start: 10, hasStart: true, limit: 5, hasLimit: true},
		{r: Last(0), text: "Last(0)", hasLimit: true},
		{r: Last(9), text: "Last(9)", limit: 9, hasLimit: true},
		{r: Last(-9), text: "Last(-9)", limit: -9, hasLimit: true},
	} {
		start, hasStart := c.r.Start()
		limit, hasLimit := c.r.Limit()
		if c.r.String() != c.text || c.r.IsWhole() != c.whole || start != c.start || hasStart != c.hasStart || limit != c.limit || hasLimit != c.hasLimit {
			t.Errorf("%v: whole %v, start %d %v, limit %d %v", c.r, c.r.IsWhole(), start, hasStart, limit, hasLimit)
		}
	}
}

// FuzzRangeResolve compares with the definition in unbounded integers: the bytes i of the object with
// first <= i < last.
func FuzzRangeResolve(f *testing.F) {
	f.Add(uint8(0), int64(0), int64(0), int64(0))
	f.Add(uint8(1), int64(9), int64(math.MaxInt64), int64(10))
	f.Add(uint8(2), int64(0), int64(math.MaxInt64), int64(5))
	f.Add(uint8(1), int64(-1), int64(-1), int64(math.MaxInt64))
	f.Add(uint8(0), int64(math.MaxInt64), int64(0), int64(math.MaxInt64-1))
	f.Fuzz(func(t *testing.T, which uint8, a, b, size int64) {
		if size < 0 {
			return // no object has such a size
		}
		total := big.NewInt(size)
		first, last := new(big.Int), new(big.Int).Set(total)
		var r Range
		negative := a < 0
		switch which % 3 {
		case 0:
			r = From(a)
			first.SetInt64(a)
		case 1:
			r = Span(a, b)
			negative = a < 0 || b < 0
			first.SetInt64(a)
			last.Add(first, big.NewInt(b))
		case 2:
			r = Last(a)
			first.Sub(total, big.NewInt(a))
		}
		off, n, err := r.Resolve(size)
		switch {
		case negative:
			if !errors.Is(err, ErrInvalidOption) {
				t.Fatalf("%v of %d: %v", r, size, err)
			}
		case first.Cmp(total) > 0:
			if !errors.Is(err, ErrInvalidRange) {
				t.Fatalf("%v of %d: %v", r, size, err)
			}
		default:
			if first.Sign() < 0 {
				first.SetInt64(0)
			}
			if last.Cmp(total) > 0 {
				last.Set(total)
			}
			want := new(big.Int).Sub(last, first)
			if err != nil || first.Cmp(big.NewInt(off)) != 0 || want.Cmp(big.NewInt(n)) != 0 {
				t.Fatalf("%v of %d is [%d, +%d), %v; want [%v, +%v)", r, size, off, n, err, first, want)
			}
			if limit, ok := r.Limit(); ok && n > limit {
				t.Fatalf("%v of %d has %d bytes, more than its limit", r, size, n)
			}
		}
	})
}
