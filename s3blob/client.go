package s3blob

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/wholeblob/wholeblob/internal/wire"
)

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
	return d.send(req.WithContext(st.Traced(req.Context())), st)
}

// send makes one round trip. req has the trace of st.
func (d *doer) send(req *http.Request, st *sent) (*http.Response, error) {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		wire.Once(req)
	case st.Body != nil && req.ContentLength == st.Body.Size() && req.Header.Get("Content-Encoding") != "aws-chunked":
		st.Body.Carry(req)
	default:
		// The SDK closes the body when the reply's headers come. What it has put around it then answers WriteTo with io.EOF, which
		// net/http, probing for more than the announced length, takes for a failed write: it closes the connection from
		// which the reply is just being read. Read answers the same without harm.
		req.Body = struct{ io.ReadCloser }{req.Body}
	}
	st.Enter()
	reply, err := d.rt.RoundTrip(req)
	if err != nil {
		return reply, err
	}
	d.clock.learn(reply.Header, st.begun)
	if reply.StatusCode < 200 || reply.StatusCode > 299 {
		reply.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(reply.Body, maxErrorBody), reply.Body}
	}
	return reply, nil
}

// maxErrorBody bounds what is read of an error's document, all of which the SDK keeps in memory. Those of the service have less than 1 KiB; a
// gateway's page that does not end would fill it.
const maxErrorBody = 64 << 10

// sent follows one attempt, to know what had happened when it failed.
type sent struct {
	wire.Sent
	identity  string    // of the credentials it was signed with
	temporary bool      // these have a session token, and expire
	signedAt  time.Time // the date it was signed with
	begun     time.Time // when, by the local clock
}

type sentKey struct{}

// watch returns ctx with a value by which the signer and the HTTP client find s.
func (s *sent) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentKey{}, s)
}
