package fakegcs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// apiError is a refusal. The JSON API answers it with the document of "HTTP
// status and error codes for JSON", the XML API with that of "HTTP status and
// error codes for XML".
type apiError struct {
	status   int
	reason   string // errors[0].reason
	code     string // <Code>
	msg      string
	location string // the header or parameter at fault, if one is named
	header   map[string]string
	plain    bool // the message alone, as text
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s: %s", e.status, e.reason, e.msg) }

func fail(status int, reason, code, format string, args ...any) *apiError {
	return &apiError{status: status, reason: reason, code: code, msg: fmt.Sprintf(format, args...)}
}

func (e *apiError) with(name, value string) *apiError {
	if e.header == nil {
		e.header = map[string]string{}
	}
	e.header[name] = value
	return e
}

func (e *apiError) at(location string) *apiError {
	e.location = location
	return e
}

func errNoBucket() *apiError {
	return fail(http.StatusNotFound, "notFound", "NoSuchBucket", "The specified bucket does not exist.")
}

func errNoObject(bucket, key string) *apiError {
	return fail(http.StatusNotFound, "notFound", "NoSuchKey", "No such object: %s/%s", bucket, key)
}

func errCondition(name string) *apiError {
	return fail(http.StatusPreconditionFailed, "conditionNotMet", "PreconditionFailed",
		"At least one of the pre-conditions you specified did not hold.").at(name)
}

// errNotModified is the answer to a failed ...NotMatch condition ("Request
// preconditions"), without a body.
func errNotModified() *apiError {
	return fail(http.StatusNotModified, "notModified", "NotModified", "Not Modified")
}

func errInvalid(format string, args ...any) *apiError {
	return fail(http.StatusBadRequest, "invalid", "InvalidArgument", format, args...)
}

func errRequired(name string) *apiError {
	return fail(http.StatusBadRequest, "required", "InvalidArgument", "Required parameter: %s", name).at(name)
}

func errNoMethod() *apiError {
	return fail(http.StatusNotFound, "notFound", "NotImplemented", "Not Found")
}

// reasons are what a scripted answer says when it names none.
var reasons = map[int]struct{ reason, code string }{
	http.StatusBadRequest:                   {"invalid", "InvalidArgument"},
	http.StatusUnauthorized:                 {"authError", "AuthenticationRequired"},
	http.StatusForbidden:                    {"forbidden", "AccessDenied"},
	http.StatusNotFound:                     {"notFound", "NoSuchKey"},
	http.StatusRequestTimeout:               {"requestTimeout", "RequestTimeout"},
	http.StatusConflict:                     {"conflict", "OperationAborted"},
	http.StatusGone:                         {"gone", "NoSuchUpload"},
	http.StatusPreconditionFailed:           {"conditionNotMet", "PreconditionFailed"},
	http.StatusRequestedRangeNotSatisfiable: {"requestedRangeNotSatisfiable", "InvalidRange"},
	http.StatusTooManyRequests:              {"rateLimitExceeded", "SlowDown"},
	http.StatusInternalServerError:          {"backendError", "InternalError"},
	http.StatusBadGateway:                   {"badGateway", "InternalError"},
	http.StatusServiceUnavailable:           {"backendError", "ServiceUnavailable"},
	http.StatusGatewayTimeout:               {"gatewayTimeout", "InternalError"},
}

// json is the document of the JSON API.
func (e *apiError) json() []byte {
	type detail struct {
		Message      string `json:"message"`
		Domain       string `json:"domain"`
		Reason       string `json:"reason"`
		LocationType string `json:"locationType,omitempty"`
		Location     string `json:"location,omitempty"`
	}
	var doc struct {
		Error struct {
			Code    int      `json:"code"`
			Message string   `json:"message"`
			Errors  []detail `json:"errors"`
		} `json:"error"`
	}
	d := detail{Message: e.msg, Domain: "global", Reason: e.reason, Location: e.location}
	if e.reason == "rateLimitExceeded" {
		d.Domain = "usageLimits"
	}
	switch {
	case e.location == "":
	case strings.HasPrefix(e.location, "If-"), e.location == "Authorization":
		d.LocationType = "header"
	default:
		d.LocationType = "parameter"
	}
	doc.Error.Code, doc.Error.Message, doc.Error.Errors = e.status, e.msg, []detail{d}
	return mustJSON(doc)
}

// xml is the document of the XML API. For an object or a bucket that is
// missing the message is fixed and the rest is in Details.
func (e *apiError) xml() []byte {
	msg, details := e.msg, ""
	if e.code == "NoSuchKey" {
		msg, details = "The specified key does not exist.", e.msg
	}
	var b strings.Builder
	b.WriteString("<?xml version='1.0' encoding='UTF-8'?><Error><Code>" + escapeXML(e.code) + "</Code><Message>" + escapeXML(msg) + "</Message>")
	if details != "" {
		b.WriteString("<Details>" + escapeXML(details) + "</Details>")
	}
	b.WriteString("</Error>")
	return []byte(b.String())
}

var xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func escapeXML(s string) string { return xmlEscapes.Replace(s) }

// mustJSON encodes what this package has made: maps of strings, numbers and
// their like, which always encode.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("fakegcs: " + err.Error())
	}
	return b
}
