package fakes3

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

func (c *call) listParts() (*response, *apiError) {
	u, err := c.upload()
	if err != nil {
		return nil, err
	}
	q, err := c.listQuery("max-parts")
	if err != nil {
		return nil, err
	}
	marker := c.Query.Get("part-number-marker")
	after, _ := strconv.Atoi(marker)
	d := newDoc("ListPartsResult")
	d.text("Bucket", c.Bucket)
	d.text("Key", c.Key)
	d.text("UploadId", u.id)
	d.text("StorageClass", "STANDARD")
	d.number("PartNumberMarker", int64(after))
	d.number("MaxParts", int64(q.asked))
	page := Page{Asked: marker, Here: marker}
	count := 0
	for _, p := range u.sortedParts() {
		if p.number <= after {
			continue
		}
		if count == q.limit {
			page.Truncated = true
			break
		}
		count++
		page.Token = itoa(p.number)
		d.begin("Part")
		d.number("PartNumber", int64(p.number))
		d.time("LastModified", p.modTime)
		d.text("ETag", p.etag)
		d.number("Size", int64(len(p.data)))
		for alg, sum := range p.sums {
			d.text(checksumElement(alg), sum)
		}
		d.end()
	}
	c.EditPage(&page)
	d.flag("IsTruncated", page.Truncated)
	d.some("NextPartNumberMarker", page.Token)
	return docResponse(d), nil
}

// openUploads are the uploads in progress by key, then by age.
func (b *bucket) openUploads() []*upload {
	b.mu.RLock()
	defer b.mu.RUnlock()
	us := make([]*upload, 0, len(b.mu.uploads))
	for _, u := range b.mu.uploads {
		us = append(us, u)
	}
	slices.SortFunc(us, func(x, y *upload) int { // ids are in order of their making
		return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.id, y.id))
	})
	return us
}

func (c *call) listUploads() (*response, *apiError) {
	q, err := c.listQuery("max-uploads")
	if err != nil {
		return nil, err
	}
	after, afterID := c.Query.Get("key-marker"), c.Query.Get("upload-id-marker")
	if after == "" {
		afterID = "" // as documented: ignored without key-marker
	}
	d := newDoc("ListMultipartUploadsResult")
	d.text("Bucket", c.Bucket)
	d.text("KeyMarker", q.enc(after))
	d.text("UploadIdMarker", afterID)
	d.text("Prefix", q.enc(q.prefix))
	d.some("Delimiter", q.enc(q.delimiter))
	d.some("EncodingType", q.encoding)
	d.number("MaxUploads", int64(q.asked))
	page := Page{Asked: after, Here: after}
	nextID, group, count := "", "", 0
	for _, u := range c.b.openUploads() {
		if !strings.HasPrefix(u.key, q.prefix) || u.key < after || u.key == after && u.id <= afterID || u.key == after && after != "" && afterID == "" {
			continue
		}
		p, grouped := q.group(u.key)
		if grouped && (p == group || p == after) {
			continue
		}
		if count == q.limit {
			page.Truncated = true
			break
		}
		count++
		if grouped {
			group = p
			page.Prefixes = append(page.Prefixes, p)
			page.Token, nextID = p, ""
			continue
		}
		page.Token, nextID = u.key, u.id
		d.begin("Upload")
		d.text("Key", q.enc(u.key))
		d.text("UploadId", u.id)
		d.text("StorageClass", "STANDARD")
		d.time("Initiated", u.initiated)
		d.end()
	}
	c.EditPage(&page)
	q.prefixes(d, page.Prefixes)
	d.flag("IsTruncated", page.Truncated)
	if page.Truncated {
		d.some("NextKeyMarker", q.enc(page.Token))
		d.some("NextUploadIdMarker", nextID)
	}
	return docResponse(d), nil
}
