package fakes3

import (
	"fmt"
	"net/http"
)

// apiError is a refusal, answered as the XML document of the S3 API reference
// ("Error responses").
type apiError struct {
	status int
	code   string
	msg    string
	header map[string]string
	extra  [][2]string // further elements, such as Region or ActualObjectSize
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s: %s", e.status, e.code, e.msg) }

func fail(status int, code, format string, args ...any) *apiError {
	return &apiError{status: status, code: code, msg: fmt.Sprintf(format, args...)}
}

func (e *apiError) with(name, value string) *apiError {
	if e.header == nil {
		e.header = map[string]string{}
	}
	e.header[name] = value
	return e
}

func (e *apiError) elem(name, value string) *apiError {
	e.extra = append(e.extra, [2]string{name, value})
	return e
}

func errNoSuchKey(key string) *apiError {
	return fail(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.").elem("Key", key)
}

func errNoSuchBucket(name string) *apiError {
	return fail(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist").elem("BucketName", name)
}

func errNoSuchUpload(id string) *apiError {
	return fail(http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.").elem("UploadId", id)
}

func errPrecondition(condition string) *apiError {
	return fail(http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold").elem("Condition", condition)
}

func errArgument(format string, args ...any) *apiError {
	return fail(http.StatusBadRequest, "InvalidArgument", format, args...)
}

func errRequest(format string, args ...any) *apiError {
	return fail(http.StatusBadRequest, "InvalidRequest", format, args...)
}

func errMalformedXML() *apiError {
	return fail(http.StatusBadRequest, "MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema")
}

func errNotImplemented(what string) *apiError {
	return fail(http.StatusNotImplemented, "NotImplemented", "A header or query you provided implies functionality that is not implemented: %s", what)
}

func errDenied() *apiError {
	return fail(http.StatusForbidden, "AccessDenied", "Access Denied")
}

// statusCodes are the codes a scripted reply gets when it names none.
var statusCodes = map[int]string{
	http.StatusMovedPermanently:    "PermanentRedirect",
	http.StatusTemporaryRedirect:   "TemporaryRedirect",
	http.StatusBadRequest:          "InvalidRequest",
	http.StatusForbidden:           "AccessDenied",
	http.StatusNotFound:            "NoSuchKey",
	http.StatusMethodNotAllowed:    "MethodNotAllowed",
	http.StatusRequestTimeout:      "RequestTimeout",
	http.StatusConflict:            "ConditionalRequestConflict",
	http.StatusLengthRequired:      "MissingContentLength",
	http.StatusPreconditionFailed:  "PreconditionFailed",
	http.StatusTooManyRequests:     "TooManyRequests",
	http.StatusInternalServerError: "InternalError",
	http.StatusNotImplemented:      "NotImplemented",
	http.StatusServiceUnavailable:  "SlowDown",
}
