package fakes3

import (
	"cmp"
	"crypto/md5"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// upload is a multipart upload in progress.
type upload struct {
	id        string
	key       string
	initiated time.Time
	proto     *version // headers and metadata for the object
	alg       string   // checksum algorithm named at the start, or ""
	kind      string   // COMPOSITE or FULL_OBJECT

	mu struct {
		sync.Mutex
		parts map[int]*storedPart
	}
}

// finished remembers what a Complete made: S3 answers a repeated one again.
type finished struct {
	key string
	v   *version
}

func (c *call) createUpload() (*response, *apiError) {
	if c.knobs.RefuseChecksums != 0 && usesChecksums(c.Header) {
		return nil, fail(c.knobs.RefuseChecksums, statusCodes[c.knobs.RefuseChecksums], "checksum headers are not supported")
	}
	v, err := c.described()
	if err != nil {
		return nil, err
	}
	u := &upload{id: c.s.unique("u"), key: c.Key, initiated: c.s.Now(), proto: v}
	u.alg = requested(c.Header)
	if u.kind = strings.ToUpper(c.Header.Get("x-amz-checksum-type")); u.kind == "" {
		u.kind = "COMPOSITE"
		if u.alg == "crc64nvme" {
			u.kind = "FULL_OBJECT"
		}
	}
	if u.alg == "crc64nvme" && u.kind == "COMPOSITE" || strings.HasPrefix(u.alg, "sha") && u.kind == "FULL_OBJECT" {
		return nil, errRequest("The %s checksum type cannot be used with the %s checksum algorithm.", u.kind, u.alg)
	}
	u.mu.parts = make(map[int]*storedPart)
	c.b.mu.Lock()
	c.b.mu.uploads[u.id] = u
	c.b.mu.Unlock()

	d := newDoc("InitiateMultipartUploadResult")
	d.text("Bucket", c.Bucket)
	d.text("Key", c.Key)
	d.text("UploadId", u.id)
	resp := docResponse(d)
	if u.alg != "" {
		resp.Set("x-amz-checksum-algorithm", strings.ToUpper(u.alg))
		resp.Set("x-amz-checksum-type", u.kind)
	}
	return resp, nil
}

// upload finds the upload that the request names.
func (c *call) upload() (*upload, *apiError) {
	c.b.mu.RLock()
	defer c.b.mu.RUnlock()
	u := c.b.mu.uploads[c.UploadID]
	if u == nil || u.key != c.Key {
		return nil, errNoSuchUpload(c.UploadID)
	}
	return u, nil
}

func (c *call) uploadPart() (*response, *apiError) {
	u, err := c.upload()
	if err != nil {
		return nil, err
	}
	n, convErr := strconv.Atoi(c.Query.Get("partNumber"))
	if convErr != nil || n < 1 || n > c.s.opts.MaxParts {
		return nil, errArgument("Part number must be an integer between 1 and %d, inclusive", c.s.opts.MaxParts)
	}
	b, err := c.readBody(c.s.opts.MaxObject)
	if err != nil {
		return nil, err
	}
	p := &storedPart{number: n, data: b.data, md5: b.md5, etag: c.s.etagOf(b.md5), sums: b.sums, modTime: c.s.Now()}
	if u.alg != "" && p.sums[u.alg] == "" {
		if len(p.sums) > 0 {
			return nil, errRequest("Checksum Type mismatch occurred, expected checksum Type: %s", u.alg)
		}
		p.sums[u.alg] = ropeSum(u.alg, rope{p.data})
	}
	// The upload may have been completed or aborted while the body came in.
	if _, err := c.upload(); err != nil {
		return nil, err
	}
	u.mu.Lock()
	u.mu.parts[n] = p
	u.mu.Unlock()
	resp := newResponse(http.StatusOK)
	resp.Set("ETag", c.ETagOf(p.etag))
	for alg, v := range p.sums {
		resp.Set(checksumHeader(alg), v)
	}
	return resp, nil
}

func (c *call) abortUpload() (*response, *apiError) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	u := c.b.mu.uploads[c.UploadID]
	if u == nil || u.key != c.Key {
		return nil, errNoSuchUpload(c.UploadID)
	}
	delete(c.b.mu.uploads, u.id)
	return newResponse(http.StatusNoContent), nil
}

func (c *call) completeUpload() (*response, *apiError) {
	check, err := c.writeCondition()
	if err != nil {
		return nil, err
	}
	b, err := c.readBody(maxDocument)
	if err != nil {
		return nil, err
	}
	u, err := c.upload()
	if err != nil {
		return c.completeAgain(check, err)
	}
	var req xmlComplete
	if err := parseXML(b.data, &req); err != nil {
		return nil, err
	}
	parts, err := c.chosenParts(u, req.Parts)
	if err != nil {
		return nil, err
	}
	v, err := c.assemble(u, parts)
	if err != nil {
		return nil, err
	}
	switch err := c.finishUpload(u, v, check); {
	case err == nil:
		return c.completed(v), nil
	case err.code == "NoSuchUpload":
		return c.completeAgain(check, err)
	default:
		return nil, err
	}
}

// finishUpload makes the object visible and the upload go, in one step: of
// two Completes, or a Complete and an Abort, one finds no upload.
func (c *call) finishUpload(u *upload, v *version, check func(*version) *apiError) *apiError {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.b.mu.uploads[u.id] != u {
		return errNoSuchUpload(u.id)
	}
	if check != nil {
		if err := check(c.b.current(u.key)); err != nil {
			return err // the parts stay: the client may try again or abort
		}
	}
	c.b.put(c.s, v)
	delete(c.b.mu.uploads, u.id)
	c.b.mu.done[u.id] = &finished{key: u.key, v: v}
	return nil
}

// completeAgain answers for an upload that is no longer there.
func (c *call) completeAgain(check func(*version) *apiError, missing *apiError) (*response, *apiError) {
	c.b.mu.RLock()
	f := c.b.mu.done[c.UploadID]
	cur := c.b.current(c.Key)
	c.b.mu.RUnlock()
	if f == nil || f.key != c.Key || c.knobs.ForgetUploads {
		return nil, missing
	}
	if check != nil {
		if err := check(cur); err != nil {
			return nil, err
		}
	}
	return c.completed(f.v), nil
}

func (c *call) completed(v *version) *response {
	d := newDoc("CompleteMultipartUploadResult")
	d.text("Location", "http://"+c.Host+"/"+c.Bucket+"/"+uriEncode(v.key))
	d.text("Bucket", c.Bucket)
	d.text("Key", v.key)
	d.text("ETag", c.ETagOf(v.etag))
	for alg, sum := range v.sums {
		d.text(checksumElement(alg), sum)
	}
	if len(v.sums) > 0 {
		d.text("ChecksumType", v.sumType)
	}
	resp := docResponse(d)
	c.setVersion(resp, v)
	return resp
}

// chosenParts checks the client's list of parts against those uploaded.
func (c *call) chosenParts(u *upload, list []xmlPart) ([]*storedPart, *apiError) {
	if len(list) == 0 && !c.knobs.AllowNoParts {
		return nil, errMalformedXML()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	parts := make([]*storedPart, 0, len(list))
	for i, x := range list {
		if i > 0 && x.PartNumber <= list[i-1].PartNumber {
			return nil, fail(http.StatusBadRequest, "InvalidPartOrder", "The list of parts was not in ascending order. Parts must be ordered by part number.")
		}
		p := u.mu.parts[x.PartNumber]
		if p == nil || quoted(x.ETag) != p.etag {
			return nil, errInvalidPart(x)
		}
		for alg, have := range p.sums {
			want := x.sum(alg)
			if want == "" && alg == u.alg && u.kind == "COMPOSITE" {
				return nil, errRequest("The upload was created using a %s checksum. The complete request must include the checksum for each part. It was missing for part %d in the request.", alg, x.PartNumber)
			}
			if want != "" && want != have {
				return nil, errInvalidPart(x)
			}
		}
		parts = append(parts, p)
	}
	return parts, c.checkSizes(parts)
}

func errInvalidPart(x xmlPart) *apiError {
	return fail(http.StatusBadRequest, "InvalidPart", "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.").
		elem("PartNumber", itoa(x.PartNumber)).elem("ETag", x.ETag)
}

func (c *call) checkSizes(parts []*storedPart) *apiError {
	for i, p := range parts {
		n, last := int64(len(p.data)), i == len(parts)-1
		if !last && n < c.s.opts.MinPartSize {
			return fail(http.StatusBadRequest, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size").
				elem("PartNumber", itoa(p.number)).elem("ProposedSize", itoa64(n)).elem("MinSizeAllowed", itoa64(c.s.opts.MinPartSize))
		}
		first := int64(len(parts[0].data))
		if c.knobs.EqualParts && (!last && n != first || last && n > first) {
			return fail(http.StatusBadRequest, "InvalidPart", "All non-trailing parts must have the same length.")
		}
	}
	return nil
}

// assemble makes the object of the parts, whose bytes it shares.
func (c *call) assemble(u *upload, parts []*storedPart) (*version, *apiError) {
	v := *u.proto
	v.modTime = c.s.Now()
	var data rope
	var off int64
	for _, p := range parts {
		q := *p
		q.off = off
		v.parts = append(v.parts, &q)
		data = append(data, p.data)
		off += int64(len(p.data))
	}
	v.fill(data)
	v.etag = c.s.etagOfParts(parts)
	if want := c.Header.Get("x-amz-mp-object-size"); want != "" && want != itoa64(v.size) {
		return nil, errRequest("The provided 'x-amz-mp-object-size' header value %s does not match what was computed: %d", want, v.size)
	}
	return &v, c.sumParts(u, &v, parts)
}

func (c *call) sumParts(u *upload, v *version, parts []*storedPart) *apiError {
	alg, want := announced(c.Header)
	switch {
	case u.alg != "" && u.kind == "COMPOSITE":
		v.sumType = "COMPOSITE"
		v.sums = map[string]string{u.alg: composite(u.alg, parts)}
	case u.alg != "" || want != "":
		if u.alg != "" {
			alg = u.alg
		}
		v.sumType = "FULL_OBJECT"
		v.sums = map[string]string{alg: ropeSum(alg, v.data)}
	}
	if want != "" && v.sums[alg] != want && v.sums[alg] != want+"-"+itoa(len(parts)) {
		return fail(http.StatusBadRequest, "BadDigest", "The %s you specified did not match the calculated checksum.", alg)
	}
	return nil
}

// sortedParts are the uploaded parts by number.
func (u *upload) sortedParts() []*storedPart {
	u.mu.Lock()
	defer u.mu.Unlock()
	parts := make([]*storedPart, 0, len(u.mu.parts))
	for _, p := range u.mu.parts {
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b *storedPart) int { return cmp.Compare(a.number, b.number) })
	return parts
}

func md5Of(r rope, skip bool) []byte {
	if skip {
		return nil
	}
	h := md5.New()
	for _, b := range r {
		h.Write(b)
	}
	return h.Sum(nil)
}
