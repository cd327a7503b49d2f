package gcsblob

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// newTransport returns a transport for many parallel requests to one host. HTTP/1.1 only: one connection per
// request in flight scales, and one slow stream must not hold up the others. It may unpack control replies by itself: reads state the
// codings they accept, and then it does not.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   256, // the default of 2 would redial for each segment
		IdleConnTimeout:       30 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        64 << 10,
		WriteBufferSize:       64 << 10,
	}
}

// doer is the innermost round tripper but the transport: it tells the attempt what became of its connection.
type doer struct{ rt http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d *doer) RoundTrip(req *http.Request) (*http.Response, error) {
	if st, ok := req.Context().Value(sentKey{}).(*sent); ok {
		req = st.trace(req)
	} else {
		req = req.WithContext(req.Context()) // a copy, to be changed
	}
	if req.Body == nil || req.Body == http.NoBody {
		once(req)
	}
	return d.rt.RoundTrip(req)
}

// once keeps net/http from sending a request without a body again by itself. It does so with a GET or HEAD whose kept connection ended
// before the reply began, as often as it has such connections, and the service would see more attempts than the policy
// allows. With a body that it cannot rewind it does not; this one is empty, and by the identity coding nothing tells of it on the wire.
func once(req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return
	}
	req.Body, req.TransferEncoding = io.NopCloser(strings.NewReader("")), []string{"identity"}
}

// sent follows one attempt, to know what had happened when it failed.
type sent struct {
	entered   atomic.Bool // the request was given to the transport
	asked     atomic.Bool // the transport has told that it wants a connection,
	connected atomic.Bool // and that it has one: from here on bytes may have left
	body      *sentBody   // nil: the request has none of the caller's
	session   *session    // nil: the request is not of a resumable session

	// Written before the request is given to the transport, read when it has ended.
	token    string // it was sent with
	tokenErr error  // why there was none
}

type sentKey struct{}

// watch returns ctx with a value by which the round trippers find s.
func (s *sent) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentKey{}, s)
}

// trace returns the request with a trace that tells s about its connection.
func (s *sent) trace(req *http.Request) *http.Request {
	s.entered.Store(true)
	return req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.connected.Store(true) },
	}))
}

// certainlyNot reports whether the service cannot have seen a whole request. A transport that tells nothing of its connections
// may have had one.
func (s *sent) certainlyNot() bool {
	switch {
	case !s.entered.Load(), s.asked.Load() && !s.connected.Load():
		return true
	}
	return s.body != nil && !s.body.complete()
}

// request is one request that is not the SDK's.
type request struct {
	method, url string
	header      http.Header
	payload     string // the body, unless sent.body is
}

// send makes one request and returns the reply to it if its status is 2xx, or 308 within a session. The reply's body must be closed.
func (r *requests) send(ctx context.Context, st *sent, q request) (*http.Response, error) {
	var body io.Reader = http.NoBody
	switch {
	case st.body != nil && st.body.size > 0:
		body = st.body
	case q.payload != "":
		body = strings.NewReader(q.payload)
	}
	req, err := http.NewRequestWithContext(st.watch(ctx), q.method, q.url, body)
	if err != nil {
		return nil, r.fault(ctx, err, st)
	}
	req.GetBody = nil // a body is sent once
	if st.body != nil {
		req.ContentLength = st.body.size
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
