package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads the header of that name, in seconds or as a date (RFC 9110, 10.2.3).
func RetryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

// ContentRange reads "bytes 0-99/1000" into [off, end) of total, and "bytes 0-99/*" with total -1. Anything
// else is not a range: ok is false.
func ContentRange(v string) (off, end, total int64, ok bool) {
	spec, found := strings.CutPrefix(v, "bytes ")
	if !found {
		return 0, 0, 0, false
	}
	span, size, found := strings.Cut(spec, "/")
	first, last, found2 := strings.Cut(span, "-")
	if !found || !found2 {
		return 0, 0, 0, false
	}
	off, ok1 := Number(first)
	end, ok2 := Number(last)
	total = -1
	ok3 := size == "*"
	if !ok3 {
		total, ok3 = Number(size)
	}
	if !ok1 || !ok2 || !ok3 {
		return 0, 0, 0, false
	}
	return off, end + 1, total, true
}

// Number parses digits only, below the largest int64 so that one more still fits.
func Number(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil && n < 1<<63-1
}

// EntityTag reports whether version can stand between the quotes of an entity tag (RFC 9110, 8.8.3). Others would end up in a list
// of several.
func EntityTag(version string) bool {
	for i := range len(version) {
		if c := version[i]; c < 0x21 || c == '"' || c == 0x7F {
			return false
		}
	}
	return true
}
