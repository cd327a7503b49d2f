package s3blob

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/wholeblob/wholeblob/internal/transfer"
)

// requests implements transfer.Requests: each method is one request.
type requests struct {
	client    *s3.Client
	creds     *renewing
	skew      skew
	bucket    string
	checksums bool
}

var _ transfer.Requests = (*requests)(nil)

// Read implements transfer.Requests.
func (r *requests) Read(ctx context.Context, req transfer.ReadRequest) (*transfer.ReadReply, error) {
	in := &s3.GetObjectInput{Bucket: &r.bucket, Key: &req.Key, IfMatch: quoted(req.Version)}
	switch {
	case req.Part > 0:
		in.PartNumber = aws.Int32(int32(req.Part))
	case req.Suffix > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=-%d", req.Suffix))
	case req.N > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", req.Off, req.Off+req.N-1))
	}
	st := &sent{}
	out, err := r.client.GetObject(st.watch(ctx), in)
	if err != nil {
		return nil, r.fault(ctx, err, st)
	}
	rep := &transfer.ReadReply{
		Body:    out.Body,
		Length:  -1,
		Parts:   int(aws.ToInt32(out.PartsCount)),
		Partial: statusOf(out.ResultMetadata) == 206,
		Head: transfer.Head{
			Size: -1, Version: unquoted(out.ETag), ModTime: aws.ToTime(out.LastModified),
			ContentType: aws.ToString(out.ContentType), Metadata: out.Metadata,
		},
	}
	for _, sum := range []*string{out.ChecksumCRC32, out.ChecksumCRC32C, out.ChecksumCRC64NVME, out.ChecksumSHA1, out.ChecksumSHA256} {
		rep.Checked = rep.Checked || sum != nil && r.checksums
	}
	if out.ContentLength != nil {
		rep.Length = *out.ContentLength
	}
	if out.ContentRange != nil {
		rep.Off, rep.End, rep.Total, rep.HasRange = parseContentRange(*out.ContentRange)
	}
	return rep, nil
}

// Head implements transfer.Requests.
func (r *requests) Head(ctx context.Context, key string) (transfer.Head, error) {
	st := &sent{}
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

// parseContentRange reads "bytes 0-99/1000" into [off, end) of total, and "bytes 0-99/*" with total -1. Anything
// else is not a range: ok is false.
func parseContentRange(v string) (off, end, total int64, ok bool) {
	spec, found := strings.CutPrefix(v, "bytes ")
	if !found {
		return 0, 0, 0, false
	}
	span, size, found := strings.Cut(spec, "/")
	first, last, found2 := strings.Cut(span, "-")
	if !found || !found2 {
		return 0, 0, 0, false
	}
	off, ok1 := number(first)
	end, ok2 := number(last)
	total = -1
	ok3 := size == "*"
	if !ok3 {
		total, ok3 = number(size)
	}
	if !ok1 || !ok2 || !ok3 {
		return 0, 0, 0, false
	}
	return off, end + 1, total, true
}

// number parses digits only, below the largest int64 so that one more still fits.
func number(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil && n < 1<<63-1
}

// quoted returns a version as an entity tag, nil for none.
func quoted(version string) *string {
	if version == "" {
		return nil
	}
	return aws.String(`"` + version + `"`)
}

// unquoted returns an entity tag as a version. Servers differ in quoting, and some proxies mark tags as weak.
func unquoted(etag *string) string {
	return strings.Trim(strings.TrimPrefix(aws.ToString(etag), "W/"), `"`)
}
