package transfer

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/blob"
)

func TestPlanFirst(t *testing.T) {
	part1, all := ReadRequest{Part: 1, N: -1}, ReadRequest{N: -1}
	none := ReadRequest{} // the size must be known before
	for _, c := range []struct {
		r        blob.Range
		noSuffix bool
		want     [3]ReadRequest // by mode
	}{
		{r: blob.Range{}, want: [3]ReadRequest{part1, {N: P}, all}},
		{r: blob.From(7), want: [3]ReadRequest{{Off: 7, N: P}, {Off: 7, N: P}, all}},
		{r: blob.Span(7, 5), want: [3]ReadRequest{{Off: 7, N: 5}, {Off: 7, N: 5}, all}},
		{r: blob.Span(0, 5), want: [3]ReadRequest{{N: 5}, {N: 5}, all}},
		{r: blob.Span(7, 5*P), want: [3]ReadRequest{{Off: 7, N: P}, {Off: 7, N: P}, all}},
		{r: blob.Span(7, 0), want: [3]ReadRequest{none, none, none}},
		{r: blob.Last(0), want: [3]ReadRequest{none, none, none}},
		{r: blob.Last(5), want: [3]ReadRequest{{Suffix: 5}, {Suffix: 5}, none}},
		{r: blob.Last(5 * P), want: [3]ReadRequest{{Suffix: P}, {Suffix: P}, none}},
		{r: blob.Last(5), noSuffix: true, want: [3]ReadRequest{none, none, none}},
	} {
		for mode, want := range c.want {
			req, ok := planFirst(c.r, readMode(mode), P, !c.noSuffix)
			if req != want || ok != (want != none) {
				t.Errorf("planFirst(%v, %d, no suffixes %v) = %+v %v, want %+v", c.r, mode, c.noSuffix, req, ok, want)
			}
		}
	}
}

// ranged is a reply with a Content-Range.
func ranged(off, end, total int64) *ReadReply {
	return &ReadReply{Partial: true, HasRange: true, Off: off, End: end, Total: total, Length: end - off}
}

func TestPlace(t *testing.T) {
	part1, part2, all := ReadRequest{Part: 1, N: -1}, ReadRequest{Part: 2, N: -1}, ReadRequest{N: -1}
	mid, tail := ReadRequest{Off: 100, N: 50}, ReadRequest{Suffix: 50}
	lying := ranged(100, 150, 1000)
	lying.Length = 51
	silent := ranged(100, 150, 1000)
	silent.Length = -1
	for _, c := range []struct {
		what string
		req  ReadRequest
		rep  *ReadReply
		want placed
		err  error
	}{
		{"a range", mid, ranged(100, 150, 1000), placed{100, 150, 1000}, nil},
		{"a range, no length", mid, silent, placed{100, 150, 1000}, nil},
		{"a range at the end", mid, ranged(100, 120, 120), placed{100, 120, 120}, nil},
		{"a range, no total", mid, ranged(100, 150, -1), placed{100, 150, -1}, nil},
		{"a short range, no total", mid, ranged(100, 120, -1), placed{100, 120, -1}, nil},
		{"early", mid, ranged(99, 149, 1000), placed{}, blob.ErrCorrupt},
		{"late", mid, ranged(101, 151, 1000), placed{}, blob.ErrCorrupt},
		{"early, no total", mid, ranged(99, 149, -1), placed{}, blob.ErrCorrupt},
		{"late, no total", mid, ranged(500, 510, -1), placed{}, blob.ErrCorrupt},
		{"too long, no total", mid, ranged(100, 151, -1), placed{}, blob.ErrCorrupt},
		{"short", mid, ranged(100, 149, 1000), placed{}, blob.ErrTruncated},
		{"too long", mid, ranged(100, 151, 1000), placed{}, blob.ErrCorrupt},
		{"another length", mid, lying, placed{}, blob.ErrCorrupt},
		{"beyond the total", mid, ranged(100, 150, 149), placed{}, blob.ErrCorrupt},
		{"beyond the end", ReadRequest{Off: 100, N: 50}, ranged(0, 10, 10), placed{}, blob.ErrCorrupt},
		{"no bytes", mid, ranged(100, 100, 1000), placed{}, blob.ErrCorrupt},
		{"backwards", mid, &ReadReply{HasRange: true, Off: 100, End: 90, Total: 1000, Length: -1}, placed{}, blob.ErrCorrupt},
		{"negative", mid, &ReadReply{HasRange: true, Off: -1, End: 49, Total: 1000, Length: 50}, placed{}, blob.ErrCorrupt},

		{"part 1", part1, ranged(0, 100, 1000), placed{0, 100, 1000}, nil},
		{"part 1 is not at 0", part1, ranged(1, 100, 1000), placed{}, blob.ErrCorrupt},
		{"part 1 is not at 0, no total", part1, ranged(1, 100, -1), placed{}, blob.ErrCorrupt},
		{"part 2", part2, ranged(70, 100, 1000), placed{70, 100, 1000}, nil},
		{"part 2, no total", part2, ranged(70, 100, -1), placed{70, 100, -1}, nil},
		{"a suffix", tail, ranged(950, 1000, 1000), placed{950, 1000, 1000}, nil},
		{"a suffix of a short object", tail, ranged(0, 20, 20), placed{0, 20, 20}, nil},
		{"a suffix elsewhere", tail, ranged(940, 990, 1000), placed{}, blob.ErrCorrupt},
		{"a short suffix", tail, ranged(951, 1000, 1000), placed{}, blob.ErrCorrupt},
		{"a suffix, no total", tail, ranged(950, 1000, -1), placed{950, 1000, -1}, nil},
		{"too long a suffix, no total", tail, ranged(949, 1000, -1), placed{}, blob.ErrCorrupt},
		{"all, as a range", all, ranged(0, 1000, 1000), placed{0, 1000, 1000}, nil},
		{"a range for all", all, ranged(0, 999, 1000), placed{}, blob.ErrTruncated},
		{"a later range for all", all, ranged(1, 1000, 1000), placed{}, blob.ErrCorrupt},
		{"a later range for all, no total", all, ranged(1, 1000, -1), placed{}, blob.ErrCorrupt},

		{"all", all, &ReadReply{Length: 1000}, placed{0, 1000, 1000}, nil},
		{"all, no length", all, &ReadReply{Length: -1}, placed{0, -1, -1}, nil},
		{"all, called partial", all, &ReadReply{Length: 1000, Partial: true}, placed{}, blob.ErrTruncated},
		{"a range, no Content-Range", mid, &ReadReply{Length: 50, Partial: true}, placed{}, blob.ErrTruncated},
		{"all for a range", mid, &ReadReply{Length: 1000}, placed{0, 1000, -1}, nil},
		{"all for part 1", part1, &ReadReply{Length: 1000}, placed{0, 1000, -1}, nil},
		{"all for a suffix", tail, &ReadReply{Length: 1000}, placed{0, 1000, -1}, nil},
		{"all for a range, no length", mid, &ReadReply{Length: -1}, placed{}, blob.ErrTruncated},
		{"all for a suffix, no length", tail, &ReadReply{Length: -1}, placed{}, blob.ErrTruncated},
		{"all for the first range, no length", ReadRequest{N: 50}, &ReadReply{Length: -1}, placed{0, -1, -1}, nil},
	} {
		got, err := place(c.req, c.rep)
		switch {
		case !errors.Is(err, c.err):
			t.Errorf("%s: error %v, want %v", c.what, err, c.err)
		case err == nil && got != c.want:
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestPlanRest(t *testing.T) {
	for _, c := range []struct {
		what                           string
		lo, hi, gotLo, gotHi, total, u int64
		parts                          int
		want                           []segment
	}{
		{"all is there", 0, 100, 0, 100, 100, 100, 1, nil},
		{"equal parts", 0, 250, 0, 100, 250, 100, 3, []segment{{2, 100, 100}, {3, 200, 50}}},
		{"two parts", 0, 200, 0, 100, 200, 100, 2, []segment{{2, 100, 100}}},
		{"no count", 0, 250, 0, 100, 250, 100, 0, []segment{{0, 100, 100}, {0, 200, 50}}},
		{"a count that cannot be", 0, 250, 0, 100, 250, 100, 2, []segment{{0, 100, 100}, {0, 200, 50}}},
		{"one part too many", 0, 250, 0, 100, 250, 100, 4, []segment{{0, 100, 100}, {0, 200, 50}}},
		{"part 1 was empty", 0, 250, 0, 0, 250, 100, 3, []segment{{0, 0, 100}, {0, 100, 100}, {0, 200, 50}}},
		{"not the whole object", 0, 240, 0, 100, 250, 100, 3, []segment{{0, 100, 100}, {0, 200, 40}}},
		{"not from its start", 10, 250, 10, 100, 250, 100, 3, []segment{{0, 100, 100}, {0, 200, 50}}},
		{"a hole before", 10, 250, 150, 250, 250, 100, 0, []segment{{0, 10, 100}, {0, 110, 40}}},
		{"holes on both sides", 10, 90, 30, 40, 100, 25, 0, []segment{{0, 10, 20}, {0, 40, 25}, {0, 65, 25}}},
	} {
		got := planRest(c.lo, c.hi, c.gotLo, c.gotHi, c.total, c.u, c.parts)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestRangeUnitIsThatOfTheFirstReplyUnlessOutOfProportion(t *testing.T) {
	for _, c := range []struct{ first, want int64 }{
		{0, 80}, {1, 80}, {9, 80}, {10, 10}, {79, 79}, {80, 80}, {81, 81}, {160, 160}, {161, 80}, {1 << 40, 80},
	} {
		if got := rangeUnit(c.first, 80); got != c.want {
			t.Errorf("rangeUnit(%d, 80) = %d, want %d", c.first, got, c.want)
		}
	}
	if got := rangeUnit(0, 1); got != 1 {
		t.Errorf("rangeUnit(0, 1) = %d: a plan of empty segments never ends", got)
	}
}

// checkPlan fails unless got and segs cover [lo, hi) exactly once.
func checkPlan(t interface{ Fatalf(string, ...any) }, lo, hi, gotLo, gotHi int64, segs []segment) {
	covered := slices.Clone(segs)
	if gotHi > gotLo {
		covered = append(covered, segment{off: gotLo, n: gotHi - gotLo})
	}
	slices.SortFunc(covered, func(a, b segment) int { return int(a.off - b.off) })
	at := lo
	for _, s := range covered {
		if s.n <= 0 || s.off != at {
			t.Fatalf("segment %+v where byte %d should be next: %v", s, at, segs)
		}
		at += s.n
	}
	if at != hi {
		t.Fatalf("the plan ends at %d, want %d: %v", at, hi, segs)
	}
}

// A plan covers what is wanted, each byte once, for every layout.
func TestPlanCoversEachByteOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(lo, hi int64, name string) int64 { return rapid.Int64Range(lo, hi).Draw(t, name) }
		total := n(0, 2000, "total")
		lo := n(0, total, "lo")
		hi := n(lo, total, "hi")
		gotLo := n(lo, hi, "gotLo")
		gotHi := n(gotLo, hi, "gotHi")
		unit := rangeUnit(gotHi-gotLo, n(1, 300, "size"))
		checkPlan(t, lo, hi, gotLo, gotHi, planRest(lo, hi, gotLo, gotHi, total, unit, int(n(-1, 40, "parts"))))
	})
}

func FuzzPlan(f *testing.F) {
	f.Add(uint16(250), uint16(0), uint16(250), uint16(0), uint16(100), uint16(100), int16(3))
	f.Add(uint16(250), uint16(10), uint16(200), uint16(50), uint16(60), uint16(7), int16(0))
	f.Add(uint16(0), uint16(0), uint16(0), uint16(0), uint16(0), uint16(1), int16(1))
	f.Fuzz(func(t *testing.T, total, a, b, c, d, size uint16, parts int16) {
		// Four points of the object in order, whatever came.
		at := []int64{int64(a), int64(b), int64(c), int64(d)}
		for i := range at {
			at[i] %= int64(total) + 1
		}
		slices.Sort(at)
		lo, gotLo, gotHi, hi := at[0], at[1], at[2], at[3]
		unit := rangeUnit(gotHi-gotLo, max(1, int64(size)))
		checkPlan(t, lo, hi, gotLo, gotHi, planRest(lo, hi, gotLo, gotHi, int64(total), unit, int(parts)))
	})
}

// checkPlaced fails if an accepted place contradicts the reply or the request.
func checkPlaced(t interface{ Fatalf(string, ...any) }, req ReadRequest, rep *ReadReply, p placed) {
	bad := func(why string) { t.Fatalf("%s: %+v for %+v of %+v", why, p, req, rep) }
	switch {
	case p.total >= 0 && p.hi > p.total:
		bad("more bytes than the object has")
	case p.hi >= 0 && p.hi < p.lo || p.lo < 0:
		bad("impossible")
	case rep.Length >= 0 && p.hi-p.lo != rep.Length:
		bad("not the length of the body")
	case p.hi < 0 && rep.HasRange:
		bad("the end was known")
	}
	if !rep.HasRange {
		switch asked := req.Part > 0 || req.Suffix > 0 || req.N > 0; {
		case rep.Partial:
			bad("a partial reply that does not say where")
		case rep.Length < 0 && (req.Off > 0 || req.Suffix > 0):
			bad("neither place nor length")
		case p.lo != 0:
			bad("a whole object that does not begin at 0")
		case asked && p.total >= 0, p.total != -1 && p.total != rep.Length:
			bad("a total that nobody stated")
		}
		return
	}
	if p != (placed{rep.Off, rep.End, rep.Total}) && !(rep.Total < 0 && p.total < 0 && p.lo == rep.Off && p.hi == rep.End) {
		bad("not where the reply says")
	}
	switch {
	case req.Part == 1 && p.lo != 0, req.Part <= 0 && req.Suffix <= 0 && req.N <= 0 && p.lo != 0:
		bad("not from the start")
	case req.Part > 0:
	case req.Suffix > 0 && p.hi-p.lo > req.Suffix, req.Suffix > 0 && p.total >= 0 && p.hi != p.total:
		bad("not the last bytes")
	case req.Suffix > 0:
	case req.N > 0 && (p.lo != req.Off || p.hi > req.Off+req.N):
		bad("not the bytes asked for")
	case req.N > 0 && p.total >= 0 && p.hi != min(p.total, req.Off+req.N), req.N <= 0 && p.total >= 0 && p.hi != p.total:
		bad("not all bytes asked for")
	}
}

// No reply is accepted whose bytes are not where it says, or not those that were asked for.
func FuzzPlace(f *testing.F) {
	f.Add(0, int64(0), int64(100), int64(50), true, true, int64(50), int64(100), int64(150), int64(1000))
	f.Add(0, int64(0), int64(100), int64(50), true, true, int64(50), int64(500), int64(550), int64(-1))
	f.Add(1, int64(0), int64(0), int64(-1), false, false, int64(1000), int64(0), int64(0), int64(0))
	f.Add(0, int64(9), int64(0), int64(0), true, true, int64(-1), int64(-9223372036854775808), int64(9223372036854775807), int64(9223372036854775807))
	f.Fuzz(func(t *testing.T, part int, suffix, off, n int64, partial, has bool, length, from, end, total int64) {
		// What the engine asks for: no negative numbers but N, no sum beyond an int64.
		req := ReadRequest{Part: max(0, part), Suffix: max(0, suffix), Off: max(0, off) / 2, N: max(0, n) / 2}
		if req.N == 0 {
			req.N = -1
		}
		rep := &ReadReply{Partial: partial, HasRange: has, Length: max(-1, length), Off: from, End: end, Total: total}
		if p, err := place(req, rep); err == nil {
			checkPlaced(t, req, rep, p)
		} else if !errors.Is(err, blob.ErrTruncated) && !errors.Is(err, blob.ErrCorrupt) {
			t.Fatalf("error %v of %+v for %+v", err, rep, req)
		}
	})
}
