package fakegcs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// The limits of "Batch requests".
const (
	maxBatch     = 100
	maxBatchBody = 10 << 20
)

// batch runs the calls of a multipart/mixed body, each as if it had come
// alone. Uploads and downloads are refused within one.
func (c *call) batch() (*fakehttp.Answer, *apiError) {
	body, err := c.readBody(maxBatchBody)
	if err != nil {
		return nil, err
	}
	parts, err := c.batchParts(body)
	if err != nil {
		return nil, err
	}
	c.Entry.Keys = len(parts)
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, p := range parts {
		writePart(w, p.id, c.runPart(p))
	}
	_ = w.Close() // a bytes.Buffer does not fail
	return fakehttp.Document(http.StatusOK, "multipart/mixed; boundary="+w.Boundary(), out.Bytes()), nil
}

type batchPart struct {
	id  string // Content-ID, "" without one
	req *http.Request
}

func (c *call) batchParts(body []byte) ([]batchPart, *apiError) {
	bad := func(format string, args ...any) *apiError {
		return fail(http.StatusBadRequest, "badRequest", "InvalidArgument", "Failed to parse batch request: "+format, args...)
	}
	kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" || params["boundary"] == "" {
		return nil, bad("no multipart/mixed content")
	}
	var parts []batchPart
	for m := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		p, err := m.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && len(parts) > 0:
			return parts, nil
		case err != nil:
			return nil, bad("%v", err)
		case len(parts) == maxBatch:
			return nil, fail(http.StatusBadRequest, "badRequest", "InvalidArgument", "The batch request has more than %d calls.", maxBatch)
		case !strings.HasPrefix(p.Header.Get("Content-Type"), "application/http"):
			return nil, bad("a part is not application/http")
		}
		req, err := readInner(p)
		if err != nil {
			return nil, bad("%v", err)
		}
		// The headers of the outer request are those of every part that does
		// not name them itself.
		if req.Header.Get("Authorization") == "" && c.Header.Get("Authorization") != "" {
			req.Header.Set("Authorization", c.Header.Get("Authorization"))
		}
		parts = append(parts, batchPart{p.Header.Get("Content-ID"), req})
	}
}

// readInner reads the request within a part. Its line may come without the
// HTTP version, and its headers without the empty line that ends them.
func readInner(r io.Reader) (*http.Request, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	line, rest, _ := strings.Cut(strings.TrimLeft(string(text), "\r\n "), "\n")
	if line = strings.TrimRight(line, "\r "); !strings.Contains(line, " HTTP/1.") {
		line += " HTTP/1.1"
	}
	return http.ReadRequest(bufio.NewReader(strings.NewReader(line + "\r\n" + rest + "\r\n\r\n")))
}

// runPart answers one call of a batch.
func (c *call) runPart(p batchPart) *fakehttp.Answer {
	path, query, _ := strings.Cut(p.req.RequestURI, "?")
	req := &fakehttp.Request{
		Op: "Unknown", Method: p.req.Method, Host: c.Host, RawPath: path, RawQuery: query,
		Header: p.req.Header, Range: p.req.Header.Get("Range"), ContentLength: p.req.ContentLength,
	}
	req.Query, _ = url.ParseQuery(query) // it returns what it could parse beside the error
	x := &call{
		Call: &fakehttp.Call{Request: req, HTTP: p.req, ID: c.ID, Entry: &fakehttp.Entry{Request: *req}},
		s:    c.s, knobs: c.knobs, inner: true,
	}
	x.ETag, x.IgnoreIfMatch, x.IgnoreIfNoneMatch = c.ETag, c.IgnoreIfMatch, c.IgnoreIfNoneMatch
	x.bad = x.parse()
	if refusal := x.Authenticate(); refusal != nil {
		return refusal
	}
	switch {
	case x.xml, x.UploadID != "", x.Op == "objects.media", x.Op == "objects.insert", x.Op == "uploads.start", x.Op == "batch":
		return x.refuse(errInvalid("This call cannot be part of a batch"))
	}
	if c.DeleteError != nil {
		if status, err := strconv.Atoi(c.DeleteError(x.Key)); err == nil {
			return x.Error(status, "", "")
		}
	}
	return x.Handle()
}

// writePart answers a part: "response-" is put before the id that it came with.
func writePart(w *multipart.Writer, id string, a *fakehttp.Answer) {
	h := textproto.MIMEHeader{}
	h.Set("Content-Type", "application/http")
	if id != "" {
		h.Set("Content-ID", "<response-"+strings.TrimPrefix(id, "<"))
		if !strings.HasSuffix(id, ">") {
			h.Set("Content-ID", "<response-"+id+">")
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
	a.Header.Set("Content-Length", itoa(a.Body.Size()))
	_ = a.Header.Write(&out) // a bytes.Buffer does not fail, here and below
	out.WriteString("\r\n")
	out.Write(a.Body.Bytes())
	p, _ := w.CreatePart(h)
	_, _ = p.Write(out.Bytes())
}
