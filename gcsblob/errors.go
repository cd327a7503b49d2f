package gcsblob

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// maxErrorBody bounds what is read of an error's document, maxErrorText what is kept of it beside what
// could be understood.
const (
	maxErrorBody = 64 << 10
	maxErrorText = 512
)

// requestIDHeader names a request in the service's logs. Within a resumable session it is the secret of the session's URI.
const requestIDHeader = "X-Guploader-Uploadid"

// replyError returns the error of a reply as the SDK returns its own: *googleapi.Error. It understands the documents of both protocols.
func replyError(res *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	if err != nil {
		data = nil
	}
	res.Body = io.NopCloser(bytes.NewReader(data))
	err = googleapi.CheckResponse(res)
	var g *googleapi.Error
	if !errors.As(err, &g) {
		return &googleapi.Error{Code: res.StatusCode, Header: res.Header}
	}
	if g.Message == "" {
		var doc struct {
			XMLName xml.Name `xml:"Error"`
			Code    string
			Message string
		}
		if xml.Unmarshal(data, &doc) == nil && doc.Code != "" {
			g.Message = doc.Message
			g.Errors = []googleapi.ErrorItem{{Reason: doc.Code, Message: doc.Message}}
		}
	}
	return g
}

// code is the reason of the JSON API ("HTTP status and error codes for JSON") or the code of the XML API ("HTTP status and
// error codes for XML").
func code(g *googleapi.Error) string {
	if len(g.Errors) > 0 {
		return g.Errors[0].Reason
	}
	return ""
}

// fault turns an error of the SDK, of a transport or of replyError into the engine's. st says what had been sent.
func (r *requests) fault(ctx context.Context, err error, st *sent) error {
	if st.session != nil {
		err = st.session.redact(err)
	}
	e := &blob.Error{Err: err}
	var g *googleapi.Error
	if errors.As(err, &g) {
		e.Status, e.Code, e.RequestID = g.Code, code(g), g.Header.Get(requestIDHeader)
		if len(g.Body) > maxErrorText { // it is shown where there is no message
			g.Body = g.Body[:maxErrorText]
		}
		e.RetryAfter = wire.RetryAfter(g.Header, time.Now())
	}
	if st.SourceFailed(e) {
		return e
	}
	if g == nil {
		return st.Lost(ctx, e, st.unsent())
	}
	v := classify(e.Status, e.Code)
	switch {
	case st.session != nil && gone(e.Status):
		v = wire.Refused(blob.ErrNotFound)
	case e.Status == http.StatusNotFound && g.Message == noBucket:
		v = wire.Refused(blob.ErrNoContainer)
	case e.Status == http.StatusNotFound && e.Code == "" && strings.HasPrefix(g.Header.Get("Content-Type"), "text/html"):
		// The service answers with JSON or XML. A page is a proxy's, or of a wrong endpoint: no proof that the key is absent.
		v = wire.Refused(blob.ErrUnavailable)
	case e.Status == http.StatusUnauthorized && r.tokens != nil && r.tokens.wrong(st.token):
		v, e.Err = wire.Refused(blob.ErrUnavailable), fmt.Errorf("the token has been refused and is renewed: %w", err)
	}
	e.Kind, e.Outcome = v.Kind, v.Outcome
	return e
}

// noBucket is the message by which the JSON API tells a missing bucket from a missing object: the status and the reason, notFound, are the
// same.
const noBucket = "The specified bucket does not exist."

// gone reports whether a status says that a resumable session is no more: expired or unknown (404, 410) or cancelled (499), "Resumable
// uploads" and "HTTP status and error codes for JSON".
func gone(status int) bool {
	return status == http.StatusNotFound || status == http.StatusGone || status == statusCancelled
}

// statusCancelled answers the cancellation of a resumable session, and everything after it.
const statusCancelled = 499

// unsent is the kind of an attempt of which nothing was sent: there was no token, or no request could be made.
func (s *sent) unsent() error {
	if s.tokenErr != nil {
		return tokenKind(s.tokenErr)
	}
	return blob.ErrInvalidOption
}

// classify maps a reply to its verdict: the service refused, or something failed on the way and nobody knows. The
// codes of both protocols are told apart by their first letter.
func classify(status int, code string) wire.Verdict {
	switch code {
	case "NoSuchBucket":
		return wire.Refused(blob.ErrNoContainer)
	case "NoSuchKey", "NoSuchVersion", "NoSuchUpload":
		return wire.Refused(blob.ErrNotFound)
	case "PreconditionFailed", "conditionNotMet":
		return wire.Refused(blob.ErrPrecondition)
	case "rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "SlowDown", "TooManyRequests":
		return wire.Refused(blob.ErrThrottled) // with 403, 429 and 503, also for too many writes of one object
	case "EntityTooLarge", "uploadTooLarge":
		return wire.Refused(blob.ErrTooLarge)
	case "BadDigest":
		return wire.Refused(blob.ErrCorrupt)
	case "IncompleteBody", "RequestTimeout":
		return wire.Refused(blob.ErrUnavailable) // not all of the body arrived
	case "InvalidRange", "requestedRangeNotSatisfiable":
		return wire.Refused(blob.ErrInvalidRange)
	case "NotImplemented", "notImplemented", "methodNotAllowed":
		return wire.Refused(blob.ErrUnsupported)
	}
	switch status {
	case http.StatusGone:
		return wire.Refused(blob.ErrNotFound)
	case statusCancelled:
		return wire.Failed()
	case http.StatusRequestEntityTooLarge:
		return wire.Refused(blob.ErrTooLarge)
	}
	return wire.OfStatus(status)
}

// onKey turns the refusal of a write into what its condition means ("Request preconditions": 412, and for a generation also if the
// object is not there).
func onKey(c blob.Condition, err error) error {
	e, ok := err.(*blob.Error) //nolint:errorlint // fault returns it unwrapped
	if !ok {
		return err
	}
	_, pinned := c.Version()
	switch {
	case c.Absent() && e.Kind == blob.ErrPrecondition:
		e.Kind = blob.ErrExists
	case pinned && e.Kind == blob.ErrNotFound:
		e.Kind = blob.ErrPrecondition
	case e.Kind == blob.ErrNotFound: // a write can miss nothing else
		e.Kind = blob.ErrNoContainer
	}
	return e
}

// badSum turns the refusal of a write that stated a checksum, and was refused for it, into blob.ErrCorrupt. The reason of the JSON API
// is the same as for any other mistake; should the message ever be another, the kind is blob.ErrInvalidOption as for those.
func badSum(stated bool, err error) error {
	var g *googleapi.Error
	e, ok := err.(*blob.Error) //nolint:errorlint // fault returns it unwrapped
	if ok && stated && e.Status == http.StatusBadRequest && errors.As(e.Err, &g) && strings.Contains(strings.ToLower(g.Message), "crc32c") {
		e.Kind = blob.ErrCorrupt
	}
	return err
}
