package fakeaz

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
)

// The limits of "Blob Batch".
const (
	maxBatch     = 256
	maxBatchBody = 4 << 20
)

// tooMany is the code for a batch of more requests, as Azurite has it; no document names it.
const tooMany = "ExceedsMaxBatchRequestCount"

// batch is Blob Batch: up to 256 requests of one kind, each authorized by itself, none of which sees another. Here the
// only kind is Delete Blob.
func (c *call) batch() (*response, *apiError) {
	if c.s.Knobs().NoBatch {
		return nil, errNotImplemented("Blob Batch")
	}
	media, params, merr := mime.ParseMediaType(c.header.Get("Content-Type"))
	if merr != nil || media != "multipart/mixed" || params["boundary"] == "" {
		return nil, errHeader("Content-Type", c.header.Get("Content-Type"))
	}
	b, err := c.body(maxBatchBody)
	if err != nil {
		return nil, err
	}
	boundary := "batchresponse_" + c.s.requestID()
	var out bytes.Buffer
	parts, err := c.parts(b.data, params["boundary"])
	switch {
	case err != nil && err.code != tooMany:
		return nil, err
	case err != nil: // one part that has no id answers for the whole
		fmt.Fprintf(&out, "--%s\r\nContent-Type: application/http\r\n\r\n", boundary)
		c.answer(&out, refusal(err, c.s.requestID(), c.method, c.s))
	}
	c.keys = len(parts)
	for _, p := range parts {
		fmt.Fprintf(&out, "--%s\r\nContent-Type: application/http\r\n", boundary)
		if p.id != "" {
			fmt.Fprintf(&out, "Content-ID: %s\r\n", p.id)
		}
		out.WriteString("\r\n")
		p.write(&out)
	}
	fmt.Fprintf(&out, "--%s--\r\n", boundary)
	resp := newResponse(http.StatusAccepted)
	resp.Set("Content-Type", "multipart/mixed; boundary="+boundary)
	resp.Body = rope{out.Bytes()}
	return resp, nil
}

// part is one request of a batch.
type part struct {
	*call
	id  string // Content-ID
	bad *apiError
}

// parts reads all requests before any is served: what is wrong with the batch as a whole leaves nothing done.
func (c *call) parts(data []byte, boundary string) ([]*part, *apiError) {
	var out []*part
	mr := multipart.NewReader(bytes.NewReader(data), boundary)
	for {
		mp, err := mr.NextRawPart()
		if errors.Is(err, io.EOF) && len(out) > 0 {
			return out, nil
		}
		if err != nil {
			return nil, errInput("The batch is not multipart/mixed: %v", err)
		}
		if len(out) == maxBatch {
			return nil, fail(http.StatusBadRequest, tooMany, "The batch operation exceeds maximum number of allowed subrequests.")
		}
		text, err := io.ReadAll(mp)
		if err != nil || mp.Header.Get("Content-Type") != "application/http" {
			return nil, errInput("A part of the batch is not application/http.")
		}
		p, perr := c.part(text)
		if perr != nil {
			return nil, perr
		}
		p.id = mp.Header.Get("Content-ID")
		out = append(out, p)
	}
}

func (c *call) part(text []byte) (*part, *apiError) {
	// A part may end with its last header; ReadRequest wants the empty line.
	r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(text), strings.NewReader("\r\n\r\n"))))
	if err != nil {
		return nil, errInput("A request of the batch cannot be parsed: %v", err)
	}
	if !strings.HasPrefix(r.RequestURI, "/") {
		return nil, errInput("The URL of a request of a batch has a path and a query only.")
	}
	if r.Header.Get("x-ms-version") != "" {
		return nil, errInput("x-ms-version is of the batch, not of its requests.")
	}
	req, bad := c.s.take(r.Method, c.host, r.RequestURI, r.Header, r.ContentLength)
	req.part, req.tls = true, c.tls
	if req.op != "DeleteBlob" {
		return nil, errInput("A batch deletes blobs, or sets their tiers, which this server does not.")
	}
	if c.container != "" && req.container != c.container {
		return nil, errInput("A request of the batch is about another container.")
	}
	return &part{call: &call{request: req, s: c.s, shape: c.shape}, bad: bad}, nil
}

// serve authorizes and handles one request.
func (p *part) serve() (*response, *apiError) {
	if p.bad != nil {
		return nil, p.bad
	}
	var err *apiError
	if p.who, err = p.s.authenticate(p.request); err == nil {
		err = p.allowed()
	}
	if err != nil {
		return nil, err
	}
	if p.shape.DeleteError != nil {
		if code := p.shape.DeleteError(p.blob); code != "" {
			return nil, fail(statusOf(code), code, "Scripted answer.")
		}
	}
	return p.handle()
}

// statusOf is the status that goes with a code, for scripts.
func statusOf(code string) int {
	for status, c := range statusCodes {
		if c == code {
			return status
		}
	}
	return http.StatusInternalServerError
}

func (p *part) write(out *bytes.Buffer) {
	id := p.s.requestID()
	resp, err := p.serve()
	if err != nil {
		resp = refusal(err, id, p.method, p.s)
	}
	resp.Set("x-ms-request-id", id)
	p.answer(out, resp)
}

// answer writes one answer as a part has it.
func (c *call) answer(out *bytes.Buffer, resp *response) {
	resp.Set("Server", "Windows-Azure-Blob/1.0")
	if n := resp.Body.Size(); n > 0 {
		resp.Set("Content-Length", fmt.Sprint(n))
	}
	fmt.Fprintf(out, "HTTP/1.1 %d %s\r\n", resp.Status, http.StatusText(resp.Status))
	_ = resp.Header.Write(out) // a bytes.Buffer does not fail
	out.WriteString("\r\n")
	for _, b := range resp.Body {
		out.Write(b)
	}
	out.WriteString("\r\n")
}
