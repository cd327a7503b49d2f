package s3blob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// clockSkew is by how much the date of a signature may differ from the local clock before it counts as corrected.
const clockSkew = time.Minute

// skew remembers when the service's clock was last believed instead of the local one, or when credentials were last taken to have expired.
type skew struct {
	mu sync.Mutex
	at time.Time
}

// correct reports whether a request that was signed at this time of the local clock, and refused for it, may be tried again with the
// service's, or with other credentials: not if that has been tried just before and did not help.
func (s *skew) correct(signed time.Time) bool {
	const again = 5 * time.Minute // the local clock may go wrong once more
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) > again {
		s.at = time.Now()
		return true
	}
	return !signed.After(s.at) // sent together with the one that found out
}

// wrongDate reports whether a request signed at this date may be accepted with another: it was signed by the local clock, or the
// service's date in the reply is not that of the signature.
func wrongDate(err error, signedAt time.Time) bool {
	return time.Until(signedAt).Abs() < clockSkew || otherDate(err, signedAt)
}

// otherDate reports whether the service's date in the reply is not that of the signature.
func otherDate(err error, signedAt time.Time) bool {
	var reply *awshttp.ResponseError
	if !errors.As(err, &reply) || reply.Response == nil {
		return false
	}
	date, err := http.ParseTime(reply.Response.Header.Get("Date"))
	return err == nil && signedAt.Sub(date).Abs() > clockSkew
}

// fault is like the function of that name, and gives one more chance to a request that was refused for its date or for credentials
// which another attempt will not have.
func (r *requests) fault(ctx context.Context, err error, st *sent) error {
	e := fault(ctx, err, st)
	switch e.Code {
	case "ExpiredToken", "TokenRefreshRequired":
		if r.creds.expired(st.identity) {
			e.Kind, e.Err = blob.ErrUnavailable, fmt.Errorf("credentials have expired and are renewed: %w", err)
		}
	case "RequestTimeTooSkewed":
		// The clock of signatures has taken the service's date from the reply.
		if wrongDate(err, st.signedAt) && r.skew.correct(st.begun) {
			e.Kind, e.Err = blob.ErrUnavailable, fmt.Errorf("the local clock is wrong, the service's is used: %w", err)
		} else {
			e.Err = fmt.Errorf("the service refuses the date, also when it is corrected by its own clock: %w", err)
		}
	// A HEAD is refused without a document, and the SDK makes a code of the status: 400 for a token that has expired, among others, and
	// 403 for a wrong date ("Error responses", Amazon S3 API Reference).
	case "BadRequest":
		if st.temporary && r.guess.correct(st.begun) && r.creds.expired(st.identity) {
			e.Kind, e.Err = blob.ErrUnavailable, fmt.Errorf("credentials may have expired and are renewed: %w", err)
		}
	case "Forbidden":
		if otherDate(err, st.signedAt) && r.skew.correct(st.begun) {
			e.Kind, e.Err = blob.ErrUnavailable, fmt.Errorf("the local clock may be wrong, the service's is used: %w", err)
		}
	}
	return e
}

// fault turns an error of the SDK into the engine's. It never reads an error's text. st says what had been sent.
func fault(ctx context.Context, err error, st *sent) *blob.Error {
	e := &blob.Error{Err: err}
	var reply *awshttp.ResponseError
	if errors.As(err, &reply) && reply.Response != nil && reply.HTTPStatusCode() != 0 {
		e.Status, e.RequestID = reply.HTTPStatusCode(), reply.ServiceRequestID()
		e.RetryAfter = wire.RetryAfter(reply.Response.Header, time.Now())
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Code = api.ErrorCode()
	}
	if st.SourceFailed(e) {
		return e
	}
	if e.Status == 0 || e.Code == "" && e.Status < 300 { // no reply, or one that could not be read
		return st.Lost(ctx, e, blob.ErrPermission) // nothing sent: no credentials, or no signature could be made
	}
	v := classify(e.Status, e.Code)
	e.Kind, e.Outcome = v.Kind, v.Outcome
	if e.Code == "ServiceUnavailable" && (e.RequestID == "" || reply.Response.ContentLength == 0) {
		// The SDK makes a code of the status if there is no document. Proxies answer 503 also when they have lost the service
		// half-way.
		e.Outcome = blob.Unknown
	}
	if e.Kind == blob.ErrInvalidOption && reply != nil && reply.Response != nil {
		if region := reply.Response.Header.Get("X-Amz-Bucket-Region"); region != "" {
			e.Err = fmt.Errorf("the bucket is in region %s: %w", region, err)
		}
	}
	return e
}

// classify maps a reply to its verdict: the service refused, or something failed on the way and nobody knows. Codes are from "Error responses", Amazon S3 API Reference.
func classify(status int, code string) wire.Verdict {
	switch code {
	case "NoSuchBucket":
		return wire.Refused(blob.ErrNoContainer)
	case "NotImplemented", "MethodNotAllowed":
		return wire.Refused(blob.ErrUnsupported)
	case "InvalidArgument", "InvalidRequest", "MalformedXML", "InvalidObjectState":
		return wire.Refused(blob.ErrInvalidOption)
	case "NoSuchKey", "NotFound", "NoSuchVersion", "NoSuchUpload":
		return wire.Refused(blob.ErrNotFound)
	case "PreconditionFailed":
		return wire.Refused(blob.ErrPrecondition)
	case "ConditionalRequestConflict", "OperationAborted":
		return wire.Refused(blob.ErrConflict)
	case "SlowDown", "ServiceUnavailable", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests":
		return wire.Refused(blob.ErrThrottled)
	case "RequestTimeout", "IncompleteBody":
		return wire.Refused(blob.ErrUnavailable) // not all of the body arrived
	case "InternalError":
		return wire.Failed()
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "AccessDenied", "AllAccessDisabled", "AccountProblem",
		"InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestTimeTooSkewed":
		return wire.Refused(blob.ErrPermission)
	case "EntityTooLarge":
		return wire.Refused(blob.ErrTooLarge)
	case "KeyTooLongError":
		return wire.Refused(blob.ErrInvalidKey)
	case "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch":
		return wire.Refused(blob.ErrCorrupt)
	}
	if status == http.StatusConflict && code != "" && code != "Conflict" {
		// Not an operation in flight but something that lasts, such as a file where a folder should be on a server
		// that keeps objects in a file system.
		return wire.Refused(blob.ErrUnsupported)
	}
	return wire.OfStatus(status)
}
