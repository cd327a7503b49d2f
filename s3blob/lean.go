package s3blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/encoding/httpbinding"

	"github.com/wholeblob/wholeblob/internal/wire"
)

// lean has the kinds of requests that do not go through the middleware of the SDK. For each request that builds a stack of some forty steps,
// copies the client's options and resolves the endpoint anew, and makes more than five times the allocations, in four to six times the
// time, of what is here (BenchmarkRequest): more than all else that is done for a small object.
//
// What a request looks like the SDK says once for each Store, by making one of each kind that is not sent; the SDK's signer signs
// each; and the SDK reads every reply but a plain success. So what is here is the way of the successful request alone.
//
// A kind that is nil goes the SDK's way: those with a body, sent or received, if checksums are on, for these are in headers, trailers and
// the body itself; and all of them where requests are not signed with the credentials at hand (directory buckets).
type lean struct{ get, head, put, part *kind }

func newLean(so s3.Options, r *requests, do *doer, sign signer) lean {
	base := kind{do: do, sign: sign, creds: r.creds, sdk: rehearsing(so), bucket: r.bucket}
	l := lean{head: base.learn(askHead)}
	if !r.checksums {
		l.get, l.put, l.part = base.learn(askGet), base.learn(askPut), base.learn(askPart)
	}
	return l
}

// kind makes requests of one operation.
type kind struct {
	do     *doer
	sign   signer
	creds  *renewing
	sdk    *s3.Client // sends nothing; see exchange
	bucket string
	ask    ask

	// As the SDK makes them. A path ends where the key begins.
	operation, method, scheme, host string
	path, rawPath, query            string
	header                          http.Header
	service, region                 string // of the signature
}

// ask makes a request of one operation through the SDK.
type ask func(ctx context.Context, c *s3.Client, bucket, key *string) error

func askGet(ctx context.Context, c *s3.Client, bucket, key *string) error {
	_, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key})
	return err
}

func askHead(ctx context.Context, c *s3.Client, bucket, key *string) error {
	_, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: key})
	return err
}

func askPut(ctx context.Context, c *s3.Client, bucket, key *string) error {
	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key})
	return err
}

func askPart(ctx context.Context, c *s3.Client, bucket, key *string) error {
	number, id := int32(1), "id"
	_, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: bucket, Key: key, PartNumber: &number, UploadId: &id})
	return err
}

// learn returns a copy of k for the operation of a, or nil if its requests cannot be made here.
func (k kind) learn(a ask) *kind {
	const key = "key"
	x := &exchange{err: errRehearsed}
	k.ask = a
	_ = k.reply(context.Background(), key, x)
	if x.sent == nil || x.service != s3Service || !strings.HasSuffix(x.sent.URL.Path, "/"+key) {
		return nil
	}
	u := x.sent.URL
	k.operation, k.service, k.region = x.operation, x.service, x.region
	k.method, k.scheme, k.host = x.sent.Method, u.Scheme, u.Host
	k.path, k.rawPath = strings.TrimSuffix(u.Path, key), strings.TrimSuffix(u.EscapedPath(), key)
	q := u.Query()
	q.Del("partNumber")
	q.Del("uploadId")
	k.query, k.header = q.Encode(), x.sent.Header.Clone()
	k.header.Del("Amz-Sdk-Invocation-Id") // another one for each request, of use to the SDK's own retries only
	return &k
}

// s3Service is what signatures are for, save those of S3 Express One Zone and their like.
const s3Service = "s3"

const (
	hashHeader      = "X-Amz-Content-Sha256"
	unsignedPayload = "UNSIGNED-PAYLOAD"
)

// send makes one request for key, with these headers and this query beside those of all of its kind, and returns the reply if it is a
// success. Every other end is the error that the SDK makes of it.
func (k *kind) send(ctx context.Context, st *sent, key, query string, header http.Header) (*http.Response, error) {
	if query != "" && k.query != "" {
		query += "&"
	}
	req := (&http.Request{
		Method: k.method, Host: k.host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		URL: &url.URL{
			Scheme: k.scheme, Host: k.host, RawQuery: query + k.query,
			// The path is signed as it is sent, so both must be the SDK's escapes, not net/url's.
			Path: k.path + key, RawPath: k.rawPath + httpbinding.EscapePath(key, false),
		},
		Header: k.headers(header),
	}).WithContext(st.Traced(ctx))
	if err := k.signed(ctx, st, req); err != nil {
		return nil, &smithy.OperationError{ServiceID: s3.ServiceID, OperationName: k.operation, Err: err}
	}
	if st.Body != nil && st.Body.Size() > 0 {
		req.Body, req.ContentLength = io.NopCloser(st.Body), st.Body.Size()
	}
	reply, err := k.do.send(req, st)
	if err != nil || reply.StatusCode < 200 || reply.StatusCode > 299 {
		return nil, k.reply(ctx, key, &exchange{reply: reply, err: err})
	}
	return reply, nil
}

// headers returns those of all requests of this kind, and more. The values are the request's own: a transport must not change them, but
// one that does would change all requests to come.
func (k *kind) headers(more http.Header) http.Header {
	h := make(http.Header, len(k.header)+len(more)+4) // the date, the token and the signature come
	values := make([]string, 0, len(k.header))
	for name, v := range k.header {
		at := len(values)
		values = append(values, v...)
		h[name] = values[at:len(values):len(values)]
	}
	maps.Copy(h, more)
	return h
}

// signed signs req, whose body is st's. The provider of credentials does not see the trace of req.
func (k *kind) signed(ctx context.Context, st *sent, req *http.Request) error {
	creds, err := k.creds.cache.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("get credentials: %w", err)
	}
	hash := req.Header[hashHeader][0]
	if st.Body != nil {
		req.ContentLength = st.Body.Size()
		if hash != unsignedPayload {
			if hash, err = hashOf(st.Body); err != nil {
				return fmt.Errorf("compute payload hash: %w", err)
			}
			req.Header[hashHeader] = []string{hash}
		}
	}
	at := k.sign.clock.now()
	st.signed(creds, at)
	return k.sign.inner.SignHTTP(ctx, creds, req, hash, k.service, k.region, at)
}

// hashOf reads the body once, and rewinds it.
func hashOf(b *wire.Body) (string, error) {
	h := sha256.New()
	err := b.Show(h)
	return hex.EncodeToString(h.Sum(nil)), err
}
