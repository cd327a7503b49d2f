package fakeaz

import (
	"errors"
	"net/http"
	"strings"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// exchange is one request on the wire.
type exchange struct {
	*fakehttp.Call
	call *call
	id   string
	bad  *apiError // why the address could not be understood
}

func (s *Server) begin(hc *fakehttp.Call) fakehttp.Exchange {
	x := &exchange{Call: hc, id: s.requestID()}
	hc.Traits = s.Knobs().Traits
	req, bad := s.take(hc.Method, hc.Host, hc.HTTP.RequestURI, hc.Header, hc.ContentLength)
	req.tls = hc.HTTP.TLS != nil
	x.bad = bad
	x.call = &call{request: req, s: s, shape: &hc.Shape, body: x.readBody}
	hc.Op, hc.Bucket, hc.Key = req.op, req.container, req.blob
	if v := hc.Header.Get("x-ms-range"); v != "" {
		hc.Range = v
	}
	hc.Content = req.op == "PutBlob" || req.op == "PutBlock"
	hc.Notes = notes(req)
	return x
}

// notes are further words for the log; block ids, versions and ETags are left out as they differ between runs.
func notes(r *request) []string {
	var out []string
	for _, name := range []string{"prefix", "delimiter", "startFrom", "maxresults", "include", "blocklisttype"} {
		if v := r.query.Get(name); v != "" {
			out = append(out, name+"="+fakehttp.QuoteKey(v))
		}
	}
	for _, name := range []string{"marker", "versionid", "snapshot"} {
		if r.query.Get(name) != "" {
			out = append(out, name)
		}
	}
	if v := r.header.Get("x-ms-delete-snapshots"); v != "" {
		out = append(out, "snapshots="+v)
	}
	return out
}

func (x *exchange) Authenticate() *fakehttp.Answer {
	err := x.bad
	if err == nil {
		x.call.who, err = x.call.s.authenticate(x.call.request)
	}
	if err == nil {
		err = x.call.allowed()
	}
	if err == nil {
		return nil
	}
	return x.refusal(err)
}

func (x *exchange) Handle() *fakehttp.Answer {
	resp, err := x.call.handle()
	x.Entry.Keys = x.call.keys
	if err != nil {
		return x.refusal(err)
	}
	return resp
}

func (x *exchange) Error(status int, code, message string) *fakehttp.Answer {
	if code == "" {
		code = codeOf(status)
	}
	if message == "" {
		message = "Scripted answer."
	}
	return x.refusal(fail(status, code, "%s", message))
}

// Finish adds the headers of "Versioning for the Azure Storage services" and "Status and error codes".
func (x *exchange) Finish(a *fakehttp.Answer) {
	a.Set("Server", "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0")
	a.Set("Date", httpDate(x.call.s.now()))
	a.Set("x-ms-request-id", x.id)
	a.Set("x-ms-version", x.Header.Get("x-ms-version"))
	a.Set("x-ms-client-request-id", x.Header.Get("x-ms-client-request-id"))
}

func (x *exchange) refusal(e *apiError) *fakehttp.Answer { return refusal(e, x.id, x.Method, x.call.s) }

// refusal is the answer that says e. HEAD and 304 have no document: there the header alone tells the code.
func refusal(e *apiError, id, method string, s *Server) *response {
	resp := newResponse(e.status)
	for name, v := range e.header {
		resp.Set(name, v)
	}
	resp.Set("x-ms-error-code", e.code)
	if e.status == http.StatusNotModified || method == http.MethodHead {
		return resp
	}
	resp.Set("Content-Type", "application/xml")
	resp.Body = rope{errorDoc(e, id, s.now())}
	return resp
}

// readBody reads and verifies the whole body. Its length must be announced.
func (x *exchange) readBody(limit int64) (*content, *apiError) {
	if x.ContentLength < 0 {
		return nil, fail(http.StatusLengthRequired, "MissingContentLengthHeader", "The Content-Length header was not specified.")
	}
	data, err := x.ReadBody(limit)
	if errors.Is(err, fakehttp.ErrTooLarge) {
		return nil, fail(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")
	}
	if err != nil {
		return nil, errInput("The body ended early.")
	}
	return check(data, x.Header)
}

// allowed is whether the sender may do what the request asks for.
func (c *call) allowed() *apiError {
	op := c.op
	if op == "DeleteBlob" && c.query.Get("versionid") != "" {
		op = "DeleteBlobVersion"
	}
	return c.who.may(op, c.overwrites())
}

// overwrites is whether a write must be allowed to replace a blob: with the permission to create alone it must not.
func (c *call) overwrites() bool {
	if !strings.HasPrefix(c.op, "Put") && !strings.HasPrefix(c.op, "Copy") {
		return false
	}
	cont := c.s.container(c.container)
	if cont == nil {
		return false
	}
	cont.mu.Lock()
	defer cont.mu.Unlock()
	e := cont.entry(c.s, c.blob)
	return e != nil && e.current != nil
}
