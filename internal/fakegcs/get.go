package fakegcs

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// getMetadata is objects.get without alt=media.
func (c *call) getMetadata() (*fakehttp.Answer, *apiError) {
	gen, err := c.generation("generation")
	if err != nil {
		return nil, err
	}
	soft := c.Query.Get("softDeleted") == "true"
	if soft && c.knobs.NoSoftDelete {
		return nil, errInvalid("softDeleted is not supported")
	}
	if soft && gen == 0 {
		return nil, errRequired("generation")
	}
	cond, err := conditionOf(c.Query, "if")
	if err != nil {
		return nil, err
	}
	o := c.b.find(c.Key, gen)
	if soft {
		o = c.b.findSoft(c.Key, gen, c.s.Now())
	}
	if err := c.target(c.obeyed(cond))(o); err != nil {
		return nil, err
	}
	if err := c.readCondition(o, o.etag()); err != nil {
		return nil, err
	}
	a, err := c.document(c.resource(c.Bucket, o))
	if err == nil {
		a.Set("ETag", o.etag())
	}
	return a, err
}

// obeyed is the condition without what the shape ignores.
func (c *call) obeyed(cond condition) condition {
	if c.IgnoreIfMatch {
		if cond.generation != nil && *cond.generation != 0 {
			cond.generation = nil
		}
		cond.metageneration = nil
	}
	if c.IgnoreIfNoneMatch {
		if cond.generation != nil && *cond.generation == 0 {
			cond.generation = nil
		}
		cond.notGeneration, cond.notMetageneration = nil, nil
	}
	return cond
}

// getMedia is objects.get with alt=media, and GET and HEAD of the XML API.
func (c *call) getMedia() (*fakehttp.Answer, *apiError) {
	gen, err := c.generation("generation")
	if err != nil {
		return nil, err
	}
	if c.Query.Get("softDeleted") == "true" {
		return nil, errInvalid("The content of a soft-deleted object cannot be read")
	}
	cond, err := conditionOf(c.Query, "if")
	if c.xml {
		cond, err = headerCondition(c.Header)
	}
	if err != nil {
		return nil, err
	}
	o := c.b.find(c.Key, gen)
	if err := c.target(c.obeyed(cond))(o); err != nil {
		return nil, err
	}
	etag := o.etag()
	if c.xml {
		etag = `"` + hex.EncodeToString(o.md5) + `"`
	}
	if err := c.readCondition(o, etag); err != nil {
		return nil, err
	}
	a := fakehttp.NewAnswer(http.StatusOK)
	c.describe(a, o, etag)
	if err := c.content(a, o); err != nil {
		return nil, err
	}
	return a, nil
}

// describe sets the headers that "HTTP headers and query string parameters for
// XML API" lists for objects. Lengths and hashes are always of the whole
// object as it is stored.
func (c *call) describe(a *fakehttp.Answer, o *object, etag string) {
	contentType := o.attrs.contentType
	if contentType == "" {
		contentType = "application/octet-stream" // the Object resource says so of contentType
	}
	stored := o.attrs.contentEncoding
	if stored == "" {
		stored = "identity"
	}
	for _, h := range [][2]string{
		{"Content-Type", contentType}, {"Content-Disposition", o.attrs.contentDisposition},
		{"Content-Language", o.attrs.contentLanguage}, {"Cache-Control", o.attrs.cacheControl},
		{"ETag", etag}, {"Last-Modified", o.updated.UTC().Format(http.TimeFormat)}, {"Accept-Ranges", "bytes"},
		{"X-Goog-Generation", c.ETagOf(itoa(o.generation))}, {"X-Goog-Metageneration", itoa(o.metageneration)},
		{"X-Goog-Stored-Content-Length", itoa(o.size)}, {"X-Goog-Stored-Content-Encoding", stored},
		{"X-Goog-Storage-Class", o.attrs.storageClass},
	} {
		a.Set(h[0], h[1])
	}
	crc, md5 := "crc32c="+crcText(o.crc), "md5="+base64.StdEncoding.EncodeToString(o.md5)
	a.Header["X-Goog-Hash"] = []string{crc + "," + md5}
	if c.xml { // two headers there, one list in the JSON API
		a.Header["X-Goog-Hash"] = []string{crc, md5}
	}
	if c.xml || c.knobs.MediaMetadata {
		for k, v := range o.attrs.meta {
			a.Header["X-Goog-Meta-"+k] = []string{v}
		}
	}
}

// content puts the body in, or the piece of it that was asked for.
func (c *call) content(a *fakehttp.Answer, o *object) *apiError {
	if plain, ok := c.transcode(o); ok {
		// Range is ignored then, and neither length nor encoding is told
		// ("Transcoding of gzip-compressed files").
		a.Set("Warning", "214 UploadServer gunzipped")
		a.Body, a.Length = fakehttp.Rope{plain}, int64(len(plain))
		if c.Length == fakehttp.Announced {
			c.Length = fakehttp.Chunked
		}
		return nil
	}
	a.Set("Content-Encoding", o.attrs.contentEncoding)
	sp := fakehttp.Span{N: o.size}
	if c.Range != "" && !c.IgnoreRange {
		var ok bool
		if sp, ok = fakehttp.ParseRange(c.Range, o.size); !ok {
			return fail(http.StatusRequestedRangeNotSatisfiable, "requestedRangeNotSatisfiable", "InvalidRange",
				"The requested range cannot be satisfied.").at("Range").with("Content-Range", "bytes */"+itoa(o.size))
		}
		sp = c.Deform(sp, o.size)
	}
	if sp.Partial {
		a.Status = http.StatusPartialContent
		a.Set("Content-Range", c.RangeHeader(sp, o.size))
	}
	a.Body, a.Length = o.data.Slice(sp.Off, sp.N), sp.N
	return nil
}

// transcode unpacks what is stored as gzip, unless the client takes gzip or
// the object says no-transform. What is not gzip in truth is sent as it is.
func (c *call) transcode(o *object) ([]byte, bool) {
	if o.attrs.contentEncoding != "gzip" || strings.Contains(o.attrs.cacheControl, "no-transform") || acceptsGzip(c.Header) {
		return nil, false
	}
	z, err := gzip.NewReader(bytes.NewReader(o.data.Bytes()))
	if err != nil {
		return nil, false
	}
	plain, err := io.ReadAll(z)
	return plain, err == nil
}

func acceptsGzip(h http.Header) bool {
	for _, line := range h.Values("Accept-Encoding") {
		for t := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(t, ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				return true
			}
		}
	}
	return false
}
