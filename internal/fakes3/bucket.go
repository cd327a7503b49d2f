package fakes3

import (
	"net/http"
	"slices"
	"strings"
)

// maxDocument bounds the XML documents of requests: a Complete of 10,000
// parts with checksums has about 2 MiB.
const maxDocument = 8 << 20

func (c *call) createBucket() (*response, *apiError) {
	c.Drain()
	if n := len(c.Bucket); n < 3 || n > 63 {
		return nil, fail(http.StatusBadRequest, "InvalidBucketName", "The specified bucket is not valid.")
	}
	if !c.s.CreateBucket(c.Bucket) {
		return nil, fail(http.StatusConflict, "BucketAlreadyOwnedByYou",
			"Your previous request to create the named bucket succeeded and you already own it.")
	}
	resp := newResponse(http.StatusOK)
	resp.Set("Location", "/"+c.Bucket)
	return resp, nil
}

func (c *call) headBucket() (*response, *apiError) {
	resp := newResponse(http.StatusOK)
	resp.Set("x-amz-bucket-region", c.s.opts.Region)
	return resp, nil
}

func (c *call) deleteBucket() (*response, *apiError) {
	c.b.mu.RLock()
	empty := len(c.b.mu.keys) == 0
	c.b.mu.RUnlock()
	if !empty {
		return nil, fail(http.StatusConflict, "BucketNotEmpty", "The bucket you tried to delete is not empty")
	}
	c.s.mu.Lock()
	delete(c.s.mu.buckets, c.Bucket)
	c.s.mu.Unlock()
	return newResponse(http.StatusNoContent), nil
}

func (c *call) listBuckets() (*response, *apiError) {
	c.s.mu.RLock()
	var bs []*bucket
	for _, b := range c.s.mu.buckets {
		bs = append(bs, b)
	}
	c.s.mu.RUnlock()
	slices.SortFunc(bs, func(a, b *bucket) int { return strings.Compare(a.name, b.name) })
	d := newDoc("ListAllMyBucketsResult")
	d.begin("Buckets")
	for _, b := range bs {
		d.begin("Bucket")
		d.text("Name", b.name)
		d.time("CreationDate", b.created)
		d.end()
	}
	d.end()
	return docResponse(d), nil
}

func (c *call) getLocation() (*response, *apiError) {
	region := c.s.opts.Region
	if region == "us-east-1" {
		region = "" // its location constraint is null
	}
	d := &xmlDoc{}
	d.buf.WriteString(xmlHead + `<LocationConstraint xmlns="` + s3Namespace + `">`)
	escapeXML(&d.buf, region)
	d.buf.WriteString("</LocationConstraint>")
	return docResponse(d), nil
}
