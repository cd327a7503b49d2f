package fakes3

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// storedHeaders are kept with an object and sent back with it.
var storedHeaders = []string{
	"Content-Type", "Content-Encoding", "Content-Disposition", "Content-Language", "Cache-Control", "Expires",
}

const metaPrefix = "x-amz-meta-"

// maxMetadata is the limit of names and values together (S3 user guide,
// "Working with object metadata").
const maxMetadata = 2 << 10

// described returns a new version with what the request's headers say of it.
func (c *call) described() (*version, *apiError) {
	v := &version{key: c.Key, header: http.Header{}, meta: map[string]string{}, modTime: c.s.Now()}
	for _, name := range storedHeaders {
		value := c.Header.Get(name)
		if name == "Content-Encoding" && !c.knobs.StoreFraming {
			value = withoutToken(value, "aws-chunked")
		}
		if value != "" {
			v.header.Set(name, value)
		}
	}
	if v.header.Get("Content-Type") == "" {
		v.header.Set("Content-Type", "binary/octet-stream")
	}
	total := 0
	for name, values := range c.Header {
		lower := strings.ToLower(name)
		if k, ok := strings.CutPrefix(lower, metaPrefix); ok {
			v.meta[k] = strings.Join(values, ",")
			total += len(k) + len(v.meta[k])
		}
	}
	if total > maxMetadata {
		return nil, fail(http.StatusBadRequest, "MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size").
			elem("Size", itoa(total)).elem("MaxSizeAllowed", itoa(maxMetadata))
	}
	if c.knobs.LosesMetadata {
		v.meta = nil
	}
	return v, nil
}

// fill gives v its content.
func (v *version) fill(data rope) {
	v.data, v.size = data, data.Size()
	v.crc64 = sync.OnceValue(func() string { return ropeSum("crc64nvme", data) })
}

func (c *call) putObject() (*response, *apiError) {
	check, err := c.writeCondition()
	if err != nil {
		return nil, err
	}
	v, err := c.described()
	if err != nil {
		return nil, err
	}
	b, err := c.readBody(c.s.opts.MaxObject)
	if err != nil {
		return nil, err
	}
	v.fill(rope{b.data})
	v.etag = c.s.etagOf(b.md5)
	v.sums, v.sumType = b.sums, "FULL_OBJECT"
	if err := c.b.commit(c.s, v, check); err != nil {
		return nil, err
	}
	resp := newResponse(http.StatusOK)
	resp.Set("ETag", c.ETagOf(v.etag))
	c.setVersion(resp, v)
	setSums(resp, v.sums, v.sumType)
	return resp, nil
}

// setVersion names the version where the bucket has versions.
func (c *call) setVersion(resp *response, v *version) {
	if c.b.versioned() {
		resp.Set("x-amz-version-id", v.id)
	}
}

func setSums(resp *response, sums map[string]string, kind string) {
	for alg, v := range sums {
		resp.Set(checksumHeader(alg), v)
	}
	if len(sums) > 0 {
		resp.Set("x-amz-checksum-type", kind)
	}
}

// getObject serves GET and HEAD.
func (c *call) getObject() (*response, *apiError) {
	v, err := c.lookup()
	if err != nil {
		return nil, err
	}
	if status, condition := c.readCondition(v); status == http.StatusPreconditionFailed {
		return nil, errPrecondition(condition)
	} else if status != 0 {
		resp := newResponse(status)
		c.describe(resp, v)
		return resp, nil
	}
	sp, err := c.span(v)
	if err != nil {
		return nil, err
	}
	resp := newResponse(http.StatusOK)
	c.describe(resp, v)
	resp.Length = sp.N
	if c.Method != http.MethodHead {
		resp.Body = v.data.Slice(sp.Off, sp.N)
	}
	c.describeSpan(resp, v, sp)
	return resp, nil
}

// lookup finds the version that the request names.
func (c *call) lookup() (*version, *apiError) {
	id := c.Query.Get("versionId")
	v := c.b.find(c.Key, id)
	switch {
	case v == nil && id != "":
		return nil, fail(http.StatusNotFound, "NoSuchVersion", "The specified version does not exist.").elem("Key", c.Key)
	case v == nil && c.knobs.HidesMissing:
		return nil, errDenied()
	case v == nil:
		return nil, errNoSuchKey(c.Key)
	case v.marker && id != "":
		return nil, fail(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.").
			with("x-amz-delete-marker", "true").with("x-amz-version-id", v.id).
			with("Last-Modified", v.modTime.UTC().Format(http.TimeFormat)).with("Allow", "DELETE")
	case v.marker:
		return nil, errNoSuchKey(c.Key).with("x-amz-delete-marker", "true").with("x-amz-version-id", v.id)
	}
	return v, nil
}

func (c *call) describe(resp *response, v *version) {
	for name, values := range v.header {
		resp.Header[name] = values
	}
	for k, value := range v.meta {
		resp.Header.Set(metaPrefix+k, value)
	}
	for _, p := range [][2]string{
		{"response-content-type", "Content-Type"}, {"response-content-encoding", "Content-Encoding"},
		{"response-cache-control", "Cache-Control"}, {"response-content-disposition", "Content-Disposition"},
	} {
		resp.Set(p[1], c.Query.Get(p[0]))
	}
	resp.Set("ETag", c.ETagOf(v.etag))
	resp.Set("Last-Modified", v.modTime.UTC().Format(http.TimeFormat))
	resp.Set("Accept-Ranges", "bytes")
	c.setVersion(resp, v)
}

func (c *call) describeSpan(resp *response, v *version, sp span) {
	if sp.Partial {
		resp.Status = http.StatusPartialContent
		resp.Set("Content-Range", c.RangeHeader(sp.Span, v.size))
	}
	if sp.part != nil && !c.Shape.NoPartsCount {
		resp.Set("x-amz-mp-parts-count", itoa(len(v.parts)))
	}
	if !strings.EqualFold(c.Header.Get("x-amz-checksum-mode"), "ENABLED") {
		return
	}
	switch {
	case sp.N == v.size && len(v.sums) > 0:
		setSums(resp, v.sums, v.sumType)
	case sp.N == v.size && v.parts == nil:
		setSums(resp, map[string]string{"crc64nvme": v.crc64()}, "FULL_OBJECT")
	case sp.part != nil:
		setSums(resp, sp.part.sums, v.sumType)
	}
}

func (c *call) deleteObject() (*response, *apiError) {
	check, err := c.writeCondition()
	if err != nil {
		return nil, err
	}
	gone, marker, err := c.b.delete(c.s, c.Key, c.Query.Get("versionId"), check)
	if err != nil {
		return nil, err
	}
	resp := newResponse(http.StatusNoContent)
	if v := firstOf(marker, gone); v != nil && c.b.versioned() {
		resp.Set("x-amz-version-id", v.id)
		if v.marker {
			resp.Set("x-amz-delete-marker", "true")
		}
	}
	return resp, nil
}

func firstOf(vs ...*version) *version {
	for _, v := range vs {
		if v != nil {
			return v
		}
	}
	return nil
}

func (c *call) copyObject() (*response, *apiError) {
	check, err := c.writeCondition()
	if err != nil {
		return nil, err
	}
	src, err := c.copySource()
	if err != nil {
		return nil, err
	}
	v, err := c.described()
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(c.Header.Get("x-amz-metadata-directive"), "REPLACE") {
		v.header, v.meta = src.header, src.meta
	}
	// A copy is one object of its own: it has no parts, and the ETag of an
	// object of one PUT. Where that cannot be known without reading, it is new.
	v.fill(src.data)
	v.sums, v.sumType, v.etag = nil, "FULL_OBJECT", src.etag
	if src.sumType == "FULL_OBJECT" {
		v.sums = src.sums
	}
	if src.parts != nil {
		v.etag = c.s.etagOf(md5Of(src.data, c.s.opts.FastETag))
	}
	if err := c.b.commit(c.s, v, check); err != nil {
		return nil, err
	}
	d := newDoc("CopyObjectResult")
	d.time("LastModified", v.modTime)
	d.text("ETag", c.ETagOf(v.etag))
	resp := docResponse(d)
	c.setVersion(resp, v)
	return resp, nil
}

func (c *call) copySource() (*version, *apiError) {
	value, query, _ := strings.Cut(c.Header.Get("x-amz-copy-source"), "?")
	id := ""
	if q, err := url.ParseQuery(query); err == nil {
		id = q.Get("versionId")
	}
	value, err := url.PathUnescape(strings.TrimPrefix(value, "/"))
	name, key, ok := strings.Cut(value, "/")
	if err != nil || !ok {
		return nil, errArgument("Copy Source must mention the source bucket and key: sourcebucket/sourcekey")
	}
	b := c.s.bucket(name)
	if b == nil {
		return nil, errNoSuchBucket(name)
	}
	v := b.find(key, id)
	if v == nil || v.marker {
		return nil, errNoSuchKey(key)
	}
	if want := c.Header.Get("x-amz-copy-source-if-match"); want != "" && !etagMatches(want, v.etag) {
		return nil, errPrecondition("x-amz-copy-source-If-Match")
	}
	return v, nil
}
