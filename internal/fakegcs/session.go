package fakegcs

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// quantum is what chunks other than the last are a multiple of, and what the
// server rounds down to when it persists less ("Perform resumable uploads").
const quantum = 256 << 10

// statusClosed answers the cancelling of a session, and what comes after.
const statusClosed = 499

// session is a resumable upload. What its writer said at the start is
// immutable; no lock is held while a body is read.
type session struct {
	id, bucket, key string
	started         time.Time
	attrs           attrs
	cond            condition
	crc, md5        string // as the metadata says, "" for not

	mu struct {
		sync.Mutex
		total   int64 // -1 while unknown
		data    fakehttp.Rope
		size    int64
		done    *object   // the finished object
		verdict *apiError // why the session is over without one
	}
}

func (s *Server) session(id string) *session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.sessions[id]
}

// startUpload begins a session. Its conditions are decided now and again when
// it finishes: "Request preconditions" lets the first refuse early, and only
// the second is atomic with the write.
func (c *call) startUpload() (*fakehttp.Answer, *apiError) {
	cond, err := conditionOf(c.Query, "if")
	if err != nil {
		return nil, err
	}
	body, err := c.readBody(maxDocument)
	if err != nil {
		return nil, err
	}
	r, err := parseResource(body)
	if err != nil {
		return nil, err
	}
	if r.ContentType == "" {
		r.ContentType = c.Header.Get("X-Upload-Content-Type")
	}
	o, err := c.newObject(r)
	if err != nil {
		return nil, err
	}
	total, err := announcedLength(c.Header, c.s.opts.MaxObject)
	if err != nil {
		return nil, err
	}
	cond = c.obeyed(cond)
	if err := cond.check(c.b.find(o.name, 0)); err != nil {
		return nil, err
	}
	u := &session{
		id: fmt.Sprintf("fakegcs-upload-%012d", c.s.uploads.Add(1)), bucket: c.Bucket, key: o.name, started: c.s.Now(),
		attrs: o.attrs, cond: cond, crc: r.CRC32C, md5: r.MD5,
	}
	u.mu.total = total
	c.Entry.Key, c.Entry.UploadID = u.key, u.id
	c.s.mu.Lock()
	c.s.mu.sessions[u.id] = u
	c.s.mu.Unlock()
	scheme := "http://"
	if c.HTTP.TLS != nil {
		scheme = "https://"
	}
	a := fakehttp.NewAnswer(http.StatusOK)
	a.Set("Location", scheme+c.Host+uploadRoot+"/"+url.PathEscape(c.Bucket)+"/o?uploadType=resumable&name="+
		url.QueryEscape(u.key)+"&upload_id="+u.id)
	a.Set("X-GUploader-UploadID", u.id)
	return a, nil
}

// announcedLength is X-Upload-Content-Length, -1 without one.
func announcedLength(h http.Header, limit int64) (int64, *apiError) {
	v := h.Get("X-Upload-Content-Length")
	if v == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	switch {
	case err != nil || n < 0:
		return 0, errInvalid("Invalid X-Upload-Content-Length: %q", v)
	case n > limit:
		return 0, fail(http.StatusRequestEntityTooLarge, "uploadTooLarge", "EntityTooLarge", "The object exceeds the maximum size of %d bytes.", limit)
	}
	return n, nil
}

// chunk is a Content-Range of a request to a session.
type chunk struct {
	query      bool  // "bytes */...": no content
	first, end int64 // end -1: as much as comes
	total      int64 // -1: unknown
	open       bool  // the content ends with the body, whatever its length
}

// parseChunk understands the forms of "Perform resumable uploads": "bytes
// first-last/total", with "*" for a total that is not known yet; "bytes */total"
// and "bytes */*", with an empty body; without the header the body is all of
// the content. The form "first-*" is what client libraries send for a stream.
func parseChunk(h http.Header) (chunk, bool) {
	value := h.Get("Content-Range")
	if value == "" {
		return chunk{end: -1, total: -1, open: true}, true
	}
	spec, ok := strings.CutPrefix(value, "bytes ")
	span, total, slash := strings.Cut(spec, "/")
	ch := chunk{total: -1, end: -1}
	if !ok || !slash || total != "*" && !parseNumber(total, &ch.total) {
		return ch, false
	}
	if span == "*" {
		ch.query = true
		return ch, true
	}
	first, last, dash := strings.Cut(span, "-")
	if !dash || !parseNumber(first, &ch.first) {
		return ch, false
	}
	if last == "*" {
		ch.open = true
		return ch, true
	}
	if !parseNumber(last, &ch.end) || ch.end < ch.first {
		return ch, false
	}
	ch.end++
	return ch, ch.total < 0 || ch.end <= ch.total
}

func parseNumber(digits string, to *int64) bool {
	n, err := strconv.ParseUint(digits, 10, 63) // unlike ParseInt it takes no sign
	*to = int64(n)
	return err == nil
}

// putChunk takes content, or a query, for a session.
func (c *call) putChunk() (*fakehttp.Answer, *apiError) {
	u := c.s.session(c.UploadID)
	if u == nil || u.bucket != c.Bucket {
		return nil, errNoSession()
	}
	ch, ok := parseChunk(c.Header)
	if !ok {
		return nil, errInvalid("Failed to parse Content-Range header: %q", c.Header.Get("Content-Range"))
	}
	if n := c.HTTP.ContentLength; ch.query && n > 0 {
		return nil, errInvalid("The Content-Range header %q does not go with a body of %d bytes.", c.Header.Get("Content-Range"), n)
	}
	data, readErr := c.ReadBody(c.s.opts.MaxObject)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.over(c.s); err != nil {
		return nil, err
	}
	if u.mu.done != nil { // whatever came: a finished session answers with its object
		return c.document(c.resource(u.bucket, u.mu.done))
	}
	switch {
	case ch.query:
		// "bytes */total" says that there is no more to come; anything but
		// the number of bytes that are here is a question.
		if ch.total == u.mu.size && (u.mu.total < 0 || u.mu.total == ch.total) {
			return c.finish(u)
		}
		return c.incomplete(u), nil
	case ch.first > u.mu.size:
		// Nowhere documented; this is what the service says (googleapis/google-cloud-go #1507).
		err := fail(http.StatusServiceUnavailable, "", "", "Invalid request.  According to the Content-Range header, the upload offset is %d byte(s), which exceeds already uploaded size of %d byte(s).", ch.first, u.mu.size)
		err.plain = true
		return nil, err
	}
	return c.accept(u, ch, data, readErr != nil)
}

// accept persists what is new of a chunk. The caller holds the session's lock.
func (c *call) accept(u *session, ch chunk, data []byte, cut bool) (*fakehttp.Answer, *apiError) {
	end := ch.first + int64(len(data))
	if !cut && ch.end >= 0 && end != ch.end {
		return nil, errInvalid("The Content-Range header does not agree with a body of %d bytes.", len(data))
	}
	if ch.open && !cut {
		ch.total = end
	}
	if ch.total >= 0 && u.mu.total >= 0 && ch.total != u.mu.total || u.mu.total >= 0 && end > u.mu.total {
		return nil, errInvalid("The upload was announced with %d bytes.", u.mu.total)
	}
	if end > c.s.opts.MaxObject {
		return nil, fail(http.StatusRequestEntityTooLarge, "uploadTooLarge", "EntityTooLarge", "The object exceeds the maximum size of %d bytes.", c.s.opts.MaxObject)
	}
	total := max(ch.total, u.mu.total)
	// "Cloud Storage ignores any bytes you send at an offset that Cloud
	// Storage has already persisted."
	fresh := data[min(int64(len(data)), u.mu.size-ch.first):]
	keep := c.kept(int64(len(fresh)), cut)
	last := !cut && total == end && keep == int64(len(fresh))
	if !last {
		keep = max(0, (u.mu.size+keep)/quantum*quantum-u.mu.size)
	}
	if keep > 0 {
		u.mu.data = append(u.mu.data, fresh[:keep])
		u.mu.size += keep
	}
	switch {
	case cut:
		return nil, fail(http.StatusServiceUnavailable, "uploadBrokenConnection", "IncompleteBody", "The request body ended early.")
	case last && u.mu.size == total:
		return c.finish(u)
	}
	return c.incomplete(u), nil
}

// kept is how many of n new bytes the knobs let be persisted.
func (c *call) kept(n int64, cut bool) int64 {
	if cut && c.knobs.DropCut {
		return 0
	}
	if c.knobs.Keep != nil {
		n = min(n, max(0, c.knobs.Keep(c.Request, n)))
	}
	if k, ok := c.Extra.(Keep); ok {
		n = min(n, int64(k))
	}
	return n
}

// incomplete says how much has been persisted: nothing, without a Range.
func (c *call) incomplete(u *session) *fakehttp.Answer {
	a := fakehttp.NewAnswer(http.StatusPermanentRedirect)
	if c.Header.Get("X-Guploader-No-308") == "yes" {
		// For clients that take 308 for a redirect (google.golang.org/api asks for it).
		a.Status = http.StatusOK
		a.Set("X-HTTP-Status-Code-Override", "308")
	}
	if u.mu.size > 0 {
		a.Set("Range", fmt.Sprintf("bytes=0-%d", u.mu.size-1))
	}
	a.Set("X-GUploader-UploadID", u.id)
	return a
}

// finish makes the object. When it may not be made the session is over: the
// same refusal answers everything that comes. The caller holds the lock.
func (c *call) finish(u *session) (*fakehttp.Answer, *apiError) {
	o := &object{name: u.key, attrs: u.attrs}
	o.attrs.meta = c.finalMetadata(u)
	o.fill(u.mu.data)
	err := checkSums(o, u.crc, u.md5)
	if err == nil {
		err = checkHashHeader(o, c.Header)
	}
	if err == nil {
		err = checkMetadata(o.attrs.meta)
	}
	if err == nil {
		err = c.b.commit(c.s, o, u.cond.check)
	}
	u.mu.data = nil
	if err != nil {
		u.mu.verdict = err
		return nil, err
	}
	u.mu.done = o
	return c.document(c.resource(u.bucket, o))
}

// finalMetadata adds the X-Goog-Meta- headers of the last request ("Resumable
// uploads", considerations).
func (c *call) finalMetadata(u *session) map[string]string {
	out := map[string]string{}
	for k, v := range u.attrs.meta {
		out[k] = v
	}
	for name, values := range c.Header {
		if k, ok := strings.CutPrefix(name, "X-Goog-Meta-"); ok && !c.knobs.LosesMetadata {
			out[strings.ToLower(k)] = strings.Join(values, ",")
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// over is why a session cannot be used any more, nil while it can. The caller
// holds the lock.
func (u *session) over(s *Server) *apiError {
	if u.mu.verdict != nil {
		return u.mu.verdict
	}
	if u.mu.done == nil && !s.Now().Before(u.started.Add(s.opts.SessionLife)) {
		return errNoSession() // 404 after a week, 410 within it ("Perform resumable uploads", Handle errors)
	}
	return nil
}

func errNoSession() *apiError {
	return fail(http.StatusNotFound, "notFound", "NoSuchUpload", "The requested upload session was not found.")
}

func errGone() *apiError {
	return fail(http.StatusGone, "gone", "NoSuchUpload", "The requested upload session is no longer available.")
}

// cancelUpload ends a session. A finished one stays as it is.
func (c *call) cancelUpload() (*fakehttp.Answer, *apiError) {
	u := c.s.session(c.UploadID)
	if u == nil || u.bucket != c.Bucket {
		return nil, errNoSession()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.over(c.s); err != nil {
		return nil, err
	}
	if u.mu.done != nil {
		return nil, errGone()
	}
	u.mu.data = nil
	u.mu.verdict = fail(statusClosed, "clientClosedRequest", "ClientClosedRequest", "The upload was cancelled.")
	return fakehttp.NewAnswer(statusClosed), nil
}
