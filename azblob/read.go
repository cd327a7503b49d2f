package azblob

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	sdkblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// requests implements transfer.Requests: each method is one request, or none.
type requests struct {
	client  *container.Client
	keeps   Keeps
	secrets []string // what no error may show
}

var _ transfer.Requests = (*requests)(nil)

// Read implements transfer.Requests. The body is the reply's own: the SDK's retrying reader is another type, and not used.
func (r *requests) Read(ctx context.Context, req transfer.ReadRequest) (*transfer.ReadReply, error) {
	if req.Part > 0 || req.Suffix > 0 { // "Specifying the range header for Blob Storage operations" knows neither
		return nil, &blob.Error{Kind: blob.ErrUnsupported, Outcome: blob.NotApplied}
	}
	in := &sdkblob.DownloadStreamOptions{AccessConditions: pinned(req.Version)}
	if req.N > 0 {
		in.Range = sdkblob.HTTPRange{Offset: req.Off, Count: min(req.N, math.MaxInt64-req.Off)} // its last byte is a number too
	}
	st := &sent{}
	out, err := r.client.NewBlobClient(req.Key).DownloadStream(st.watch(ctx), in)
	if err != nil {
		st.close()
		return nil, r.fault(ctx, err, st)
	}
	if st.status != http.StatusOK && st.status != http.StatusPartialContent {
		// The SDK returns a 304 as a success without a body.
		st.close()
		return nil, &blob.Error{Kind: blob.ErrUnavailable, Outcome: blob.NotApplied, Status: st.status, Err: errors.New("a read was answered without content")}
	}
	rep := &transfer.ReadReply{
		Body:    out.Body,
		Length:  -1,
		Partial: st.status == http.StatusPartialContent,
		Head:    head(-1, out.ETag, out.LastModified, out.ContentType, out.Metadata),
	}
	if out.ContentLength != nil {
		rep.Length = *out.ContentLength
	}
	if out.ContentRange != nil {
		rep.Off, rep.End, rep.Total, rep.HasRange = wire.ContentRange(*out.ContentRange)
	}
	if rep.Partial && rep.Length == 0 && req.N > 0 {
		// So Azurite answers a range that begins at the end of the blob, in place of 416.
		st.close()
		return nil, &blob.Error{Kind: blob.ErrInvalidRange, Outcome: blob.NotApplied, Status: st.status, Err: errors.New("the range is empty")}
	}
	return rep, nil
}

// close lets go of a reply whose headers the SDK could not read: it forgets the body then.
func (s *sent) close() {
	if s.reply != nil {
		_ = s.reply.Close()
	}
}

// Head implements transfer.Requests.
func (r *requests) Head(ctx context.Context, key string) (transfer.Head, error) {
	st := &sent{}
	out, err := r.client.NewBlobClient(key).GetProperties(st.watch(ctx), nil)
	if err != nil {
		return transfer.Head{}, r.fault(ctx, err, st)
	}
	size := int64(-1)
	if out.ContentLength != nil {
		size = *out.ContentLength
	}
	return head(size, out.ETag, out.LastModified, out.ContentType, out.Metadata), nil
}

func head(size int64, etag *azcore.ETag, at *time.Time, contentType *string, metadata map[string]*string) transfer.Head {
	h := transfer.Head{Size: size, Version: unquoted(etag), ContentType: value(contentType)}
	if at != nil {
		h.ModTime = *at
	}
	if len(metadata) > 0 {
		h.Metadata = make(map[string]string, len(metadata))
		for name, v := range metadata {
			h.Metadata[name] = value(v) // in the case that net/http gives to header names; the engine folds it
		}
	}
	return h
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// pinned is the condition of a request on this version of a blob, nil for any.
func pinned(version string) *sdkblob.AccessConditions {
	if version == "" {
		return nil
	}
	return &sdkblob.AccessConditions{ModifiedAccessConditions: &sdkblob.ModifiedAccessConditions{IfMatch: quoted(version)}}
}

func quoted(version string) *azcore.ETag {
	tag := azcore.ETag(`"` + version + `"`)
	return &tag
}

// unquoted returns an entity tag as a version. In headers it has quotes, in listings none, and some proxies mark tags as weak.
func unquoted(etag *azcore.ETag) string {
	return strings.Trim(strings.TrimPrefix(string(value(etag)), "W/"), `"`)
}

// unreadable is a reply to a read that makes no sense.
func unreadable(text string) error {
	return &blob.Error{Kind: blob.ErrCorrupt, Outcome: blob.NotApplied, Err: errors.New(text)}
}
