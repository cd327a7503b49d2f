package fakeaz

import (
	"math"
	"strings"
	"time"
)

// listDocument is the body of List Blobs. Blobs and prefixes come in one order.
func (c *call) listDocument(q *listQuery, items []item, token string) *xmlDoc {
	d := newDoc("EnumerationResults", attr{"ServiceEndpoint", c.s.Endpoint() + "/"}, attr{"ContainerName", c.container})
	d.some("Prefix", q.prefix)
	d.some("Marker", c.query.Get("marker"))
	d.some("StartFrom", q.from)
	d.some("MaxResults", q.asked)
	d.some("Delimiter", q.delimiter)
	d.begin("Blobs")
	for _, it := range items {
		if it.rev == nil {
			d.begin("BlobPrefix")
			d.name(it.prefix)
			d.end()
			continue
		}
		c.listItem(d, q, it)
	}
	d.end()
	d.text("NextMarker", token)
	return d
}

func (c *call) listItem(d *xmlDoc, q *listQuery, it item) {
	r := it.rev
	d.begin("Blob")
	d.name(r.name)
	d.some("Snapshot", r.snapshot)
	if q.include["versions"] {
		d.some("VersionId", r.version)
	}
	if it.current && q.include["versions"] {
		d.flag("IsCurrentVersion", true)
	}
	if it.deleted != nil {
		d.flag("Deleted", true)
	}
	d.begin("Properties")
	c.listProperties(d, it)
	d.end()
	if q.include["metadata"] {
		d.begin("Metadata")
		for name, v := range r.meta {
			d.text(name, v)
		}
		d.end()
	}
	if it.versionsOnly {
		d.flag("HasVersionsOnly", true)
	}
	d.end()
}

func (c *call) listProperties(d *xmlDoc, it item) {
	r := it.rev
	if it.uncommitted { // of zero length, and without a date or an ETag
		d.number("Content-Length", 0)
		d.text("BlobType", "BlockBlob")
		return
	}
	if !r.created.IsZero() {
		d.date("Creation-Time", r.created)
	}
	d.date("Last-Modified", r.modTime)
	// Without the quotes that the header has.
	d.text("Etag", strings.Trim(c.shape.ETagOf(r.etag), `"`))
	d.number("Content-Length", r.size)
	for _, h := range contentHeaders {
		d.text(h.name, r.header.Get(h.name))
	}
	d.text("Content-CRC64", "")
	d.text("Content-MD5", encodeMD5(r.md5))
	d.text("BlobType", "BlockBlob")
	if r.tier != "" {
		d.text("AccessTier", r.tier)
	} else {
		d.text("AccessTier", "Hot")
		d.flag("AccessTierInferred", true)
	}
	if r.snapshot == "" {
		d.text("LeaseStatus", "unlocked")
		d.text("LeaseState", "available")
	}
	if r.copyID != "" {
		d.text("CopyId", r.copyID)
		d.text("CopyStatus", "success")
	}
	if it.deleted != nil {
		d.date("DeletedTime", it.deleted.deleted)
		left := it.deleted.deleted.Add(c.s.retention()).Sub(c.s.now())
		d.number("RemainingRetentionDays", int64(math.Ceil(float64(left)/float64(24*time.Hour))))
	}
	d.flag("ServerEncrypted", true)
}
