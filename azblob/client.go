package azblob

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	sdk "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// newTransport returns a transport for many parallel requests to one host, each on a connection of its own.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial(&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}),
		MaxIdleConnsPerHost:   256, // the default of 2 would redial for each block
		IdleConnTimeout:       30 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // a transport that unpacks loses the stored length
		ReadBufferSize:        64 << 10,
		WriteBufferSize:       64 << 10,
	}
}

// clientOptions are those of the SDK's client: no retries, no question before a body is sent, requests through do. Each request is signed
// when it is sent, so that a retry of an old block has a fresh date.
func (o *Options) clientOptions(do *doer) *container.ClientOptions {
	return &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{
			Retry:           policy.RetryOptions{MaxRetries: -1}, // the engine has the only loop
			Transport:       do,
			PerCallPolicies: []policy.Policy{stored{o.APIVersion}},
		},
		ExpectContinueBehavior: sdk.ExpectContinueOptions{Mode: sdk.ExpectContinueModeOff},
	}
}

// stored is the policy of asking for bytes as they are stored: without it net/http, in a transport that the caller brought, would offer
// gzip, and unpack what a proxy has packed.
type stored struct{ version string }

// Do implements policy.Policy.
func (p stored) Do(req *policy.Request) (*http.Response, error) {
	h := req.Raw().Header
	h.Set("Accept-Encoding", "identity")
	if p.version != "" {
		h["x-ms-version"] = []string{p.version} // spelled as the SDK does, which does not canonicalize it
	}
	return req.Next()
}

// doer is the SDK's HTTP client: one round trip, no redirects. (A redirect would be sent with a signature
// for another host.)
type doer struct {
	rt      http.RoundTripper
	secrets []string // what no error may show
}

// Do implements policy.Transporter.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	st, ok := req.Context().Value(sentKey{}).(*sent)
	if ok {
		req = st.trace(req)
	}
	req.GetBody = nil // or net/http would send it again by itself
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		once(req)
	case ok && st.body != nil && req.ContentLength == st.body.size:
		req.Body = wireBody{st.body, req.Body}
	}
	resp, err := d.rt.RoundTrip(req)
	if resp == nil {
		return nil, err
	}
	// A challenge makes the SDK send the request once more inside of one call. Without one it only forgets the token.
	resp.Header.Del("WWW-Authenticate")
	resp.Request = shown(req)
	if resp.StatusCode >= 400 && resp.Body != nil {
		resp.Body = d.told(resp.Body)
	}
	if !ok {
		return resp, err
	}
	st.status, st.header, st.reply = resp.StatusCode, resp.Header, resp.Body
	if st.batch != nil && err == nil && resp.StatusCode == http.StatusAccepted {
		return nil, st.batch.read(resp)
	}
	return resp, err
}

// maxTold bounds how much is read of what a service says with an error.
const maxTold = 64 << 10

// told returns the body of an error without secrets: the SDK's error shows it, and a service may repeat the address it was sent.
func (d *doer) told(body io.ReadCloser) io.ReadCloser {
	text, _ := io.ReadAll(io.LimitReader(body, maxTold)) // what came is enough: the code is in a header
	_ = body.Close()
	return io.NopCloser(strings.NewReader(conceal(string(text), d.secrets)))
}

// shown returns what errors may keep of a request: neither the signature in the query of a SAS, nor the header with a signature or token.
func shown(req *http.Request) *http.Request {
	u := *req.URL
	if q := u.Query(); q.Has("sig") {
		q.Set("sig", "redacted")
		u.RawQuery = q.Encode()
	}
	h := req.Header.Clone()
	h.Del("Authorization")
	return &http.Request{Method: req.Method, URL: &u, Host: req.Host, Header: h, Proto: req.Proto, ProtoMajor: req.ProtoMajor, ProtoMinor: req.ProtoMinor}
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
	batch     *batch      // nil: it is none

	token  string      // it was sent with
	begun  time.Time   // by the local clock
	status int         // of the reply; 0: there was none
	header http.Header // of the reply
	reply  io.Closer   // its body
}

type sentKey struct{}

// watch returns ctx with a value by which the HTTP client finds s. (A trace of connections on ctx itself would also see those of
// whoever provides credentials.)
func (s *sent) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentKey{}, s)
}

// trace returns the request with a trace that tells s about its connection.
func (s *sent) trace(req *http.Request) *http.Request {
	s.entered.Store(true)
	s.begun = time.Now()
	s.token, _ = strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
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
