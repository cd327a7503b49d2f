package s3blob

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
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
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
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
func (o *Options) sdk(do *doer, creds *renewing) s3.Options {
	so := s3.Options{
		Region:                     o.Region,
		Credentials:                creds.cache,
		HTTPSignerV4:               newSigner(),
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

// doer is the SDK's HTTP client: one round trip, no redirects. (A redirect would be sent with a signature
// for another host.)
type doer struct{ rt http.RoundTripper }

// Do implements s3.HTTPClient.
func (d *doer) Do(req *http.Request) (*http.Response, error) { return d.rt.RoundTrip(req) }

// sent follows one attempt, to know what had happened when it failed.
type sent struct {
	connected atomic.Bool // a connection was there: from here on bytes may have left
	body      *sentBody   // nil: the request has none of the caller's
	identity  string      // of the credentials it was signed with
	signedAt  time.Time   // the date it was signed with
	begun     time.Time   // when, by the local clock
}

type sentKey struct{}

// watch returns ctx with a trace that tells s about the connection, and a value that tells it about the signature.
func (s *sent) watch(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, sentKey{}, s)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { s.connected.Store(true) },
	})
}

// certainlyNot reports whether the service cannot have seen a whole request.
func (s *sent) certainlyNot() bool {
	return !s.connected.Load() || s.body != nil && !s.body.complete()
}

// errLetGo is what a transport gets that reads a body after its attempt has ended.
var errLetGo = errors.New("s3blob: body read after its attempt has ended")

// sentBody counts what is handed over of a body, remembers why its source failed, and can be taken away from a
// transport: http.RoundTripper may read a request's body after RoundTrip has returned, and the caller's
// memory must not be touched by then.
type sentBody struct {
	mu   sync.Mutex // held while the source is read: letGo waits for that
	r    io.ReadSeeker
	size int64
	pos  int64 // bytes handed over since the last rewind
	err  error // of the source
	gone bool
}

// Read implements io.Reader.
func (b *sentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return 0, errLetGo
	}
	n, err := b.r.Read(p)
	b.pos += int64(n)
	if err != nil && err != io.EOF { //nolint:errorlint // the end is io.EOF itself
		b.err = err
	}
	return n, err
}

// Seek implements io.Seeker: the SDK reads a body once to hash it, and rewinds.
func (b *sentBody) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return 0, errLetGo
	}
	pos, err := b.r.Seek(offset, whence)
	if err == nil {
		b.pos = pos
	}
	return pos, err
}

func (b *sentBody) complete() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pos >= b.size
}

func (b *sentBody) sourceError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// letGo takes the source away. INVARIANT: nobody reads it after letGo has returned.
func (b *sentBody) letGo() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
}
