package azblob

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	sdk "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/wholeblob/wholeblob/internal/wire"
)

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
	tokens  *tokens  // nil: none are sent
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
		wire.Once(req)
	case ok && st.Body != nil && req.ContentLength == st.Body.Size():
		st.Body.Carry(req)
	}
	resp, err := d.rt.RoundTrip(req)
	if resp == nil {
		return nil, err
	}
	// A challenge makes the SDK send the request once more inside of one call. Without one it only forgets the token.
	resp.Header.Del("WWW-Authenticate")
	resp.Request = d.shown(req)
	if resp.StatusCode >= 300 && resp.Body != nil {
		resp.Body = d.told(resp.Body)
	}
	if !ok {
		return resp, err
	}
	st.status, st.header, st.reply = resp.StatusCode, resp.Header, resp.Body
	// Before the SDK's policy hears of it: that asks at once, perhaps for another request, and would get the same token once more.
	st.renew = resp.StatusCode == http.StatusUnauthorized && d.tokens.expired(strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
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

// shown returns what errors may keep of a request: neither the signature of a SAS, in the query and in the address that a copy comes from,
// nor the header with a signature or token.
func (d *doer) shown(req *http.Request) *http.Request {
	u := *req.URL
	if q := u.Query(); q.Has("sig") {
		q.Set("sig", "redacted")
		u.RawQuery = q.Encode()
	}
	h := req.Header.Clone()
	h.Del("Authorization")
	for _, values := range h { // some of the SDK's names are in lower case
		for i := range values {
			values[i] = conceal(values[i], d.secrets)
		}
	}
	return &http.Request{Method: req.Method, URL: &u, Host: req.Host, Header: h, Proto: req.Proto, ProtoMajor: req.ProtoMajor, ProtoMinor: req.ProtoMinor}
}

// sent follows one attempt, to know what had happened when it failed.
type sent struct {
	wire.Sent
	batch *batch // nil: it is none

	renew  bool        // its token was refused, and another attempt may have another
	begun  time.Time   // by the local clock
	status int         // of the reply; 0: there was none
	header http.Header // of the reply
	reply  io.Closer   // its body
}

type sentKey struct{}

// watch returns ctx with a value by which the HTTP client finds s.
func (s *sent) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentKey{}, s)
}

// trace returns the request with a trace that tells s about its connection.
func (s *sent) trace(req *http.Request) *http.Request {
	s.Enter()
	s.begun = time.Now()
	return req.WithContext(s.Traced(req.Context()))
}
