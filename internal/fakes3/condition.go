package fakes3

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// writeCondition returns the check that PutObject, CompleteMultipartUpload,
// CopyObject and DeleteObject make on the present version, nil for none.
func (c *call) writeCondition() (func(cur *version) *apiError, *apiError) {
	match, none := c.Header.Get("If-Match"), c.Header.Get("If-None-Match")
	if c.Shape.IgnoreIfMatch {
		match = ""
	}
	if c.Shape.IgnoreIfNoneMatch {
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
	if c.Shape.IgnoreIfMatch {
		match = ""
	}
	if c.Shape.IgnoreIfNoneMatch {
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

// span is what is sent of an object.
type span struct {
	fakehttp.Span
	part *storedPart // if that is a part
}

// span resolves Range and partNumber.
func (c *call) span(v *version) (span, *apiError) {
	whole := span{Span: fakehttp.Span{N: v.size}}
	byPart := c.Query.Has("partNumber") && !c.Shape.IgnorePartNumber
	byRange := c.Range != "" && !c.Shape.IgnoreRange
	switch {
	case c.Query.Has("partNumber") && c.Shape.RefusePartNumber != 0:
		st := c.Shape.RefusePartNumber
		return whole, fail(st, statusCodes[st], "partNumber is not supported")
	case byPart && byRange:
		return whole, errRequest("Cannot specify both Range header and partNumber query parameter")
	case byPart:
		return c.partSpan(v)
	case byRange:
		sp, satisfiable := fakehttp.ParseRange(c.Range, v.size)
		if !satisfiable {
			return whole, errRange(c.Range, v.size)
		}
		return span{Span: c.Deform(sp, v.size)}, nil
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
		return span{Span: c.Deform(fakehttp.Span{N: v.size, Partial: v.size > 0}, v.size)}, nil
	}
	for _, p := range v.parts {
		if p.number == n {
			sp := fakehttp.Span{Off: p.off, N: int64(len(p.data)), Partial: true}
			return span{Span: c.Deform(sp, v.size), part: p}, nil
		}
	}
	return span{}, errPartNumber()
}

func errPartNumber() *apiError {
	return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidPartNumber", "The requested partnumber is not satisfiable")
}

func errRange(asked string, size int64) *apiError {
	return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable").
		elem("RangeRequested", asked).elem("ActualObjectSize", strconv.FormatInt(size, 10)).
		with("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
}

// quoted puts quotes around an ETag given without.
func quoted(etag string) string {
	if strings.HasPrefix(etag, `"`) || strings.HasPrefix(etag, "W/") {
		return etag
	}
	return `"` + etag + `"`
}
