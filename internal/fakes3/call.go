package fakes3

import (
	"net/http"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// call is one request being served.
type call struct {
	*fakehttp.Call
	s     *Server
	knobs *Knobs
	bad   *apiError // why the address cannot be understood
	b     *bucket   // set for every operation on a bucket that exists
}

type response = fakehttp.Answer

func newResponse(status int) *response { return fakehttp.NewAnswer(status) }

func docResponse(d *xmlDoc) *response {
	return fakehttp.Document(http.StatusOK, "application/xml", d.bytes())
}

func (s *Server) begin(fc *fakehttp.Call) fakehttp.Exchange {
	c := &call{Call: fc, s: s, knobs: s.knobs.Load()}
	c.Traits = fakehttp.Traits{Shape: c.knobs.Shape, Latency: c.knobs.Latency, Bandwidth: c.knobs.Bandwidth}
	c.bad = c.parse()
	return c
}

// Authenticate implements fakehttp.Exchange.
func (c *call) Authenticate() *response {
	if err := c.s.authenticate(c.HTTP); err != nil {
		return c.refusal(err)
	}
	if c.bad != nil {
		return c.refusal(c.bad)
	}
	return nil
}

// Handle implements fakehttp.Exchange.
func (c *call) Handle() *response {
	resp, err := c.handle()
	if err != nil {
		return c.refusal(err)
	}
	return resp
}

// handle runs the operation, once its bucket is known to exist.
func (c *call) handle() (*response, *apiError) {
	h := handler(c.Op)
	if h == nil {
		return nil, errNotImplemented(c.Op + " " + c.Method + " ?" + c.RawQuery)
	}
	if c.Op != "ListBuckets" && c.Op != "CreateBucket" {
		if c.b = c.s.bucket(c.Bucket); c.b == nil {
			return nil, errNoSuchBucket(c.Bucket)
		}
	}
	return h(c)
}

func (c *call) refusal(e *apiError) *response {
	resp := newResponse(e.status)
	if e.status != http.StatusNotModified {
		resp = fakehttp.Document(e.status, "application/xml", errorDoc(e, c.RawPath, c.ID))
	}
	for name, v := range e.header {
		resp.Set(name, v)
	}
	return resp
}

// Error implements fakehttp.Exchange.
func (c *call) Error(status int, code, message string) *response {
	if code == "" {
		if code = statusCodes[status]; code == "" {
			code = "Status" + itoa(status)
		}
	}
	if message == "" {
		message = "scripted answer"
	}
	return fakehttp.Document(status, "application/xml", errorDoc(&apiError{code: code, msg: message}, "", c.ID))
}

// Finish implements fakehttp.Exchange.
func (c *call) Finish(resp *response) {
	resp.Header.Set("x-amz-request-id", c.ID)
	resp.Header.Set("x-amz-id-2", "fakes3-"+c.ID)
	resp.Header.Set("Server", "AmazonS3")
	resp.Header.Set("Date", c.s.Now().UTC().Format(http.TimeFormat))
}
