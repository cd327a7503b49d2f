package s3blob

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// Put implements transfer.Requests.
func (r *requests) Put(ctx context.Context, req transfer.PutRequest) (transfer.Written, error) {
	st := &sent{Sent: wire.Sent{Body: wire.NewBody(req.Body(), req.Size)}}
	defer st.Body.LetGo()
	var written transfer.Written
	var err error
	if r.lean.put != nil {
		written.Version, err = r.putLean(ctx, st, &req)
	} else {
		written.Version, err = r.putBySDK(ctx, st, &req)
	}
	if err != nil {
		return transfer.Written{}, onKey(req.Cond, r.fault(ctx, err, st))
	}
	return written, st.Unread(http.StatusOK)
}

func (r *requests) putLean(ctx context.Context, st *sent, req *transfer.PutRequest) (version string, err error) {
	h := make(http.Header, len(req.Metadata)+3)
	h["Content-Type"] = []string{req.ContentType}
	for name, v := range req.Metadata {
		h[http.CanonicalHeaderKey("X-Amz-Meta-"+name)] = []string{v}
	}
	if absent, match := condition(req.Cond); absent != nil {
		h["If-None-Match"] = []string{*absent}
	} else if match != nil {
		h["If-Match"] = []string{*match}
	}
	reply, err := r.lean.put.send(ctx, st, req.Key, "", h)
	if err != nil {
		return "", err
	}
	return untagged(reply.Header.Get("Etag")), r.lean.put.done(ctx, req.Key, reply)
}

func (r *requests) putBySDK(ctx context.Context, st *sent, req *transfer.PutRequest) (version string, err error) {
	in := &s3.PutObjectInput{
		Bucket: &r.bucket, Key: &req.Key, Body: st.Body, ContentLength: &req.Size,
		ContentType: &req.ContentType, Metadata: req.Metadata,
	}
	in.IfNoneMatch, in.IfMatch = condition(req.Cond)
	out, err := r.client.PutObject(st.watch(ctx), in)
	if err != nil {
		return "", err
	}
	return unquoted(out.ETag), nil
}

// condition returns the values of If-None-Match and If-Match.
func condition(c blob.Condition) (ifNoneMatch, ifMatch *string) {
	if c.Absent() {
		return aws.String("*"), nil
	}
	v, _ := c.Version()
	return nil, quoted(v)
}

// onKey turns the refusal of a write into what its condition means: "Conditional writes", Amazon S3 User Guide, has 412 for
// both conditions and 404 for If-Match on a key that is not there.
func onKey(c blob.Condition, err error) error {
	var e *blob.Error
	if !errors.As(err, &e) {
		return err
	}
	_, pinned := c.Version()
	switch {
	case c.Absent() && e.Kind == blob.ErrPrecondition:
		e.Kind = blob.ErrExists
	case pinned && e.Code == "NoSuchKey":
		e.Kind = blob.ErrPrecondition
	}
	return e
}

// Begin implements transfer.Requests.
func (r *requests) Begin(ctx context.Context, req transfer.BeginRequest) (transfer.Upload, error) {
	in := &s3.CreateMultipartUploadInput{
		Bucket: &r.bucket, Key: &req.Key, ContentType: &req.ContentType, Metadata: req.Metadata,
	}
	if r.checksums {
		in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32
	}
	st := &sent{}
	out, err := r.client.CreateMultipartUpload(st.watch(ctx), in)
	if err != nil {
		return transfer.Upload{}, r.fault(ctx, err, st)
	}
	if aws.ToString(out.UploadId) == "" {
		return transfer.Upload{}, &blob.Error{Kind: blob.ErrUnavailable, Err: errors.New("CreateMultipartUpload returned no upload id")}
	}
	return transfer.Upload{Key: req.Key, ID: *out.UploadId}, nil
}

// Part implements transfer.Requests.
func (r *requests) Part(ctx context.Context, up transfer.Upload, p transfer.PartRequest) (transfer.Part, error) {
	st := &sent{Sent: wire.Sent{Body: wire.NewBody(p.Body(), p.Size)}}
	defer st.Body.LetGo()
	var part transfer.Part
	var err error
	if r.lean.part != nil {
		part, err = r.partLean(ctx, st, up, p.Number)
	} else {
		part, err = r.partBySDK(ctx, st, up, p)
	}
	if err != nil {
		return transfer.Part{}, r.fault(ctx, err, st)
	}
	if part.Tag == "" {
		return transfer.Part{}, &blob.Error{Kind: blob.ErrUnavailable, Err: errors.New("UploadPart returned no ETag")}
	}
	return part, st.Unread(http.StatusOK)
}

func (r *requests) partLean(ctx context.Context, st *sent, up transfer.Upload, number int) (transfer.Part, error) {
	query := "partNumber=" + strconv.Itoa(number) + "&uploadId=" + url.QueryEscape(up.ID)
	reply, err := r.lean.part.send(ctx, st, up.Key, query, nil)
	if err != nil {
		return transfer.Part{}, err
	}
	return transfer.Part{Tag: reply.Header.Get("Etag"), Sum: reply.Header.Get("X-Amz-Checksum-Crc32")}, r.lean.part.done(ctx, up.Key, reply)
}

func (r *requests) partBySDK(ctx context.Context, st *sent, up transfer.Upload, p transfer.PartRequest) (transfer.Part, error) {
	in := &s3.UploadPartInput{
		Bucket: &r.bucket, Key: &up.Key, UploadId: &up.ID,
		PartNumber: aws.Int32(int32(p.Number)),
		Body:       st.Body, ContentLength: &p.Size,
	}
	if r.checksums {
		in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32
	}
	out, err := r.client.UploadPart(st.watch(ctx), in)
	if err != nil {
		return transfer.Part{}, err
	}
	return transfer.Part{Tag: aws.ToString(out.ETag), Sum: aws.ToString(out.ChecksumCRC32)}, nil
}

// Commit implements transfer.Requests.
func (r *requests) Commit(ctx context.Context, up transfer.Upload, req transfer.CommitRequest) (transfer.Written, error) {
	parts := make([]types.CompletedPart, len(req.Parts))
	for i, p := range req.Parts {
		parts[i] = types.CompletedPart{PartNumber: aws.Int32(int32(p.Number)), ETag: &p.Tag}
		if p.Sum != "" {
			parts[i].ChecksumCRC32 = &p.Sum
		}
	}
	in := &s3.CompleteMultipartUploadInput{
		Bucket: &r.bucket, Key: &up.Key, UploadId: &up.ID,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}
	in.IfNoneMatch, in.IfMatch = condition(req.Cond)
	st := &sent{}
	out, err := r.client.CompleteMultipartUpload(st.watch(ctx), in)
	if err != nil {
		return transfer.Written{}, onKey(req.Cond, r.fault(ctx, err, st))
	}
	// The status 200 comes before the work is done, and the document after: without one nothing is known.
	if out.ETag == nil && out.Key == nil && out.Location == nil {
		return transfer.Written{}, &blob.Error{Kind: blob.ErrUnavailable, Status: 200, Err: errors.New("CompleteMultipartUpload returned an empty document")}
	}
	return transfer.Written{Version: unquoted(out.ETag)}, nil
}

// Progress implements transfer.Requests. S3 parts are parallel: the engine never asks.
func (r *requests) Progress(context.Context, transfer.Upload, int64) (transfer.Progress, error) {
	return transfer.Progress{}, &blob.Error{Kind: blob.ErrUnsupported, Outcome: blob.NotApplied}
}

// Abort implements transfer.Requests.
func (r *requests) Abort(ctx context.Context, up transfer.Upload) error {
	st := &sent{}
	_, err := r.client.AbortMultipartUpload(st.watch(ctx), &s3.AbortMultipartUploadInput{
		Bucket: &r.bucket, Key: &up.Key, UploadId: &up.ID,
	})
	if err != nil {
		return r.fault(ctx, err, st)
	}
	return nil
}

// Uploads implements transfer.Requests. The token is the key and the upload id of the last one seen.
func (r *requests) Uploads(ctx context.Context, prefix, token string) (transfer.UploadPage, error) {
	in := &s3.ListMultipartUploadsInput{Bucket: &r.bucket, Prefix: &prefix, EncodingType: types.EncodingTypeUrl}
	if key, id, ok := cutToken(token); ok {
		in.KeyMarker, in.UploadIdMarker = &key, &id
	}
	st := &sent{}
	out, err := r.client.ListMultipartUploads(st.watch(ctx), in)
	if err != nil {
		return transfer.UploadPage{}, r.fault(ctx, err, st)
	}
	decode := decoder(string(out.EncodingType))
	var page transfer.UploadPage
	for _, u := range out.Uploads {
		key, err := decode(aws.ToString(u.Key))
		if err != nil {
			return page, err
		}
		started := time.Time{}
		if u.Initiated != nil {
			started = *u.Initiated
		}
		page.Uploads = append(page.Uploads, transfer.Upload{Key: key, ID: aws.ToString(u.UploadId), Started: started})
	}
	more, err := goesOn(out.IsTruncated, aws.ToString(out.NextKeyMarker))
	if err != nil {
		return page, err
	}
	if more {
		key, err := decode(aws.ToString(out.NextKeyMarker))
		if err != nil {
			return page, err
		}
		page.Token = joinToken(key, aws.ToString(out.NextUploadIdMarker))
	}
	return page, nil
}
