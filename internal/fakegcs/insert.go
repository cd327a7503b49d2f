package fakegcs

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// maxDocument bounds the JSON documents of requests.
const maxDocument = 1 << 20

// insert is objects.insert with uploadType media or multipart.
func (c *call) insert() (*fakehttp.Answer, *apiError) {
	cond, err := conditionOf(c.Query, "if")
	if err != nil {
		return nil, err
	}
	var r *resource
	var data []byte
	switch c.Query.Get("uploadType") {
	case "media":
		r = &resource{ContentType: c.Header.Get("Content-Type")}
		data, err = c.readBody(c.s.opts.MaxObject)
	case "multipart":
		r, data, err = c.readRelated()
	default:
		return nil, errInvalid("Invalid upload type: %q", c.Query.Get("uploadType")).at("uploadType")
	}
	if err != nil {
		return nil, err
	}
	o, err := c.newObject(r)
	if err != nil {
		return nil, err
	}
	o.fill(fakehttp.Rope{data})
	if err := checkSums(o, r.CRC32C, r.MD5); err != nil {
		return nil, err
	}
	if err := checkHashHeader(o, c.Header); err != nil {
		return nil, err
	}
	if err := c.b.commit(c.s, o, c.obeyed(cond).check); err != nil {
		return nil, err
	}
	return c.document(c.resource(c.Bucket, o))
}

// newObject begins an object from the metadata of its upload. The query
// overrides the name, and may tell the encoding.
func (c *call) newObject(r *resource) (*object, *apiError) {
	name := c.Query.Get("name")
	if name == "" {
		name = r.Name
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if e := c.Query.Get("contentEncoding"); e != "" {
		r.ContentEncoding = e
	}
	a, err := r.attrs(c.knobs)
	if err != nil {
		return nil, err
	}
	return &object{name: name, attrs: a}, nil
}

// readBody reads a body that must come whole.
func (c *call) readBody(limit int64) ([]byte, *apiError) {
	if c.inner {
		data, err := io.ReadAll(c.HTTP.Body)
		if err != nil {
			return nil, errInvalid("The part of the batch is not whole")
		}
		return data, nil
	}
	data, err := c.ReadBody(limit)
	switch {
	case errors.Is(err, fakehttp.ErrTooLarge):
		return nil, fail(http.StatusRequestEntityTooLarge, "uploadTooLarge", "EntityTooLarge", "The object exceeds the maximum size of %d bytes.", limit)
	case err != nil:
		return nil, fail(http.StatusServiceUnavailable, "uploadBrokenConnection", "IncompleteBody", "The request body ended early: %v", err)
	}
	return data, nil
}

// readRelated reads a multipart/related body: the metadata, then the content
// ("Upload objects from a file system", multipart upload).
func (c *call) readRelated() (*resource, []byte, *apiError) {
	body, err := c.readBody(c.s.opts.MaxObject)
	if err != nil {
		return nil, nil, err
	}
	bad := func(what string) *apiError {
		return fail(http.StatusBadRequest, "badContent", "InvalidArgument", "Multipart body is malformed: %s", what)
	}
	kind, params, parseErr := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if parseErr != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return nil, nil, bad("no boundary")
	}
	m := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	_, document, ok := nextPart(m)
	if !ok {
		return nil, nil, bad("no metadata")
	}
	r, err := parseResource(document)
	if err != nil {
		return nil, nil, err
	}
	contentType, data, ok := nextPart(m)
	if !ok {
		return nil, nil, bad("no content")
	}
	if _, _, more := nextPart(m); more {
		return nil, nil, bad("more than two parts")
	}
	if r.ContentType == "" {
		r.ContentType = contentType
	}
	// The log tells the length of the content, not of its wrapping.
	c.Entry.BodyLen = int64(len(data))
	if c.Key == "" {
		c.Entry.Key = r.Name
	}
	return r, data, nil
}

func nextPart(m *multipart.Reader) (contentType string, data []byte, ok bool) {
	p, err := m.NextRawPart()
	if err != nil {
		return "", nil, false
	}
	data, err = io.ReadAll(p)
	return p.Header.Get("Content-Type"), data, err == nil
}

// checkSums compares what was received with the sums in its metadata.
func checkSums(o *object, crc, md5 string) *apiError {
	if got := crcText(o.crc); crc != "" && crc != got {
		return errInvalid("Provided CRC32C %q doesn't match calculated CRC32C %q.", crc, got)
	}
	if got := base64.StdEncoding.EncodeToString(o.md5); md5 != "" && md5 != got {
		return errInvalid("Provided MD5 hash %q doesn't match calculated MD5 hash %q.", md5, got)
	}
	return nil
}

// checkHashHeader compares with X-Goog-Hash, which an upload may carry with
// its last request ("Data validation and change detection").
func checkHashHeader(o *object, h http.Header) *apiError {
	for _, line := range h.Values("X-Goog-Hash") {
		for item := range strings.SplitSeq(line, ",") {
			name, value, ok := strings.Cut(strings.TrimSpace(item), "=")
			var err *apiError
			switch {
			case ok && name == "crc32c":
				err = checkSums(o, value, "")
			case ok && name == "md5":
				err = checkSums(o, "", value)
			default:
				err = errInvalid("Invalid x-goog-hash header: %q", item)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
