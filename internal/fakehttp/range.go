package fakehttp

import (
	"fmt"
	"strconv"
	"strings"
)

// Span is the piece of an object that is sent: N bytes from Off on.
type Span struct {
	Off, N int64
	// Partial is set if it is sent as a piece (206), even if it is the whole.
	Partial bool
}

// ParseRange understands one byte range (RFC 9110) of an object of size bytes. What is not valid syntax, or names
// several ranges, is ignored as the RFC says: the whole object is sent. satisfiable is false where the answer is 416. The
// last bytes of an empty object are the whole of it: AWS answers 200 (apache/arrow-rs-object-store #846).
func ParseRange(value string, size int64) (sp Span, satisfiable bool) {
	whole := Span{N: size}
	spec, ok := strings.CutPrefix(value, "bytes=")
	from, to, dash := strings.Cut(strings.TrimSpace(spec), "-")
	switch {
	case !ok || !dash || strings.Contains(spec, ","):
		return whole, true
	case from == "":
		return suffixRange(to, size)
	}
	first, ok := number(from)
	if !ok {
		return whole, true
	}
	last := size - 1
	if to != "" {
		l, ok := number(to)
		if !ok || l < first {
			return whole, true
		}
		last = min(l, last)
	}
	if first >= size {
		return Span{}, false
	}
	return Span{Off: first, N: last - first + 1, Partial: true}, true
}

func number(digits string) (int64, bool) {
	n, err := strconv.ParseUint(digits, 10, 63) // unlike ParseInt it takes no sign
	return int64(n), err == nil
}

func suffixRange(count string, size int64) (Span, bool) {
	n, ok := number(count)
	switch {
	case !ok:
		return Span{N: size}, true
	case n == 0:
		return Span{}, false
	case size == 0:
		return Span{}, true
	}
	n = min(n, size)
	return Span{Off: size - n, N: n, Partial: true}, true
}

// Deform moves or shortens what is sent of an object of total bytes, as the shape asks. Only a partial Span changes.
func (s *Shape) Deform(sp Span, total int64) Span {
	if !sp.Partial {
		return sp
	}
	sp.Off = min(max(sp.Off+s.ShiftRange, 0), total)
	sp.N = min(sp.N, total-sp.Off)
	short := s.Short
	if sp.Off+sp.N == total {
		short += s.ShortLast
	}
	sp.N = max(sp.N-short, 0)
	return sp
}

// RangeHeader is the Content-Range of a partial Span, deformed as the shape asks, or "" for none.
func (s *Shape) RangeHeader(sp Span, total int64) string {
	first, last := sp.Off, sp.Off+sp.N-1
	switch {
	case s.ContentRange != nil:
		return s.ContentRange(first, last, total)
	case sp.N == 0:
		return "" // no Content-Range can name an empty piece
	}
	return fmt.Sprintf("bytes %d-%d/%d", first, last, total)
}
