package s3blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithytime "github.com/aws/smithy-go/time"

	"github.com/wholeblob/wholeblob/internal/transfer"
)

// exchange is the network of a client of the SDK that sends nothing: it keeps the request, and answers what it is told to. So the
// SDK says what its requests look like, and makes its errors of replies to lean ones.
type exchange struct {
	sent                       *http.Request
	operation, service, region string

	reply *http.Response
	err   error
}

type exchangeKey struct{}

var errRehearsed = errors.New("s3blob: nothing is sent")

// rehearsing returns a client whose requests go to the exchange of their context.
func rehearsing(so s3.Options) *s3.Client {
	so.HTTPClient, so.HTTPSignerV4 = exchange{}, exchange{}
	so.Credentials = aws.CredentialsProviderFunc(nobody) // there is nothing to wait for
	return s3.New(so)
}

func nobody(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "nobody", SecretAccessKey: "nothing"}, nil
}

// Do implements s3.HTTPClient.
func (exchange) Do(req *http.Request) (*http.Response, error) {
	x := req.Context().Value(exchangeKey{}).(*exchange)
	x.sent, x.operation = req, middleware.GetOperationName(req.Context())
	return x.reply, x.err
}

// SignHTTP implements s3.HTTPSignerV4. It leaves the request as it is.
func (exchange) SignHTTP(ctx context.Context, _ aws.Credentials, _ *http.Request, _, service, region string, _ time.Time, _ ...func(*v4.SignerOptions)) error {
	x := ctx.Value(exchangeKey{}).(*exchange)
	x.service, x.region = service, region
	return nil
}

// reply returns what the SDK says to the reply, or failure, of x to a request for key. It closes the reply's body. (The reply ends with the
// context of its own request; the SDK need not look at ctx once more and say something else of what has come.)
func (k *kind) reply(ctx context.Context, key string, x *exchange) error {
	return k.ask(context.WithValue(context.WithoutCancel(ctx), exchangeKey{}, x), k.sdk, &k.bucket, &key)
}

// done ends a successful write. Its reply has no body; what else comes may be the document of an error that the service found after the
// status was sent ("Error responses", Amazon S3 API Reference), or not the service's at all, and is for the SDK to say.
func (k *kind) done(ctx context.Context, key string, reply *http.Response) error {
	var first [1]byte
	n, err := io.ReadFull(reply.Body, first[:])
	if err == io.EOF {
		_ = reply.Body.Close() // with nothing in it
		return nil
	}
	reply.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first[:n]), reply.Body), reply.Body}
	return k.reply(ctx, key, &exchange{reply: reply})
}

// headOf reads the headers that a HEAD and a GET have in common. One that cannot be read says nothing.
func headOf(h http.Header) transfer.Head {
	head := transfer.Head{Size: -1, Version: untagged(h.Get("Etag")), ContentType: h.Get("Content-Type")}
	if t, err := smithytime.ParseHTTPDate(h.Get("Last-Modified")); err == nil {
		head.ModTime = t
	}
	for name, v := range h {
		const meta = "x-amz-meta-"
		if len(name) < len(meta) || !strings.EqualFold(name[:len(meta)], meta) {
			continue
		}
		if head.Metadata == nil {
			head.Metadata = make(map[string]string)
		}
		head.Metadata[strings.ToLower(name[len(meta):])] = v[0]
	}
	return head
}

// lengthOf returns the announced length of a reply's body, or -1.
func lengthOf(reply *http.Response) int64 {
	n, err := strconv.ParseInt(reply.Header.Get("Content-Length"), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
