package s3blob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/wholeblob/wholeblob/blob"
)

// fault turns an error of the SDK into the engine's. It never reads an error's text. st says what had been sent.
func fault(ctx context.Context, err error, st *sent) error {
	e := &blob.Error{Err: err}
	var reply *awshttp.ResponseError
	if errors.As(err, &reply) && reply.Response != nil && reply.HTTPStatusCode() != 0 {
		e.Status, e.RequestID = reply.HTTPStatusCode(), reply.ServiceRequestID()
		e.RetryAfter = retryAfter(reply.Response.Header, time.Now())
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Code = api.ErrorCode()
	}
	if st.body != nil {
		if src := st.body.sourceError(); src != nil {
			e.Outcome, e.Err = blob.NotApplied, src
			if errors.Is(src, blob.ErrSourceLength) {
				e.Kind = blob.ErrSourceLength
			}
			return e
		}
	}
	if e.Status == 0 || e.Code == "" && e.Status < 300 { // no reply, or one that could not be read
		return lost(ctx, e, st)
	}
	e.Kind, e.Outcome = classify(e.Status, e.Code)
	if e.Kind == blob.ErrInvalidOption && reply != nil && reply.Response != nil {
		if region := reply.Response.Header.Get("X-Amz-Bucket-Region"); region != "" {
			e.Err = fmt.Errorf("the bucket is in region %s: %w", region, err)
		}
	}
	return e
}

// lost classifies an attempt without a reply that makes sense.
func lost(ctx context.Context, e *blob.Error, st *sent) error {
	if st.certainlyNot() {
		e.Outcome = blob.NotApplied
	}
	var signing *smithy.OperationError
	switch {
	case ctx.Err() != nil:
		// The cause of the end may be another request's error, which must not speak for this one.
		e.Err = ctx.Err()
	case !st.connected.Load() && errors.As(e.Err, &signing) && !dialed(e.Err):
		e.Kind = blob.ErrPermission // nothing was sent: no credentials, or no signature could be made
	default:
		e.Kind = blob.ErrUnavailable
	}
	return e
}

// dialed reports whether err comes from sending a request, rather than from preparing it.
func dialed(err error) bool {
	var send interface{ ConnectionError() bool } // smithyhttp.RequestSendError
	return errors.As(err, &send)
}

// classify maps a reply to a kind and to what it says about a mutation: the service refused, or something
// failed on the way and nobody knows. Codes are from "Error responses", Amazon S3 API Reference.
func classify(status int, code string) (error, blob.Outcome) {
	switch code {
	case "NoSuchBucket":
		return blob.ErrNoContainer, blob.NotApplied
	case "NoSuchKey", "NotFound", "NoSuchVersion", "NoSuchUpload":
		return blob.ErrNotFound, blob.NotApplied
	case "PreconditionFailed":
		return blob.ErrPrecondition, blob.NotApplied
	case "ConditionalRequestConflict", "OperationAborted":
		return blob.ErrConflict, blob.NotApplied
	case "SlowDown", "ServiceUnavailable", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests":
		return blob.ErrThrottled, blob.NotApplied
	case "RequestTimeout", "IncompleteBody":
		return blob.ErrUnavailable, blob.NotApplied // not all of the body arrived
	case "InternalError":
		return blob.ErrUnavailable, blob.Unknown
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "AccessDenied", "RequestTimeTooSkewed":
		return blob.ErrPermission, blob.NotApplied
	case "EntityTooLarge":
		return blob.ErrTooLarge, blob.NotApplied
	case "KeyTooLongError":
		return blob.ErrInvalidKey, blob.NotApplied
	case "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch":
		return blob.ErrCorrupt, blob.NotApplied
	}
	if status == http.StatusConflict && code != "" && code != "Conflict" {
		// Not an operation in flight but something that lasts, such as a file where a folder should be on a server
		// that keeps objects in a file system.
		return blob.ErrUnsupported, blob.NotApplied
	}
	return classifyStatus(status)
}

// classifyStatus is for replies without a code, as to HEAD, and with one that says no more than the status.
func classifyStatus(status int) (error, blob.Outcome) {
	switch {
	case status < 300: // an error document with the status of a success
		return blob.ErrUnavailable, blob.Unknown
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return blob.ErrPermission, blob.NotApplied
	case status == http.StatusNotFound:
		return blob.ErrNotFound, blob.NotApplied
	case status == http.StatusRequestTimeout:
		return blob.ErrUnavailable, blob.Unknown
	case status == http.StatusConflict:
		return blob.ErrConflict, blob.NotApplied
	case status == http.StatusPreconditionFailed:
		return blob.ErrPrecondition, blob.NotApplied
	case status == http.StatusRequestedRangeNotSatisfiable:
		return blob.ErrInvalidRange, blob.NotApplied
	case status == http.StatusTooManyRequests:
		return blob.ErrThrottled, blob.NotApplied
	case status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return blob.ErrUnsupported, blob.NotApplied
	case status < 500: // wrong region (301, 400), malformed requests
		return blob.ErrInvalidOption, blob.NotApplied
	default:
		return blob.ErrUnavailable, blob.Unknown
	}
}

// retryAfter reads the header of that name, in seconds or as a date (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}
