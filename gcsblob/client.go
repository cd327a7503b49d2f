package gcsblob

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/wholeblob/wholeblob/internal/wire"
)

// doer is the innermost round tripper but the transport: it tells the attempt what became of its connection.
type doer struct{ rt http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d *doer) RoundTrip(req *http.Request) (*http.Response, error) {
	if st, ok := req.Context().Value(sentKey{}).(*sent); ok {
		st.Enter()
		req = req.WithContext(st.Traced(req.Context()))
	} else {
		req = req.WithContext(req.Context()) // a copy, to be changed
	}
	if req.Body == nil || req.Body == http.NoBody {
		wire.Once(req)
	}
	return d.rt.RoundTrip(req)
}

// sent follows one attempt, to know what had happened when it failed.
type sent struct {
	wire.Sent
	session *session // nil: the request is not of a resumable session

	// Written before the request is given to the transport, read when it has ended.
	token    string // it was sent with
	tokenErr error  // why there was none
}

type sentKey struct{}

// watch returns ctx with a value by which the round trippers find s.
func (s *sent) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentKey{}, s)
}

// request is one request that is not the SDK's.
type request struct {
	method, url string
	header      http.Header
	payload     string // the body, unless sent.Body is
}

// send makes one request and returns the reply to it if its status is 2xx, or 308 within a session. The reply's body must be closed.
func (r *requests) send(ctx context.Context, st *sent, q request) (*http.Response, error) {
	var body io.Reader = http.NoBody
	switch {
	case st.Body != nil && st.Body.Size() > 0:
		body = st.Body
	case q.payload != "":
		body = strings.NewReader(q.payload)
	}
	req, err := http.NewRequestWithContext(st.watch(ctx), q.method, q.url, body)
	if err != nil {
		return nil, r.fault(ctx, err, st)
	}
	req.GetBody = nil // a body is sent once
	if st.Body != nil {
		req.ContentLength = st.Body.Size()
	}
	if q.header != nil {
		req.Header = q.header
	}
	if q.method == http.MethodDelete {
		req.TransferEncoding = []string{"identity"} // by this net/http states the length 0
	}
	res, err := r.rt.RoundTrip(req)
	if err != nil {
		return nil, r.fault(ctx, err, st)
	}
	if res.StatusCode/100 == 2 || st.session != nil && res.StatusCode == http.StatusPermanentRedirect {
		return res, nil
	}
	defer discard(res)
	return nil, r.fault(ctx, replyError(res), st)
}

// discard reads what is left of a short reply, so that its connection can be used again.
func discard(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	_ = res.Body.Close()
}
