package fakes3

import (
	"fmt"
	"slices"
	"time"
)

// Knobs are steady traits of the server, changed with Server.Set. The zero
// value is a server like Amazon S3.
type Knobs struct {
	Shape

	// Latency is slept before every request is handled. Zero: none.
	Latency time.Duration
	// Bandwidth is the bytes per second of each connection, in bodies of
	// requests and answers. Zero: no limit.
	Bandwidth int64

	// RefuseChecksums is the status (400 or 501) with which checksum headers,
	// algorithm headers and aws-chunked bodies are refused, on every operation
	// with a body but DeleteObjects. Zero: they are honoured.
	RefuseChecksums int
	// RequireContentMD5 makes DeleteObjects demand Content-MD5 and know no
	// other checksum, as servers from before those do.
	RequireContentMD5 bool
	// StoreFraming stores an aws-chunked body with its framing, unverified.
	StoreFraming bool

	// EqualParts refuses Complete (400 InvalidPart) unless all parts but the
	// last have one size and the last is not larger, as Cloudflare R2 does.
	EqualParts bool
	// AllowNoParts lets Complete with no parts make an empty object.
	// False: 400 MalformedXML, as on AWS.
	AllowNoParts bool
	// ForgetUploads answers a repeated Complete with 404 NoSuchUpload instead
	// of the first answer again.
	ForgetUploads bool

	// Order compares keys in listings. Nil: byte order of UTF-8.
	Order func(a, b string) int
	// PageSize is the most entries in a page of any listing. Zero: 1000.
	PageSize int
	// HidesMissing answers 403 AccessDenied for GET and HEAD of absent keys,
	// as AWS does without the permission to list.
	HidesMissing bool
	// LosesMetadata drops user metadata.
	LosesMetadata bool
	// FoldSlashes treats runs of slashes in keys as one and drops leading ones.
	FoldSlashes bool
	// NoBatchDelete answers DeleteObjects with 501 NotImplemented.
	NoBatchDelete bool
}

// Shape is how answers deviate: of the whole server in Knobs, of single
// requests in a Fault. Its zero value is no deviation.
type Shape struct {
	// IgnoreRange answers the whole object (200) when a Range is asked for.
	IgnoreRange bool
	// IgnorePartNumber answers the whole object (200) when a part is asked for.
	IgnorePartNumber bool
	// RefusePartNumber is the status that requests with partNumber get.
	// Zero: they are served.
	RefusePartNumber int
	// NoPartsCount leaves x-amz-mp-parts-count out.
	NoPartsCount bool
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

	// LengthOff is added to the announced Content-Length; the body stays.
	LengthOff int64
	// Length says how the length of the body is told.
	Length LengthStyle
	// Spaces are sent, flushed one by one, before the body: S3 keeps a slow
	// Complete or Copy alive so. The length is not announced then.
	Spaces int
	// Gzip compresses whole bodies on the wire when the client offers gzip.
	Gzip bool

	// ETag replaces ETags in answers of GET, HEAD, PUT, UploadPart, Copy and
	// Complete; "" leaves the header out (in XML: an empty element). It gets
	// the quoted ETag. Nil: the truth. See NoETag and UnquotedETag.
	ETag func(etag string) string
	// IgnoreIfMatch and IgnoreIfNoneMatch act as if the header were absent.
	IgnoreIfMatch, IgnoreIfNoneMatch bool

	// List may change each page of a listing before it is sent; of listings
	// other than ListObjectsV2 only Truncated and Token. Nil: no change.
	List func(*Page)
	// DeleteError names the error code of one key of DeleteObjects, "" to
	// delete it. Nil: no key fails.
	DeleteError func(key string) string
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

// Page is one page of ListObjectsV2, ListObjectVersions, ListParts or
// ListMultipartUploads on its way out.
type Page struct {
	// Keys may be removed, repeated and put in another order.
	Keys     []string
	Prefixes []string
	// Truncated and Token are IsTruncated and the next marker.
	Truncated bool
	Token     string
	// Asked is the marker that the request carried.
	Asked string
	// Here is a marker that leads to this page again.
	Here string
}

// TruncatedNoToken is a value for Shape.List: more to come, but no way on.
func TruncatedNoToken(p *Page) { p.Truncated, p.Token = true, "" }

// SameToken sends the client back to the page it just got.
func SameToken(p *Page) {
	if p.Asked != "" {
		p.Truncated, p.Token = true, p.Asked
	}
}

// EmptyPage replaces the page by one without entries whose token leads to the
// same entries again, so that a client which goes on misses nothing. Use it
// with Times: as a steady trait it never ends.
func EmptyPage(p *Page) {
	p.Keys, p.Prefixes = nil, nil
	p.Truncated, p.Token = true, p.Here
}

// TokenAtEnd sends a token with the last page.
func TokenAtEnd(p *Page) {
	if !p.Truncated {
		p.Token = "t-after-the-end"
	}
}

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
}

func over[T comparable](to *T, from T) {
	var zero T
	if from != zero {
		*to = from
	}
}

// etag is what an answer says instead of etag.
func (s *Shape) etag(etag string) string {
	if s.ETag != nil && etag != "" {
		return s.ETag(etag)
	}
	return etag
}

// page lets the script change a page.
func (s *Shape) page(p *Page) {
	if s.List != nil {
		p.Keys, p.Prefixes = slices.Clone(p.Keys), slices.Clone(p.Prefixes)
		s.List(p)
	}
}
