package s3blob

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// requests implements transfer.Requests: each method is one request.
type requests struct {
	client    *s3.Client
	lean      lean
	creds     *renewing
	skew      skew
	guess     skew // of credentials
	bucket    string
	checksums bool
}

var _ transfer.Requests = (*requests)(nil)

// newRequests returns the requests to bucket that o, which is complete, asks for.
func newRequests(o *Options, bucket string, rt http.RoundTripper) *requests {
	c := &clock{}
	do, sign := &doer{rt: rt, clock: c}, newSigner(c)
	r := &requests{creds: newRenewing(o.Credentials), bucket: bucket, checksums: o.checksums()}
	so := o.sdk(do, r.creds, sign)
	r.client, r.lean = s3.New(so), newLean(so, r, do, sign)
	return r
}

// Read implements transfer.Requests.
func (r *requests) Read(ctx context.Context, req transfer.ReadRequest) (*transfer.ReadReply, error) {
	st := &sent{}
	if r.lean.get == nil {
		return r.readBySDK(ctx, req, st)
	}
	h, query := make(http.Header, 2), ""
	if req.Part > 0 {
		query = "partNumber=" + strconv.Itoa(req.Part)
	} else if v := byteRange(req); v != "" {
		h["Range"] = []string{v}
	}
	if req.Version != "" {
		h["If-Match"] = []string{*quoted(req.Version)}
	}
	reply, err := r.lean.get.send(ctx, st, req.Key, query, h) //nolint:bodyclose // the reader's to close
	if err != nil {
		return nil, r.fault(ctx, err, st)
	}
	rep := &transfer.ReadReply{
		Body: reply.Body, Length: lengthOf(reply), Partial: reply.StatusCode == http.StatusPartialContent, Head: headOf(reply.Header),
	}
	rep.Off, rep.End, rep.Total, rep.HasRange = wire.ContentRange(reply.Header.Get("Content-Range"))
	if n, err := strconv.ParseInt(reply.Header.Get("X-Amz-Mp-Parts-Count"), 10, 32); err == nil {
		rep.Parts = int(n)
	}
	return rep, nil
}

// readBySDK is Read with the checksums of the SDK.
func (r *requests) readBySDK(ctx context.Context, req transfer.ReadRequest, st *sent) (*transfer.ReadReply, error) {
	in := &s3.GetObjectInput{Bucket: &r.bucket, Key: &req.Key, IfMatch: quoted(req.Version)}
	if req.Part > 0 {
		in.PartNumber = aws.Int32(int32(req.Part))
	} else if v := byteRange(req); v != "" {
		in.Range = &v
	}
	out, err := r.client.GetObject(st.watch(ctx), in)
	if err != nil {
		return nil, r.fault(ctx, err, st)
	}
	rep := &transfer.ReadReply{
		Body:    out.Body,
		Length:  -1,
		Parts:   int(aws.ToInt32(out.PartsCount)),
		Partial: statusOf(out.ResultMetadata) == http.StatusPartialContent,
		Head: transfer.Head{
			Size: -1, Version: unquoted(out.ETag), ModTime: aws.ToTime(out.LastModified),
			ContentType: aws.ToString(out.ContentType), Metadata: out.Metadata,
		},
	}
	// A header alone says nothing: of the sum of an upload's parts ("CRC-3") the SDK checks nothing.
	_, rep.Checked = s3.GetChecksumValidationMetadata(out.ResultMetadata)
	if out.ContentLength != nil {
		rep.Length = *out.ContentLength
	}
	if out.ContentRange != nil {
		rep.Off, rep.End, rep.Total, rep.HasRange = wire.ContentRange(*out.ContentRange)
	}
	return rep, nil
}

// byteRange returns the value of the Range header, "" for none (RFC 9110, 14.1.2).
func byteRange(req transfer.ReadRequest) string {
	switch {
	case req.Suffix > 0:
		return "bytes=-" + strconv.FormatInt(req.Suffix, 10)
	case req.N > 0:
		return "bytes=" + strconv.FormatInt(req.Off, 10) + "-" + strconv.FormatInt(req.Off+req.N-1, 10)
	}
	return ""
}

// Head implements transfer.Requests.
func (r *requests) Head(ctx context.Context, key string) (transfer.Head, error) {
	st := &sent{}
	if r.lean.head == nil {
		return r.headBySDK(ctx, key, st)
	}
	reply, err := r.lean.head.send(ctx, st, key, "", nil)
	if err != nil {
		return transfer.Head{}, r.fault(ctx, err, st)
	}
	_ = reply.Body.Close() // there is none
	h := headOf(reply.Header)
	h.Size = lengthOf(reply)
	return h, nil
}

func (r *requests) headBySDK(ctx context.Context, key string, st *sent) (transfer.Head, error) {
	out, err := r.client.HeadObject(st.watch(ctx), &s3.HeadObjectInput{Bucket: &r.bucket, Key: &key})
	if err != nil {
		return transfer.Head{}, r.fault(ctx, err, st)
	}
	h := transfer.Head{
		Size: -1, Version: unquoted(out.ETag), ModTime: aws.ToTime(out.LastModified),
		ContentType: aws.ToString(out.ContentType), Metadata: out.Metadata,
	}
	if out.ContentLength != nil {
		h.Size = *out.ContentLength
	}
	return h, nil
}

// statusOf returns the HTTP status of a reply.
func statusOf(m middleware.Metadata) int {
	if raw, ok := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response); ok {
		return raw.StatusCode
	}
	return 0
}

// quoted returns a version as an entity tag, nil for none.
func quoted(version string) *string {
	if version == "" {
		return nil
	}
	return aws.String(`"` + version + `"`)
}

// unquoted returns an entity tag as a version. Servers differ in quoting, and some proxies mark tags as weak.
func unquoted(etag *string) string { return untagged(aws.ToString(etag)) }

func untagged(etag string) string { return strings.Trim(strings.TrimPrefix(etag, "W/"), `"`) }
