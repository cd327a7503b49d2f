package fakes3

import (
	"net/http"
	"slices"
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
	marker = &version{key: key, marker: true, modTime: s.Now()}
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
	c.Entry.Keys = len(req.Objects)
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
	if c.Shape.DeleteError != nil {
		if code := c.Shape.DeleteError(key); code != "" {
			failed(code, "scripted answer")
			return
		}
	}
	gone, marker, err := c.b.delete(c.s, key, id, func(cur *version) *apiError {
		switch {
		case etag == "" || c.Shape.IgnoreIfMatch:
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
	d := newDoc("ListVersionsResult")
	w := &versionWalk{c: c, q: q, d: d, after: c.Query.Get("key-marker"), afterID: c.Query.Get("version-id-marker")}
	d.text("Name", c.Bucket)
	d.text("Prefix", q.enc(q.prefix))
	d.text("KeyMarker", q.enc(w.after))
	d.text("VersionIdMarker", w.afterID)
	d.number("MaxKeys", int64(q.asked))
	d.some("Delimiter", q.enc(q.delimiter))
	d.some("EncodingType", q.encoding)
	for _, key := range c.names() {
		if !w.visit(key) {
			w.page.Truncated = true
			break
		}
	}
	if !w.page.Truncated {
		w.page.Token, w.nextID = "", ""
	}
	w.page.Asked, w.page.Here = w.after, w.after
	c.EditPage(&w.page)
	q.prefixes(d, w.page.Prefixes)
	d.flag("IsTruncated", w.page.Truncated)
	d.some("NextKeyMarker", q.enc(w.page.Token))
	d.some("NextVersionIdMarker", w.nextID)
	return docResponse(d), nil
}

// versionWalk collects one page of versions.
type versionWalk struct {
	c              *call
	q              *listQuery
	d              *xmlDoc
	after, afterID string // the markers: begin behind this version of this key
	page           Page
	nextID         string
	count          int
}

// visit adds what key has to the page; false means that the page is full.
func (w *versionWalk) visit(key string) bool {
	if !strings.HasPrefix(key, w.q.prefix) || w.c.order(key, w.after) < 0 {
		return true
	}
	vs := w.c.b.all(key)
	if len(vs) == 0 {
		return true
	}
	if p, ok := w.q.group(key); ok {
		return w.addPrefix(p)
	}
	newest := vs[0]
	if key == w.after {
		i := slices.IndexFunc(vs, func(v *version) bool { return v.id == w.afterID })
		if i < 0 {
			return true // no version marker: behind the whole key
		}
		vs = vs[i+1:]
	}
	for _, v := range vs {
		if w.count == w.q.limit {
			return false
		}
		w.c.versionEntry(w.d, w.q, v, v == newest)
		w.page.Token, w.nextID = key, v.id
		w.count++
	}
	return true
}

func (w *versionWalk) addPrefix(p string) bool {
	if n := len(w.page.Prefixes); p == w.after || n > 0 && w.page.Prefixes[n-1] == p {
		return true
	}
	if w.count == w.q.limit {
		return false
	}
	w.page.Prefixes = append(w.page.Prefixes, p)
	w.page.Token, w.nextID = p, ""
	w.count++
	return true
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
