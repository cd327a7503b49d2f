package gcsblob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// session is one resumable session. Its URI is as good as a password ("Resumable uploads", Session URIs), so it stays in here: an Upload
// has the id, a digest of it, which errors and logs may show.
type session struct {
	id, uri string
	begun   time.Time
	sum     transfer.Sum // of the whole object, once a commit has stated it
}

// sessionLife is how long the service keeps a session ("Resumable uploads").
const sessionLife = 7 * 24 * time.Hour

// sessions are those of this Store. One is forgotten when it has ended, or, if nobody knows whether it has, when the
// service has forgotten it too.
type sessions struct {
	mu   sync.Mutex
	open map[string]*session
}

func (s *sessions) add(uri string) *session {
	digest := sha256.Sum256([]byte(uri))
	ses := &session{id: hex.EncodeToString(digest[:8]), uri: uri, begun: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[string]*session)
	}
	for id, old := range s.open {
		if time.Since(old.begun) > sessionLife {
			delete(s.open, id)
		}
	}
	s.open[ses.id] = ses
	return ses
}

// get returns a copy of a session, to which a checksum may be added.
func (s *sessions) get(id string, sum transfer.Sum) (*session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses, ok := s.open[id]
	if !ok {
		return nil, false
	}
	if sum.Has {
		ses.sum = sum
	}
	c := *ses
	return &c, true
}

func (s *sessions) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// redact returns err without the session's secrets. Error pages repeat the address they are the answer to, the service's name of the
// request is the secret part of it, and a transport of the caller's may say where it went.
func (s *session) redact(err error) error {
	var g *googleapi.Error
	if !errors.As(err, &g) {
		if s.shown(err.Error()) {
			return errors.New("the request failed with an error that shows the session's address")
		}
		return err
	}
	c := &googleapi.Error{Code: g.Code, Header: make(http.Header)}
	if !s.shown(g.Message) {
		c.Message = g.Message
	}
	if v := g.Header.Get("Retry-After"); v != "" {
		c.Header.Set("Retry-After", v)
	}
	if reason := code(g); reason != "" && !s.shown(reason) {
		c.Errors = []googleapi.ErrorItem{{Reason: reason, Message: c.Message}}
	}
	return c
}

// shown reports whether text holds a part of the session's address that nobody else's has.
func (s *session) shown(text string) bool {
	u, err := url.Parse(s.uri)
	if err != nil {
		return true
	}
	id := u.Query().Get("upload_id")
	return strings.Contains(text, u.RawQuery) || id != "" && strings.Contains(text, id)
}

// Begin implements transfer.Requests.
func (r *requests) Begin(ctx context.Context, req transfer.BeginRequest) (transfer.Upload, error) {
	st := &sent{}
	res, err := r.send(ctx, st, request{
		method: http.MethodPost, url: r.insertURL("resumable", req.Key, req.Cond),
		header: http.Header{
			"Content-Type":            {"application/json; charset=UTF-8"},
			"X-Upload-Content-Type":   {req.ContentType},
			"X-Upload-Content-Length": {strconv.FormatInt(req.Size, 10)},
		},
		payload: resource(req.Key, req.Meta, transfer.Sum{}),
	})
	if err != nil {
		return transfer.Upload{}, onKey(req.Cond, err)
	}
	defer discard(res)
	uri, err := r.sessionURI(res.Header.Get("Location"))
	if err != nil {
		return transfer.Upload{}, &blob.Error{Kind: blob.ErrUnavailable, Status: res.StatusCode, Err: err}
	}
	return transfer.Upload{Key: req.Key, ID: r.sessions.add(uri).id}, nil
}

// sessionURI returns the address of a new session. The token goes there too, so it must be the service's own; and servers that
// run behind another name or port than they know, as in containers, are met where they were met before.
func (r *requests) sessionURI(location string) (string, error) {
	u, err := url.Parse(location)
	if err != nil || location == "" || u.RawQuery == "" {
		return "", errors.New("a resumable session began without an address of its own")
	}
	if r.google {
		if host := u.Hostname(); u.Scheme != "https" || !strings.HasSuffix(host, ".googleapis.com") {
			return "", errors.New("a resumable session began on a host that is not Google's")
		}
		return u.String(), nil
	}
	root, err := url.Parse(r.root)
	if err != nil {
		return "", err
	}
	u.Scheme, u.Host, u.User, u.Fragment = root.Scheme, root.Host, nil, ""
	return u.String(), nil
}

// inSession makes one request of a session. contentRange is "" for its cancellation.
func (r *requests) inSession(ctx context.Context, st *sent, method, contentRange string, h http.Header) (*http.Response, error) {
	if h == nil {
		h = make(http.Header)
	}
	if contentRange != "" {
		h.Set("Content-Range", contentRange)
	}
	return r.send(ctx, st, request{method: method, url: st.session.uri, header: h})
}

func noSession() error {
	return &blob.Error{Kind: blob.ErrNotFound, Outcome: blob.NotApplied, Err: errNoSession}
}

// Part implements transfer.Requests. A chunk states the total, so that no chunk but the last one can make the object.
func (r *requests) Part(ctx context.Context, up transfer.Upload, p transfer.PartRequest) (transfer.Part, error) {
	ses, ok := r.sessions.get(up.ID, transfer.Sum{})
	if !ok {
		return transfer.Part{}, noSession()
	}
	st := &sent{Sent: wire.Sent{Body: newBody("", p.Body(), p.Size, "")}, session: ses}
	defer st.Body.LetGo()
	res, err := r.inSession(ctx, st, http.MethodPut, chunkRange(p), nil)
	if err != nil {
		return transfer.Part{}, err
	}
	defer discard(res)
	if res.StatusCode != http.StatusPermanentRedirect {
		return transfer.Part{}, &blob.Error{Kind: blob.ErrCorrupt, Status: res.StatusCode,
			Err: fmt.Errorf("the object was made of %d bytes, it has %d", p.Off+p.Size, p.Total)}
	}
	received, err := receivedOf(res.Header, p.Off+p.Size)
	return transfer.Part{Number: p.Number, Size: p.Size, Received: received}, err
}

func chunkRange(p transfer.PartRequest) string {
	if p.Size == 0 {
		return fmt.Sprintf("bytes */%d", p.Total)
	}
	return fmt.Sprintf("bytes %d-%d/%d", p.Off, p.Off+p.Size-1, p.Total)
}

// receivedOf reads how much a session has, at most most bytes. No Range means nothing: "Perform resumable uploads", on the status
// check, says so, of a reply that is a 308.
func receivedOf(h http.Header, most int64) (int64, error) {
	v := h.Get("Range")
	if v == "" {
		return 0, nil
	}
	last, ok := strings.CutPrefix(v, "bytes=0-")
	n, ok2 := wire.Number(last)
	if !ok || !ok2 || n+1 > most {
		return 0, &blob.Error{Kind: blob.ErrCorrupt, Status: http.StatusPermanentRedirect, Outcome: blob.NotApplied,
			Err: fmt.Errorf("the session says it has %q of %d bytes sent", v, most)}
	}
	return n + 1, nil
}

// Commit implements transfer.Requests: the last chunk. The checksum goes with it ("Data validation and change detection": a resumable
// upload takes it on its final request, in X-Goog-Hash).
func (r *requests) Commit(ctx context.Context, up transfer.Upload, req transfer.CommitRequest) (transfer.Written, error) {
	ses, ok := r.sessions.get(up.ID, req.Sum)
	if !ok {
		return transfer.Written{}, noSession()
	}
	h := make(http.Header)
	if req.Sum.Has {
		h.Set("X-Goog-Hash", "crc32c="+formatSum(req.Sum.CRC32C))
	}
	st := &sent{Sent: wire.Sent{Body: newBody("", req.Last.Body(), req.Last.Size, "")}, session: ses}
	defer st.Body.LetGo()
	res, err := r.inSession(ctx, st, http.MethodPut, chunkRange(req.Last), h)
	if err != nil {
		return transfer.Written{}, badSum(req.Sum.Has, r.ended(up, onCommit(req.Cond, err)))
	}
	if res.StatusCode == http.StatusPermanentRedirect {
		defer discard(res)
		return transfer.Written{}, &blob.Error{Kind: blob.ErrUnavailable, Status: res.StatusCode, Outcome: blob.NotApplied,
			Err: errors.New("the service has not kept all of the last chunk")}
	}
	done, err := written(res, st, up.Key, req.Size, req.Sum)
	if err == nil {
		r.sessions.drop(up.ID)
	}
	return done, err
}

// onCommit is onKey, but for the session that is gone: that is no word about the key.
func onCommit(c blob.Condition, err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return err
	}
	return onKey(c, err)
}

// ended forgets a session that the service has none of any more.
func (r *requests) ended(up transfer.Upload, err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		r.sessions.drop(up.ID)
	}
	return err
}

// Progress implements transfer.Requests: the status check of "Perform resumable uploads". If all bytes are there it makes the object, as
// the last chunk would have.
func (r *requests) Progress(ctx context.Context, up transfer.Upload, total int64) (transfer.Progress, error) {
	ses, ok := r.sessions.get(up.ID, transfer.Sum{})
	if !ok {
		return transfer.Progress{}, noSession()
	}
	st := &sent{session: ses}
	h := make(http.Header)
	if ses.sum.Has {
		h.Set("X-Goog-Hash", "crc32c="+formatSum(ses.sum.CRC32C))
	}
	res, err := r.inSession(ctx, st, http.MethodPut, fmt.Sprintf("bytes */%d", total), h)
	if err != nil {
		return transfer.Progress{}, r.ended(up, err)
	}
	if res.StatusCode == http.StatusPermanentRedirect {
		defer discard(res)
		received, err := receivedOf(res.Header, total)
		return transfer.Progress{Received: received}, err
	}
	done, err := written(res, st, up.Key, total, ses.sum)
	if err != nil {
		return transfer.Progress{}, err
	}
	r.sessions.drop(up.ID)
	return transfer.Progress{Received: total, Done: true, Written: done}, nil
}

// Abort implements transfer.Requests. A cancelled session answers 499 ("Perform resumable uploads", Cancel an upload). One whose last
// chunk was refused for its condition is over, and has nothing to say but that.
func (r *requests) Abort(ctx context.Context, up transfer.Upload) error {
	ses, ok := r.sessions.get(up.ID, transfer.Sum{})
	if !ok {
		return nil
	}
	st := &sent{session: ses}
	res, err := r.inSession(ctx, st, http.MethodDelete, "", nil)
	if err == nil {
		discard(res)
		r.sessions.drop(up.ID)
		return nil
	}
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrPrecondition) {
		r.sessions.drop(up.ID)
		return nil
	}
	return err
}

// Uploads implements transfer.Requests. Sessions cannot be listed: the engine never asks.
func (r *requests) Uploads(context.Context, string, string) (transfer.UploadPage, error) {
	return transfer.UploadPage{}, unsupported()
}

func unsupported() error {
	return &blob.Error{Kind: blob.ErrUnsupported, Outcome: blob.NotApplied}
}
