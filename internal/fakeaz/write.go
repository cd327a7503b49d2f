package fakeaz

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
)

// contentHeaders are kept with a blob and sent back with it; each is set by an x-ms-blob-* header.
var contentHeaders = []struct{ name, set string }{
	{"Content-Type", "x-ms-blob-content-type"},
	{"Content-Encoding", "x-ms-blob-content-encoding"},
	{"Content-Language", "x-ms-blob-content-language"},
	{"Cache-Control", "x-ms-blob-cache-control"},
	{"Content-Disposition", "x-ms-blob-content-disposition"},
}

// described returns a new revision with what the request's headers say of it. plain: the plain headers, such as
// Content-Type, are about the blob too, as they are in Put Blob but not in Put Block List.
func (c *call) described(plain bool) (*revision, *apiError) {
	r := &revision{name: c.blob, header: http.Header{}, tier: c.header.Get("x-ms-access-tier")}
	for _, h := range contentHeaders {
		v := c.header.Get(h.set)
		if v == "" && plain {
			v = c.header.Get(h.name)
		}
		if v != "" {
			r.header.Set(h.name, v)
		}
	}
	if r.header.Get("Content-Type") == "" {
		r.header.Set("Content-Type", "application/octet-stream")
	}
	meta, err := metadata(c.header)
	if c.s.Knobs().LosesMetadata {
		meta = nil
	}
	r.meta = meta
	return r, err
}

// writing reads the conditions of a write.
func (c *call) writing() (conditions, *apiError) {
	cd, err := c.conditions()
	if err == nil {
		err = cd.combined()
	}
	return cd, err
}

func (c *call) putBlob() (*response, *apiError) {
	switch kind := c.header.Get("x-ms-blob-type"); kind {
	case "BlockBlob":
	case "":
		return nil, errMissingHeader("x-ms-blob-type")
	case "PageBlob", "AppendBlob":
		return nil, errNotImplemented(kind)
	default:
		return nil, errHeader("x-ms-blob-type", kind)
	}
	cd, err := c.writing()
	if err != nil {
		return nil, err
	}
	r, err := c.described(true)
	if err != nil {
		return nil, err
	}
	b, err := c.body(c.s.opts.MaxBlob)
	if err != nil {
		return nil, err
	}
	if err := sameMD5(c.header.Get("x-ms-blob-content-md5"), b.md5); err != nil {
		return nil, err
	}
	r.data, r.size, r.md5 = rope{b.data}, int64(len(b.data)), b.md5
	if err := c.commit(r, cd); err != nil {
		return nil, err
	}
	resp := newResponse(http.StatusCreated)
	c.describe(resp, r)
	if c.header.Get("x-ms-content-crc64") != "" {
		b.echo(resp, c.header)
	} else {
		resp.Set("Content-MD5", encodeMD5(r.md5))
	}
	resp.Set("x-ms-request-server-encrypted", "true")
	return resp, nil
}

// commit makes r the blob if the conditions hold, in one step.
func (c *call) commit(r *revision, cd conditions) *apiError {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	var cur *revision
	if e := c.c.entry(c.s, r.name); e != nil {
		cur = e.current
	}
	if err := cd.write(cur); err != nil {
		return err
	}
	c.c.make(c.s, r.name).put(c.s, r)
	return nil
}

// copyBlob serves Copy Blob, which here is done at once, and Copy Blob From URL. The source is in this account.
func (c *call) copyBlob() (*response, *apiError) {
	cd, err := c.writing()
	if err != nil {
		return nil, err
	}
	src, err := c.copySource()
	if err != nil {
		return nil, err
	}
	meta, err := metadata(c.header)
	if err != nil {
		return nil, err
	}
	r := &revision{
		name: c.blob, header: src.header, meta: src.meta, data: src.data, size: src.size, blocks: src.blocks,
		md5: src.md5, tier: c.header.Get("x-ms-access-tier"), copyID: c.s.requestID(),
	}
	if len(meta) > 0 { // else the source's is copied
		r.meta = meta
	}
	if want := c.header.Get("x-ms-source-content-md5"); want != "" {
		if err := sameMD5(want, md5Of(src.data)); err != nil {
			return nil, err
		}
	}
	if err := c.commit(r, cd); err != nil {
		return nil, err
	}
	resp := newResponse(http.StatusAccepted)
	c.describe(resp, r)
	resp.Set("x-ms-copy-id", r.copyID)
	resp.Set("x-ms-copy-status", "success")
	if c.op == "CopyBlobFromURL" {
		resp.Set("Content-MD5", encodeMD5(r.md5))
	}
	return resp, nil
}

// copySource finds the source, and checks its authorization: Copy Blob reads a source in its own account with the
// authorization of the request ("Copy Blob", when that is Shared Key or Microsoft Entra ID), Copy Blob From URL only one
// that is public or whose URL carries a SAS, or with x-ms-copy-source-authorization ("Copy Blob From URL").
func (c *call) copySource() (*revision, *apiError) {
	value := c.header.Get("x-ms-copy-source")
	u, perr := url.Parse(value)
	if perr != nil || u.Host == "" || len(value) > 2<<10 {
		return nil, errHeader("x-ms-copy-source", value)
	}
	target := u.EscapedPath()
	if u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	src, err := c.s.take(http.MethodGet, u.Host, target, http.Header{}, 0)
	if err != nil {
		return nil, err
	}
	src.tls = u.Scheme == "https"
	if !c.sourceAllowed(src) {
		return nil, fail(http.StatusNotFound, "CannotVerifyCopySource", "The specified resource does not exist.")
	}
	cont := c.s.container(src.container)
	if cont == nil {
		return nil, errContainerNotFound()
	}
	cont.mu.Lock()
	r := cont.entry(c.s, src.blob).find(src.query.Get("versionid"), src.query.Get("snapshot"))
	cont.mu.Unlock()
	if r == nil {
		return nil, errBlobNotFound()
	}
	cd, err := parseConditions(c.header, "x-ms-source-if-")
	if err == nil && cd.any() && cd.read(r) != nil {
		err = fail(http.StatusPreconditionFailed, "SourceConditionNotMet", "The source condition specified using HTTP conditional header(s) is not met.")
	}
	return r, err
}

func (c *call) sourceAllowed(src *request) bool {
	if src.account != c.s.opts.Account || src.op != "GetBlob" {
		return false
	}
	if c.s.opts.Anonymous {
		return true
	}
	if src.query.Get("sig") != "" {
		who, err := c.s.authenticateSAS(src)
		return err == nil && who.may(src.op, false) == nil
	}
	if v := c.header.Get("x-ms-copy-source-authorization"); v != "" {
		token, ok := strings.CutPrefix(v, "Bearer ")
		return ok && c.s.knowsToken(token)
	}
	return c.op == "CopyBlob" && c.who.kind != bySAS
}

func (c *call) snapshotBlob() (*response, *apiError) {
	cd, err := c.writing()
	if err != nil {
		return nil, err
	}
	meta, err := metadata(c.header)
	if err != nil {
		return nil, err
	}
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	e := c.c.entry(c.s, c.blob)
	if e == nil || e.current == nil {
		return nil, errBlobNotFound()
	}
	if err := cd.existing(e.current); err != nil {
		return nil, err
	}
	snap := *e.current
	snap.snapshot = c.s.stamp()
	if len(meta) > 0 {
		snap.meta = meta
	}
	e.past = append(e.past, &past{revision: &snap})
	resp := newResponse(http.StatusCreated)
	c.describe(resp, &snap)
	resp.Set("x-ms-snapshot", snap.snapshot)
	return resp, nil
}

// decodeID checks a block id: base64 of at most 64 bytes ("Put Block").
func decodeID(id string) *apiError {
	raw, err := base64.StdEncoding.DecodeString(id)
	switch {
	case err != nil || len(raw) == 0:
		return errQuery("blockid", id, "Not a valid base64 string.")
	case len(raw) > 64:
		return errOutOfRange().elem("QueryParameterName", "blockid").elem("QueryParameterValue", id)
	}
	return nil
}
