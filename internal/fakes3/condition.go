package fakes3

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// writeCondition returns the check that PutObject, CompleteMultipartUpload,
// CopyObject and DeleteObject make on the present version, nil for none.
func (c *call) writeCondition() (func(cur *version) *apiError, *apiError) {
	match, none := c.Header.Get("If-Match"), c.Header.Get("If-None-Match")
	if c.shape.IgnoreIfMatch {
		match = ""
	}
	if c.shape.IgnoreIfNoneMatch {
		none = ""
	}
	switch {
	case match == "" && none == "":
		return nil, nil
	case match != "" && none != "", none != "" && none != "*":
		return nil, errNotImplemented("If-None-Match other than *, or beside If-Match")
	case none != "":
		return func(cur *version) *apiError {
			if cur != nil {
				return errPrecondition("If-None-Match")
			}
			return nil
		}, nil
	}
	return func(cur *version) *apiError {
		switch {
		case cur == nil:
			return errNoSuchKey(c.Key)
		case !etagMatches(match, cur.etag):
			return errPrecondition("If-Match")
		}
		return nil
	}, nil
}

// etagMatches compares a list of ETags, or "*", with an object's.
func etagMatches(list, etag string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if t = strings.TrimSpace(t); t == "*" || quoted(t) == etag {
			return true
		}
	}
	return false
}

// readCondition applies the four conditions of GET and HEAD in the order that
// the S3 API reference gives for combinations of them. It returns 0 when the
// object is to be sent, else 304 or 412 with the name of the header.
func (c *call) readCondition(v *version) (status int, condition string) {
	h := c.Header
	match, none := h.Get("If-Match"), h.Get("If-None-Match")
	if c.shape.IgnoreIfMatch {
		match = ""
	}
	if c.shape.IgnoreIfNoneMatch {
		none = ""
	}
	// Dates in headers have whole seconds.
	mod := v.modTime.Truncate(time.Second)
	if match != "" {
		if !etagMatches(match, v.etag) {
			return http.StatusPreconditionFailed, "If-Match"
		}
	} else if t, err := http.ParseTime(h.Get("If-Unmodified-Since")); err == nil && mod.After(t) {
		return http.StatusPreconditionFailed, "If-Unmodified-Since"
	}
	if none != "" {
		if etagMatches(none, v.etag) {
			return http.StatusNotModified, "If-None-Match"
		}
	} else if t, err := http.ParseTime(h.Get("If-Modified-Since")); err == nil && !mod.After(t) {
		return http.StatusNotModified, "If-Modified-Since"
	}
	return 0, ""
}

// span is the part of an object that is sent: [off, off+n).
type span struct {
	off, n  int64
	partial bool // 206 with a Content-Range
	part    *storedPart
}

// span resolves Range and partNumber.
func (c *call) span(v *version) (span, *apiError) {
	whole := span{n: v.size}
	byPart := c.Query.Has("partNumber") && !c.shape.IgnorePartNumber
	byRange := c.Range != "" && !c.shape.IgnoreRange
	switch {
	case c.Query.Has("partNumber") && c.shape.RefusePartNumber != 0:
		st := c.shape.RefusePartNumber
		return whole, fail(st, statusCodes[st], "partNumber is not supported")
	case byPart && byRange:
		return whole, errRequest("Cannot specify both Range header and partNumber query parameter")
	case byPart:
		return c.partSpan(v)
	case byRange:
		sp, err := parseRange(c.Range, v.size)
		if err == nil && sp.partial {
			sp = c.deform(sp, v.size)
		}
		return sp, err
	}
	return whole, nil
}

func (c *call) partSpan(v *version) (span, *apiError) {
	n, err := strconv.Atoi(c.Query.Get("partNumber"))
	if err != nil || n < 1 || n > 10_000 {
		return span{}, errArgument("Part number must be an integer between 1 and 10000, inclusive")
	}
	if v.parts == nil {
		if n > 1 {
			return span{}, errPartNumber()
		}
		// An empty object is answered with 200: no byte range can name its
		// content (versitygw #2074 shows AWS's 206 for the others).
		return c.deform(span{n: v.size, partial: v.size > 0}, v.size), nil
	}
	for _, p := range v.parts {
		if p.number == n {
			return c.deform(span{off: p.off, n: int64(len(p.data)), partial: true, part: p}, v.size), nil
		}
	}
	return span{}, errPartNumber()
}

func errPartNumber() *apiError {
	return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidPartNumber", "The requested partnumber is not satisfiable")
}

// deform moves or shortens what is sent, as the shape asks.
func (c *call) deform(sp span, total int64) span {
	if !sp.partial {
		return sp
	}
	sp.off = min(max(sp.off+c.shape.ShiftRange, 0), total)
	sp.n = min(sp.n, total-sp.off)
	short := c.shape.Short
	if sp.off+sp.n == total {
		short += c.shape.ShortLast
	}
	sp.n = max(sp.n-short, 0)
	return sp
}

// parseRange understands one byte range. What is not valid syntax, or names
// several ranges, is ignored as RFC 9110 says: the whole object is sent.
func parseRange(value string, size int64) (span, *apiError) {
	whole := span{n: size}
	spec, ok := strings.CutPrefix(value, "bytes=")
	from, to, dash := strings.Cut(strings.TrimSpace(spec), "-")
	switch {
	case !ok || !dash || strings.Contains(spec, ","):
		return whole, nil
	case from == "":
		return suffixRange(to, size)
	}
	first, ok := number(from)
	if !ok {
		return whole, nil
	}
	last := size - 1
	if to != "" {
		l, ok := number(to)
		if !ok || l < first {
			return whole, nil
		}
		last = min(l, last)
	}
	if first >= size {
		return whole, errRange(value, size)
	}
	return span{off: first, n: last - first + 1, partial: true}, nil
}

func number(digits string) (int64, bool) {
	n, err := strconv.ParseUint(digits, 10, 63) // unlike ParseInt it takes no sign
	return int64(n), err == nil
}

func suffixRange(count string, size int64) (span, *apiError) {
	n, ok := number(count)
	switch {
	case !ok:
		return span{n: size}, nil
	case n == 0:
		return span{}, errRange("bytes=-0", size)
	case size == 0:
		// AWS answers 200 here, not 416 (apache/arrow-rs-object-store #846).
		return span{}, nil
	}
	n = min(n, size)
	return span{off: size - n, n: n, partial: true}, nil
}

func errRange(asked string, size int64) *apiError {
	return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable").
		elem("RangeRequested", asked).elem("ActualObjectSize", strconv.FormatInt(size, 10)).
		with("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
}
