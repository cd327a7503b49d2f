package fakes3

import "github.com/wholeblob/wholeblob/internal/fakehttp"

// RangeEarly and its like are values for Shape.ContentRange; see fakehttp.

// RangeEarly says that the body begins one byte earlier than it does.
func RangeEarly(first, last, total int64) string { return fakehttp.RangeEarly(first, last, total) }

// RangeLate says that the body begins one byte later than it does.
func RangeLate(first, last, total int64) string { return fakehttp.RangeLate(first, last, total) }

// RangeOtherTotal says that the object is one byte longer than it is.
func RangeOtherTotal(first, last, total int64) string {
	return fakehttp.RangeOtherTotal(first, last, total)
}

// RangeNoTotal leaves the total open.
func RangeNoTotal(first, last, total int64) string { return fakehttp.RangeNoTotal(first, last, total) }

// RangeNone leaves Content-Range out.
func RangeNone(first, last, total int64) string { return fakehttp.RangeNone(first, last, total) }

// RangeGarbage cannot be parsed.
func RangeGarbage(first, last, total int64) string { return fakehttp.RangeGarbage(first, last, total) }

// RangeWhole says that the body is the whole object.
func RangeWhole(first, last, total int64) string { return fakehttp.RangeWhole(first, last, total) }

// NoETag is a value for Shape.ETag: the header is left out.
func NoETag(etag string) string { return fakehttp.NoETag(etag) }

// UnquotedETag is a value for Shape.ETag: it is sent without its quotes.
func UnquotedETag(etag string) string { return fakehttp.UnquotedETag(etag) }

// TruncatedNoToken is a value for Shape.List: more to come, but no way on.
func TruncatedNoToken(p *Page) { fakehttp.TruncatedNoToken(p) }

// SameToken is a value for Shape.List: it leads back to the same page.
func SameToken(p *Page) { fakehttp.SameToken(p) }

// EmptyPage is a value for Shape.List: a page without entries, and a token that leads to them.
func EmptyPage(p *Page) { fakehttp.EmptyPage(p) }

// TokenAtEnd is a value for Shape.List: a token with the last page.
func TokenAtEnd(p *Page) { fakehttp.TokenAtEnd(p) }
