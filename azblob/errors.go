package azblob

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// fault turns an error of the SDK into the engine's. It never reads an error's text. st says what had been sent.
func (r *requests) fault(ctx context.Context, err error, st *sent) *blob.Error {
	var reply *azcore.ResponseError
	if !errors.As(err, &reply) || reply.StatusCode == 0 {
		return r.lost(ctx, err, st)
	}
	e := replied(reply, st.header)
	if e.Kind != nil && st.Body != nil && !st.Body.Complete() && st.SourceFailed(e) {
		return e // the reply is to half a body: the source is the cause
	}
	switch {
	case st.renew:
		e.Kind, e.Err = blob.ErrUnavailable, fmt.Errorf("the token was refused and is renewed: %w", e.Err)
	case reply.ErrorCode == "AuthenticationFailed":
		if skew := clockSkew(st); skew != 0 {
			e.Err = fmt.Errorf("the local clock differs from the service's by %v: %w", skew, e.Err)
		}
	}
	return e
}

// replied is the error of a reply.
func replied(reply *azcore.ResponseError, h http.Header) *blob.Error {
	e := &blob.Error{
		Status: reply.StatusCode, Code: reply.ErrorCode, RequestID: h.Get("x-ms-request-id"), RetryAfter: retryAfter(h, time.Now()),
		Err: said{err: reply, text: message(reply)},
	}
	v := classify(e.Status, e.Code)
	e.Kind, e.Outcome = v.Kind, v.Outcome
	return e
}

// lost classifies an attempt without a reply that makes sense.
func (r *requests) lost(ctx context.Context, err error, st *sent) *blob.Error {
	e := &blob.Error{Err: scrub(err, r.secrets), Status: st.status}
	if st.header != nil {
		e.RequestID = st.header.Get("x-ms-request-id")
	}
	if st.SourceFailed(e) {
		return e
	}
	return st.Lost(ctx, e, unsigned(err))
}

// unsigned is the kind of an attempt that got no token: the directory may answer another one if it failed for the moment.
func unsigned(err error) error {
	var failed *azidentity.AuthenticationFailedError
	if errors.As(err, &failed) && failed.RawResponse != nil {
		if s := failed.RawResponse.StatusCode; s >= 500 || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout {
			return blob.ErrUnavailable
		}
	}
	return blob.ErrPermission
}

// classify maps a reply to its verdict: the service refused, or something failed on the way and nobody knows. Codes are from "Blob Storage error
// codes" and "Common REST API error codes", Azure Storage REST API. The service sends them in a header, to HEAD too.
func classify(status int, code string) wire.Verdict {
	switch code {
	case "BlobNotFound":
		return wire.Refused(blob.ErrNotFound)
	case "ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled", "AccountNotFound",
		"ResourceNotFound": // said to those who may not know whether the container is there
		return wire.Refused(blob.ErrNoContainer)
	case "BlobAlreadyExists", "ResourceAlreadyExists":
		return wire.Refused(blob.ErrExists)
	case "ConditionNotMet", "TargetConditionNotMet", "SourceConditionNotMet":
		return wire.Refused(blob.ErrPrecondition)
	case "InvalidBlockList", "InvalidBlobOrBlock", "BlockCountExceedsLimit":
		return wire.Refused(blob.ErrConflict) // with the blocks of another writer of the key: see Commit and Part
	case "LeaseIdMissing", "LeaseIdMismatchWithBlobOperation", "LeaseLost", "LeaseAlreadyPresent",
		"PendingCopyOperation", "BlobBeingRehydrated", "SystemInUse":
		return wire.Refused(blob.ErrConflict) // somebody holds the blob, and will let go
	case "BlobArchived", "InvalidBlobType", "SnapshotsPresent", "ResourceTypeMismatch", "FeatureVersionMismatch",
		"UnsupportedHttpVerb", "NotImplemented", "APINotImplemented", "ConditionHeadersNotSupported", "UnsupportedHeader", "UnsupportedQueryParameter":
		return wire.Refused(blob.ErrUnsupported)
	case "BlobImmutableDueToPolicy", "BlobImmutableDueToLegalHold", "PublicAccessNotPermitted", "AccountIsDisabled",
		"NoAuthenticationInformation", "InvalidAuthenticationInfo", "AuthenticationFailed", "UnauthorizedBlobOverwrite":
		return wire.Refused(blob.ErrPermission)
	case "ServerBusy":
		return wire.Refused(blob.ErrThrottled) // "unable to receive requests"
	case "AccountBeingCreated":
		return wire.Refused(blob.ErrUnavailable)
	case "InternalError", "OperationTimedOut":
		return wire.Failed()
	case "RequestBodyTooLarge", "BlockListTooLong":
		return wire.Refused(blob.ErrTooLarge)
	case "InvalidResourceName":
		return wire.Refused(blob.ErrInvalidKey)
	case "Md5Mismatch", "Crc64Mismatch":
		return wire.Refused(blob.ErrCorrupt)
	}
	switch {
	case status == http.StatusConflict && code != "":
		return wire.Refused(blob.ErrUnsupported) // nothing in flight, but something that lasts
	case status == http.StatusNotFound && code == "":
		// The service says what it does not find. This is a proxy's, or a wrong endpoint: no proof that the key is absent.
		return wire.Refused(blob.ErrUnavailable)
	case status == http.StatusRequestEntityTooLarge:
		return wire.Refused(blob.ErrTooLarge)
	}
	return wire.OfStatus(status)
}

// retryAfter reads how long the service asks to wait: in milliseconds, in seconds, or until a date (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	for _, name := range []string{"retry-after-ms", "x-ms-retry-after-ms"} {
		if ms, err := strconv.ParseUint(h.Get(name), 10, 31); err == nil {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return wire.RetryAfter(h, now)
}

// tolerated is by how much the date of a signature may be wrong ("Authorize with Shared Key").
const tolerated = 15 * time.Minute

// clockSkew returns by how much the local clock is before the service's (negative: behind), 0 if that cannot be why a signature was refused.
func clockSkew(st *sent) time.Duration {
	date, err := http.ParseTime(st.header.Get("Date"))
	if err != nil || st.begun.IsZero() {
		return 0
	}
	if skew := st.begun.Sub(date); skew.Abs() > tolerated-time.Minute {
		return skew.Round(time.Second)
	}
	return 0
}

// said is an error with a text of ours: the SDK's own shows the whole reply, in many lines.
type said struct {
	err  error
	text string
}

func (s said) Error() string { return s.text }
func (s said) Unwrap() error { return s.err }

// message returns the first line of what a reply says in words, which has no secrets: details of a refused signature stand elsewhere.
func message(reply *azcore.ResponseError) string {
	text := "the service refused the request"
	if reply.RawResponse == nil || reply.RawResponse.Body == nil {
		return text
	}
	body, err := runtime.Payload(reply.RawResponse) // read before, and kept
	if err != nil {
		return text
	}
	var doc struct{ Message string }
	if xml.Unmarshal(body, &doc) == nil && doc.Message != "" {
		text, _, _ = strings.Cut(strings.TrimSpace(doc.Message), "\n")
	}
	return text
}

// scrub hides secrets in the text of an error, which a transport may have taken from a URL. What wraps none of them stays in its chain.
func scrub(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := conceal(text, secrets); clean != text {
		for err != nil && conceal(err.Error(), secrets) != err.Error() {
			err = errors.Unwrap(err)
		}
		return said{err: err, text: clean}
	}
	return err
}

func conceal(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "redacted")
	}
	return text
}
