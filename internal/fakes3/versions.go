package fakes3

import (
	"net/http"
	"strings"
)

func (b *bucket) versioned() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.mu.versioning != ""
}

// delete removes key as a DELETE does: for good without versioning or with an
// id, else by putting a delete marker on top. It returns the version removed
// and the marker put.
func (b *bucket) delete(s *Server, key, id string, check func(*version) *apiError) (gone, marker *version, _ *apiError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if check != nil {
		if err := check(b.current(key)); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case id != "":
		return b.remove(key, id), nil, nil
	case b.mu.versioning == "":
		return b.remove(key, nullVersion), nil, nil
	}
	marker = &version{key: key, marker: true, modTime: s.now()}
	b.put(s, marker)
	return nil, marker, nil
}

func (c *call) deleteObjects() (*response, *apiError) {
	if c.knobs.NoBatchDelete {
		return nil, errNotImplemented("DeleteObjects")
	}
	alg, _ := announced(c.Header)
	if c.Header.Get("Content-MD5") == "" && (alg == "" || c.knobs.RequireContentMD5) && !framed(c.Header) {
		return nil, errRequest("Missing required header for this request: Content-MD5")
	}
	b, err := c.readBody(maxDocument)
	if err != nil {
		return nil, err
	}
	var req xmlDelete
	if err := parseXML(b.data, &req); err != nil {
		return nil, err
	}
	c.entry.Keys = len(req.Objects)
	if len(req.Objects) == 0 || len(req.Objects) > 1000 {
		return nil, errMalformedXML()
	}
	d := newDoc("DeleteResult")
	for _, o := range req.Objects {
		c.deleteOne(d, o.Key, o.VersionID, o.ETag, req.Quiet)
	}
	return docResponse(d), nil
}

func (c *call) deleteOne(d *xmlDoc, key, id, etag string, quiet bool) {
	if c.knobs.FoldSlashes {
		key = foldSlashes(key)
	}
	failed := func(code, msg string) {
		d.begin("Error")
		d.text("Key", key)
		d.some("VersionId", id)
		d.text("Code", code)
		d.text("Message", msg)
		d.end()
	}
	if c.shape.DeleteError != nil {
		if code := c.shape.DeleteError(key); code != "" {
			failed(code, "scripted answer")
			return
		}
	}
	gone, marker, err := c.b.delete(c.s, key, id, func(cur *version) *apiError {
		switch {
		case etag == "" || c.shape.IgnoreIfMatch:
			return nil
		case cur == nil:
			return errNoSuchKey(key)
		case !etagMatches(etag, cur.etag):
			return errPrecondition("If-Match")
		}
		return nil
	})
	if err != nil {
		failed(err.code, err.msg)
		return
	}
	if quiet {
		return
	}
	d.begin("Deleted")
	d.text("Key", key)
	d.some("VersionId", id)
	if marker != nil {
		d.flag("DeleteMarker", true)
		d.text("DeleteMarkerVersionId", marker.id)
	} else if gone != nil && gone.marker {
		d.flag("DeleteMarker", true)
		d.text("DeleteMarkerVersionId", gone.id)
	}
	d.end()
}

// listVersions pages through all versions: keys in order, newest first.
func (c *call) listVersions() (*response, *apiError) {
	q, err := c.listQuery("max-keys")
	if err != nil {
		return nil, err
	}
	after, afterID := c.Query.Get("key-marker"), c.Query.Get("version-id-marker")
	d := newDoc("ListVersionsResult")
	d.text("Name", c.Bucket)
	d.text("Prefix", q.enc(q.prefix))
	d.text("KeyMarker", q.enc(after))
	d.text("VersionIdMarker", afterID)
	d.number("MaxKeys", int64(q.limit))
	d.some("Delimiter", q.enc(q.delimiter))
	d.some("EncodingType", q.encoding)

	page := Page{Asked: after}
	var nextID string
	count, group := 0, ""
	started := afterID == "" // within the marker's own key
walk:
	for _, key := range c.names() {
		if !strings.HasPrefix(key, q.prefix) || c.order(key, after) < 0 || key == after && afterID == "" && after != "" {
			continue
		}
		vs := c.b.all(key)
		if p, ok := q.group(key); ok && len(vs) > 0 {
			if p == group || p == after {
				continue
			}
			if count == q.limit {
				page.Truncated = true
				break
			}
			group = p
			page.Prefixes = append(page.Prefixes, p)
			page.Token, nextID = p, ""
			count++
			continue
		}
		for i, v := range vs {
			if key == after && !started {
				started = v.id == afterID
				continue
			}
			if count == q.limit {
				page.Truncated = true
				break walk
			}
			c.versionEntry(d, q, v, i == 0)
			page.Token, nextID = key, v.id
			count++
		}
	}
	if !page.Truncated {
		page.Token, nextID = "", ""
	}
	c.shape.page(&page)
	q.prefixes(d, page.Prefixes)
	d.flag("IsTruncated", page.Truncated)
	d.some("NextKeyMarker", q.enc(page.Token))
	d.some("NextVersionIdMarker", nextID)
	return docResponse(d), nil
}

func (c *call) versionEntry(d *xmlDoc, q *listQuery, v *version, latest bool) {
	name := "Version"
	if v.marker {
		name = "DeleteMarker"
	}
	d.begin(name)
	d.text("Key", q.enc(v.key))
	d.text("VersionId", v.id)
	d.flag("IsLatest", latest)
	d.time("LastModified", v.modTime)
	if !v.marker {
		d.text("ETag", v.etag)
		d.number("Size", v.size)
		d.text("StorageClass", "STANDARD")
	}
	d.end()
}

func (c *call) getVersioning() (*response, *apiError) {
	d := newDoc("VersioningConfiguration")
	c.b.mu.RLock()
	d.some("Status", c.b.mu.versioning)
	c.b.mu.RUnlock()
	return docResponse(d), nil
}

func (c *call) putVersioning() (*response, *apiError) {
	b, err := c.readBody(maxDocument)
	if err != nil {
		return nil, err
	}
	var v xmlVersioning
	if err := parseXML(b.data, &v); err != nil {
		return nil, err
	}
	if v.Status != "Enabled" && v.Status != "Suspended" {
		return nil, errMalformedXML()
	}
	c.b.mu.Lock()
	c.b.mu.versioning = v.Status
	c.b.mu.Unlock()
	return newResponse(http.StatusOK), nil
}
