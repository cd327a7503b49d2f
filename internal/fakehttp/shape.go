package fakehttp

import (
	"fmt"
	"slices"
)

// Shape is how answers deviate: of the whole server in Traits, of single
// requests in a Fault. Its zero value is no deviation. A protocol honours what it has: one
// without ETags has no use for ETag.
type Shape struct {
	// IgnoreRange answers the whole object (200) when a Range is asked for.
	IgnoreRange bool
	// ContentRange replaces the Content-Range of 206 answers; "" leaves it
	// out. The body stays as it is. Nil: the truth. See RangeEarly and others.
	ContentRange func(first, last, total int64) string
	// ShiftRange serves a range that begins so many bytes later (negative:
	// earlier) than was asked for, and says so in Content-Range.
	ShiftRange int64
	// Short serves so many bytes less than was asked for, with a Content-Range
	// and a Content-Length that agree with the body.
	Short int64
	// ShortLast is Short for bodies that reach the end of the object.
	ShortLast int64

	// IgnorePartNumber answers the whole object (200) when a part is asked for.
	IgnorePartNumber bool
	// RefusePartNumber is the status that requests for a part get. Zero: they
	// are served.
	RefusePartNumber int
	// NoPartsCount leaves out the header with the number of parts.
	NoPartsCount bool

	// LengthOff is added to the announced Content-Length; the body stays.
	LengthOff int64
	// Length says how the length of the body is told.
	Length LengthStyle
	// Spaces are sent, flushed one by one, before the body: S3 keeps a slow
	// Complete or Copy alive so. The length is not announced then.
	Spaces int
	// Gzip compresses whole bodies on the wire when the client offers gzip.
	Gzip bool

	// ETag replaces the versions that answers about single objects state, in headers and documents; "" leaves a header out and
	// an element empty. It gets the version as it would be sent. Nil: the truth. See NoETag and UnquotedETag.
	ETag func(etag string) string
	// IgnoreIfMatch and IgnoreIfNoneMatch act as if the condition, or its like
	// in the protocol, were absent.
	IgnoreIfMatch, IgnoreIfNoneMatch bool

	// List may change each page of a listing before it is sent; of listings
	// other than that of objects only Truncated and Token. Nil: no change.
	List func(*Page)
	// DeleteError names the error code of one key of a batch of deletes, "" to
	// delete it. Nil: no key fails.
	DeleteError func(key string) string

	// Extra is what only one protocol knows, of a type that it documents. Nil: nothing. Of two, the later wins.
	Extra any
}

// LengthStyle is how an answer tells the length of its body.
type LengthStyle int

const (
	// Announced sends Content-Length.
	Announced LengthStyle = iota
	// Chunked sends the chunked coding and no Content-Length.
	Chunked
	// CloseDelimited sends an HTTP/1.0 answer without a length: the body ends
	// with the connection.
	CloseDelimited
)

// RangeEarly is a value for Shape.ContentRange, like those that follow: it says
// that the body begins one byte earlier than it does.
func RangeEarly(first, last, total int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", max(first-1, 0), last-1, total)
}

// RangeLate says that the body begins one byte later than it does.
func RangeLate(first, last, total int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", first+1, last+1, total)
}

// RangeOtherTotal says that the object is one byte longer than it is.
func RangeOtherTotal(first, last, total int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", first, last, total+1)
}

// RangeNoTotal leaves the total open, as RFC 9110 allows.
func RangeNoTotal(first, last, _ int64) string {
	return fmt.Sprintf("bytes %d-%d/*", first, last)
}

// RangeNone leaves Content-Range out.
func RangeNone(_, _, _ int64) string { return "" }

// RangeGarbage is a Content-Range that cannot be parsed.
func RangeGarbage(_, _, _ int64) string { return "bytes what/ever" }

// RangeWhole says that the body is the whole object.
func RangeWhole(_, _, total int64) string {
	return fmt.Sprintf("bytes 0-%d/%d", total-1, total)
}

// NoETag and UnquotedETag are values for Shape.ETag.
func NoETag(string) string { return "" }

// UnquotedETag sends the ETag without its quotes.
func UnquotedETag(etag string) string { return etag[1 : len(etag)-1] }

// merge adds what o asks for; of values that exclude each other o's wins.
func (s *Shape) merge(o *Shape) {
	s.IgnoreRange = s.IgnoreRange || o.IgnoreRange
	s.IgnorePartNumber = s.IgnorePartNumber || o.IgnorePartNumber
	s.NoPartsCount = s.NoPartsCount || o.NoPartsCount
	s.Gzip = s.Gzip || o.Gzip
	s.IgnoreIfMatch = s.IgnoreIfMatch || o.IgnoreIfMatch
	s.IgnoreIfNoneMatch = s.IgnoreIfNoneMatch || o.IgnoreIfNoneMatch
	over(&s.RefusePartNumber, o.RefusePartNumber)
	over(&s.ShiftRange, o.ShiftRange)
	over(&s.Short, o.Short)
	over(&s.ShortLast, o.ShortLast)
	over(&s.LengthOff, o.LengthOff)
	over(&s.Length, o.Length)
	over(&s.Spaces, o.Spaces)
	if o.ContentRange != nil {
		s.ContentRange = o.ContentRange
	}
	if o.ETag != nil {
		s.ETag = o.ETag
	}
	if o.List != nil {
		s.List = o.List
	}
	if o.DeleteError != nil {
		s.DeleteError = o.DeleteError
	}
	if o.Extra != nil {
		s.Extra = o.Extra
	}
}

func over[T comparable](to *T, from T) {
	var zero T
	if from != zero {
		*to = from
	}
}

// ETagOf is what an answer says instead of etag.
func (s *Shape) ETagOf(etag string) string {
	if s.ETag != nil && etag != "" {
		return s.ETag(etag)
	}
	return etag
}

// EditPage lets the script change a page.
func (s *Shape) EditPage(p *Page) {
	if s.List != nil {
		p.Keys, p.Prefixes = slices.Clone(p.Keys), slices.Clone(p.Prefixes)
		s.List(p)
	}
}
