package wire

import (
	"net/http"

	"github.com/wholeblob/wholeblob/blob"
)

// Verdict is what a reply means: its kind, and what it says about a mutation.
type Verdict struct {
	Kind    error
	Outcome blob.Outcome
}

// Refused is the verdict that the service has done nothing, for a reason of this kind.
func Refused(kind error) Verdict { return Verdict{kind, blob.NotApplied} }

// Failed is the verdict that something failed on the way, and nobody knows what was done.
func Failed() Verdict { return Verdict{blob.ErrUnavailable, blob.Unknown} }

// OfStatus is the verdict of an error's status alone: for replies without a code, as to HEAD, and with one that says no more.
func OfStatus(status int) Verdict {
	switch {
	case status < 300: // an error document with the status of a success
		return Failed()
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Refused(blob.ErrPermission)
	case status == http.StatusNotFound:
		return Refused(blob.ErrNotFound)
	case status == http.StatusRequestTimeout:
		return Failed()
	case status == http.StatusConflict:
		return Refused(blob.ErrConflict)
	case status == http.StatusPreconditionFailed:
		return Refused(blob.ErrPrecondition)
	case status == http.StatusRequestedRangeNotSatisfiable:
		return Refused(blob.ErrInvalidRange)
	case status == http.StatusTooManyRequests:
		return Refused(blob.ErrThrottled)
	case status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return Refused(blob.ErrUnsupported)
	case status < 500: // redirects, also to another region, and malformed requests
		return Refused(blob.ErrInvalidOption)
	default:
		return Failed()
	}
}
