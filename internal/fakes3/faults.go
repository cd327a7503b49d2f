package fakes3

import (
	"net/http"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// What fakehttp has and a user of this package names.
type (
	// Request is what is known of a request; Op is the name in the S3 API.
	Request = fakehttp.Request
	// Entry is one request in the log.
	Entry = fakehttp.Entry
	// Log is a sequence of requests in the order of arrival.
	Log = fakehttp.Log
	// Fault is something that happens to chosen requests.
	Fault = fakehttp.Fault
	// Injected is a fault in force.
	Injected = fakehttp.Injected
	// Reply is a scripted answer.
	Reply = fakehttp.Reply
	// Cut ends the connection in the middle of a body.
	Cut = fakehttp.Cut
	// Ending is a way in which a connection ends.
	Ending = fakehttp.Ending
	// Shape is how answers deviate.
	Shape = fakehttp.Shape
	// Page is one page of ListObjectsV2, ListObjectVersions, ListParts or ListMultipartUploads on its way out.
	Page = fakehttp.Page
	// LengthStyle is how an answer tells the length of its body.
	LengthStyle = fakehttp.LengthStyle
)

// The values of Ending and LengthStyle, and the page of a proxy.
const (
	Close   = fakehttp.Close
	Reset   = fakehttp.Reset
	Silence = fakehttp.Silence

	Announced      = fakehttp.Announced
	Chunked        = fakehttp.Chunked
	CloseDelimited = fakehttp.CloseDelimited

	HTMLPage = fakehttp.HTMLPage
)

// Statuses makes replies of statuses; 0 leaves the request alone.
func Statuses(status ...int) []Reply { return fakehttp.Statuses(status...) }

// WrongRegion is the redirect that S3 gives to a request sent to a region
// that is not the bucket's.
func WrongRegion(region string) *Reply {
	return &Reply{
		Status:  http.StatusMovedPermanently,
		Code:    "PermanentRedirect",
		Message: "The bucket you are attempting to access must be addressed using the specified endpoint.",
		Header:  map[string]string{"x-amz-bucket-region": region},
	}
}
