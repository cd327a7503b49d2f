package fakeaz

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// maxRangeSum is the largest range whose checksum may be asked for ("Get Blob": 4 MiB).
const maxRangeSum = 4 << 20

// getBlob serves Get Blob and Get Blob Properties.
func (c *call) getBlob() (*response, *apiError) {
	cd, err := c.conditions()
	if err != nil {
		return nil, err
	}
	version, snapshot := c.query.Get("versionid"), c.query.Get("snapshot")
	if version != "" && snapshot != "" {
		return nil, fail(http.StatusBadRequest, "MutuallyExclusiveQueryParameters", "snapshot and versionid are mutually exclusive.")
	}
	c.c.mu.Lock()
	e := c.c.entry(c.s, c.blob)
	r := e.find(version, snapshot)
	current := r != nil && e.current == r
	c.c.mu.Unlock()
	if r == nil {
		return nil, c.missing(cd)
	}
	if err := cd.read(r); err != nil {
		if err.status == http.StatusNotModified {
			err = err.with("ETag", c.shape.ETagOf(r.etag)).with("Last-Modified", httpDate(r.modTime))
		}
		return nil, err
	}
	resp := newResponse(http.StatusOK)
	c.describe(resp, r)
	if current && r.version != "" {
		resp.Set("x-ms-is-current-version", "true")
	}
	c.properties(resp, r)
	return resp, c.span(resp, r)
}

func (c *call) properties(resp *response, r *revision) {
	for name, values := range r.header {
		resp.Header[name] = values
	}
	for k, v := range r.meta {
		resp.Header[metaPrefix+k] = []string{v} // not Set: the name keeps its case
	}
	resp.Set("Accept-Ranges", "bytes")
	resp.Set("x-ms-blob-type", "BlockBlob")
	resp.Set("x-ms-creation-time", httpDate(r.created))
	resp.Set("x-ms-server-encrypted", "true")
	if r.snapshot == "" {
		resp.Set("x-ms-lease-status", "unlocked")
		resp.Set("x-ms-lease-state", "available")
	}
	if r.copyID != "" {
		resp.Set("x-ms-copy-id", r.copyID)
		resp.Set("x-ms-copy-status", "success")
		resp.Set("x-ms-copy-completion-time", httpDate(r.modTime))
	}
	if c.method == http.MethodHead {
		tier := r.tier
		if tier == "" {
			tier = "Hot"
			resp.Set("x-ms-access-tier-inferred", "true")
		}
		resp.Set("x-ms-access-tier", tier)
	}
}

// span gives the answer its bytes: all of them, or one range. Get Blob Properties knows no ranges.
func (c *call) span(resp *response, r *revision) *apiError {
	resp.Length = r.size
	if c.method == http.MethodHead {
		resp.Set("Content-MD5", encodeMD5(r.md5))
		return nil
	}
	sp, err := c.wanted(r.size)
	if err != nil {
		return err
	}
	sum := c.header.Get("x-ms-range-get-content-md5") == "true"
	crc := c.header.Get("x-ms-range-get-content-crc64") == "true"
	switch {
	case (sum || crc) && !sp.Partial:
		return errMissingHeader("Range")
	case sum && crc:
		return errInput("Both x-ms-range-get-content-md5 and x-ms-range-get-content-crc64 are specified.")
	case (sum || crc) && sp.N > maxRangeSum:
		return errOutOfRange()
	}
	if !sp.Partial {
		resp.Set("Content-MD5", encodeMD5(r.md5))
		resp.Body = r.data
		return nil
	}
	sp = c.shape.Deform(sp, r.size)
	resp.Status, resp.Body = http.StatusPartialContent, r.data.Slice(sp.Off, sp.N)
	resp.Set("x-ms-blob-content-md5", encodeMD5(r.md5))
	if sum {
		resp.Set("Content-MD5", encodeMD5(md5Of(resp.Body)))
	}
	if crc {
		resp.Set("x-ms-content-crc64", crc64Of(resp.Body))
	}
	resp.Set("Content-Range", c.shape.RangeHeader(sp, r.size))
	return nil
}

// wanted reads the range that is asked for. "Specifying the range header for Blob service operations": bytes=a- or
// bytes=a-b, and x-ms-range goes before Range. Suffixes and several ranges are not among the forms; what the service
// answers to them is not said, and here they are refused.
func (c *call) wanted(size int64) (fakehttp.Span, *apiError) {
	whole := fakehttp.Span{N: size}
	name, value := "x-ms-range", c.header.Get("x-ms-range")
	if value == "" {
		name, value = "Range", c.header.Get("Range")
	}
	if value == "" || c.shape.IgnoreRange {
		return whole, nil
	}
	spec, ok := strings.CutPrefix(value, "bytes=")
	from, to, dash := strings.Cut(spec, "-")
	first, ferr := strconv.ParseUint(from, 10, 63)
	last := uint64(1<<63 - 1)
	var lerr error
	if to != "" {
		last, lerr = strconv.ParseUint(to, 10, 63)
	}
	if !ok || !dash || ferr != nil || lerr != nil || last < first {
		return whole, errHeader(name, value)
	}
	if first >= uint64(size) {
		return whole, fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The range specified is invalid for the current size of the resource.").
			with("Content-Range", fmt.Sprintf("bytes */%d", size))
	}
	return fakehttp.Span{Off: int64(first), N: min(int64(last), size-1) - int64(first) + 1, Partial: true}, nil
}
