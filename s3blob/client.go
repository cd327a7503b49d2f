package s3blob

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

// newTransport returns a transport for many parallel requests to one host. HTTP/1.1 only: one connection per
// request in flight is what S3 scales with, and one slow stream must not hold up the others.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial(&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}),
		MaxIdleConnsPerHost:   256, // the default of 2 would redial for each part
		IdleConnTimeout:       30 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // a transport that unpacks loses the stored length
		ReadBufferSize:        64 << 10,
		WriteBufferSize:       64 << 10,
	}
}

// sdk returns the options of the SDK's client: no retries, no checksums of its own unless asked for, requests
// through do.
func (o *Options) sdk(do *doer, creds *renewing, sign signer) s3.Options {
	so := s3.Options{
		Region:                     o.Region,
		Credentials:                creds.cache,
		HTTPSignerV4:               sign,
		UsePathStyle:               o.PathStyle,
		Retryer:                    aws.NopRetryer{}, // the engine has the only loop
		HTTPClient:                 do,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		// A part is small enough to send again: no round trip to ask first.
		ContinueHeaderThresholdBytes:              -1,
		DisableLogOutputChecksumValidationSkipped: true,
	}
	if o.Endpoint != "" {
		so.BaseEndpoint = aws.String(o.Endpoint)
	}
	if o.checksums() {
		so.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
		so.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	}
	if o.UnsignedPayload {
		so.APIOptions = append(so.APIOptions, func(s *middleware.Stack) error {
			if _, ok := s.Finalize.Get((&v4.ComputePayloadSHA256{}).ID()); !ok {
				return nil
			}
			return v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware(s)
		})
	}
	return so
}

// doer is the SDK's HTTP client, and that of lean requests: one round trip, no redirects. (A redirect would be sent with a signature
// for another host.)
type doer struct {
	rt    http.RoundTripper
	clock *clock
}

// Do implements s3.HTTPClient.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	st, ok := req.Context().Value(sentKey{}).(*sent)
	if !ok {
		st = new(sent)
	}
	return d.send(req.WithContext(st.traced(req.Context())), st)
}

// send makes one round trip. req has the trace of st.
func (d *doer) send(req *http.Request, st *sent) (*http.Response, error) {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		once(req)
	case st.body != nil && req.ContentLength == st.body.size && req.Header.Get("Content-Encoding") != "aws-chunked":
		req.Body = wireBody{st.body, req.Body}
	default:
		// The SDK closes the body when the reply's headers come. What it has put around it then answers WriteTo with io.EOF, which
		// net/http, probing for more than the announced length, takes for a failed write: it closes the connection from
		// which the reply is just being read. Read answers the same without harm.
		req.Body = struct{ io.ReadCloser }{req.Body}
	}
	st.entered.Store(true)
	reply, err := d.rt.RoundTrip(req)
	if err == nil {
		d.clock.learn(reply.Header, st.begun)
	}
	return reply, err
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
	identity  string      // of the credentials it was signed with
	signedAt  time.Time   // the date it was signed with
	begun     time.Time   // when, by the local clock
}

type sentKey struct{}

// watch returns ctx with a value by which the signer and the HTTP client find s. (A trace of connections on ctx itself
// would also see those of whoever provides credentials.)
func (s *sent) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentKey{}, s)
}

// traced returns ctx with a trace that tells s about the connection of its request.
func (s *sent) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.connected.Store(true) },
	})
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
