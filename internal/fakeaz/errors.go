package fakeaz

import (
	"fmt"
	"net/http"
)

// apiError is a refusal, answered as the XML document of "Status and error codes" (Azure Storage REST API).
type apiError struct {
	status int
	code   string
	msg    string
	header map[string]string
	extra  [][2]string // further elements, such as AuthenticationErrorDetail
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

// The codes are those of "Common REST API error codes" and "Blob Storage error codes".

func errBlobNotFound() *apiError {
	return fail(http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
}

func errContainerNotFound() *apiError {
	return fail(http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
}

func errBlobExists() *apiError {
	return fail(http.StatusConflict, "BlobAlreadyExists", "The specified blob already exists.")
}

func errCondition() *apiError {
	return fail(http.StatusPreconditionFailed, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
}

func errNotModified() *apiError {
	return fail(http.StatusNotModified, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
}

func errHeader(name, value string) *apiError {
	return fail(http.StatusBadRequest, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.").
		elem("HeaderName", name).elem("HeaderValue", value)
}

func errMissingHeader(name string) *apiError {
	return fail(http.StatusBadRequest, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified.").
		elem("HeaderName", name)
}

func errUnsupportedHeader(name string) *apiError {
	return fail(http.StatusBadRequest, "UnsupportedHeader", "One of the HTTP headers specified in the request is not supported.").
		elem("HeaderName", name)
}

func errQuery(name, value, reason string) *apiError {
	return fail(http.StatusBadRequest, "InvalidQueryParameterValue", "Value for one of the query parameters specified in the request URI is invalid.").
		elem("QueryParameterName", name).elem("QueryParameterValue", value).elem("Reason", reason)
}

func errQueryRange(name, value string) *apiError {
	return fail(http.StatusBadRequest, "OutOfRangeQueryParameterValue", "One of the query parameters specified in the request URI is outside the permissible range.").
		elem("QueryParameterName", name).elem("QueryParameterValue", value)
}

func errInput(format string, args ...any) *apiError {
	return fail(http.StatusBadRequest, "InvalidInput", "One of the request inputs is not valid. "+format, args...)
}

func errOutOfRange() *apiError {
	return fail(http.StatusBadRequest, "OutOfRangeInput", "One of the request inputs is out of range.")
}

func errXML() *apiError {
	return fail(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid.")
}

func errNotImplemented(what string) *apiError {
	return fail(http.StatusNotImplemented, "NotImplemented", "The requested operation is not implemented on the specified resource: %s", what)
}

// statusCodes are the codes a scripted reply gets when it names none.
var statusCodes = map[int]string{
	http.StatusNotModified:                  "ConditionNotMet",
	http.StatusBadRequest:                   "InvalidInput",
	http.StatusUnauthorized:                 "NoAuthenticationInformation",
	http.StatusForbidden:                    "AuthenticationFailed",
	http.StatusNotFound:                     "BlobNotFound",
	http.StatusMethodNotAllowed:             "UnsupportedHttpVerb",
	http.StatusRequestTimeout:               "RequestTimeout",
	http.StatusConflict:                     "BlobAlreadyExists",
	http.StatusLengthRequired:               "MissingContentLengthHeader",
	http.StatusPreconditionFailed:           "ConditionNotMet",
	http.StatusRequestEntityTooLarge:        "RequestBodyTooLarge",
	http.StatusRequestedRangeNotSatisfiable: "InvalidRange",
	http.StatusTooManyRequests:              "TooManyRequests",
	http.StatusInternalServerError:          "OperationTimedOut",
	http.StatusServiceUnavailable:           "ServerBusy",
}
