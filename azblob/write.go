package azblob

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	sdkblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// Put implements transfer.Requests.
func (r *requests) Put(ctx context.Context, req transfer.PutRequest) (transfer.Written, error) {
	st := &sent{Sent: wire.Sent{Body: wire.NewBody(req.Body(), req.Size)}}
	defer st.Body.LetGo()
	out, err := r.client.NewBlockBlobClient(req.Key).Upload(st.watch(ctx), streaming.NopCloser(st.Body), &blockblob.UploadOptions{
		HTTPHeaders: headers(req.Meta), Metadata: pairs(req.Metadata), AccessConditions: conditions(req.Cond),
	})
	if err != nil {
		return transfer.Written{}, onKey(req.Cond, r.fault(ctx, err, st))
	}
	return transfer.Written{Version: unquoted(out.ETag)}, st.Unread(http.StatusCreated)
}

func headers(m transfer.Meta) *sdkblob.HTTPHeaders {
	return &sdkblob.HTTPHeaders{BlobContentType: &m.ContentType}
}

func pairs(m map[string]string) map[string]*string {
	out := make(map[string]*string, len(m))
	for k, v := range m {
		out[k] = &v
	}
	return out
}

// conditions returns the access conditions of a write or a delete, nil for none.
func conditions(c blob.Condition) *sdkblob.AccessConditions {
	if c.Absent() {
		anyone := azcore.ETagAny
		return &sdkblob.AccessConditions{ModifiedAccessConditions: &sdkblob.ModifiedAccessConditions{IfNoneMatch: &anyone}}
	}
	v, _ := c.Version()
	return pinned(v)
}

// onKey turns the refusal of a write into what its condition means. "Specifying conditional headers for Blob service operations" has 412 for
// both conditions; the service answers 409 BlobAlreadyExists to If-None-Match: *, and 404 to If-Match on a key that is not there is a
// condition that is not met.
func onKey(c blob.Condition, err error) error {
	var e *blob.Error
	if !errors.As(err, &e) {
		return err
	}
	_, version := c.Version()
	switch {
	case c.Absent() && e.Kind == blob.ErrPrecondition:
		e.Kind = blob.ErrExists
	case version && e.Kind == blob.ErrNotFound:
		e.Kind = blob.ErrPrecondition
	}
	return e
}

// Begin implements transfer.Requests, without a request: an upload is the blocks whose ids begin with its random id. Two writers of a key, which
// share one list of uncommitted blocks, thus never commit each other's.
func (r *requests) Begin(_ context.Context, req transfer.BeginRequest) (transfer.Upload, error) {
	return transfer.Upload{Key: req.Key, ID: blob.NewToken()}, nil
}

// blockID names one block. All ids of a blob must be equally long, and at most 64 bytes before they are encoded ("Put Block"). These are
// 39 letters and digits, and encode to 52 that need no escaping in a URL.
func blockID(up transfer.Upload, number int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s%07d", up.ID, number))
}

// Part implements transfer.Requests. A block that is sent again replaces itself.
func (r *requests) Part(ctx context.Context, up transfer.Upload, p transfer.PartRequest) (transfer.Part, error) {
	st := &sent{Sent: wire.Sent{Body: wire.NewBody(p.Body(), p.Size)}}
	defer st.Body.LetGo()
	id := blockID(up, p.Number)
	if _, err := r.client.NewBlockBlobClient(up.Key).StageBlock(st.watch(ctx), id, streaming.NopCloser(st.Body), nil); err != nil {
		e := r.fault(ctx, err, st)
		if e.Code == "InvalidBlobOrBlock" {
			// Somebody else's uncommitted blocks of the key have ids of another length. They go when it is committed.
			e.Err = fmt.Errorf("blocks that another program has sent for the key stand in the way: %w", e.Err)
		}
		return transfer.Part{}, e
	}
	return transfer.Part{Tag: id}, st.Unread(http.StatusCreated)
}

// Commit implements transfer.Requests. The list names each block as "Latest": the service looks for it among the uncommitted blocks, and then among
// those of the committed blob ("Put Block List"). So a commit whose reply was lost can be sent again: the blocks are committed by then, and the
// same blob is made once more. "Uncommitted" would refuse it, and make a success look like a conflict. No block of anybody else can be meant,
// since nobody else has the ids.
func (r *requests) Commit(ctx context.Context, up transfer.Upload, req transfer.CommitRequest) (transfer.Written, error) {
	ids := make([]string, len(req.Parts))
	for i, p := range req.Parts {
		ids[i] = p.Tag
	}
	st := &sent{}
	out, err := r.client.NewBlockBlobClient(up.Key).CommitBlockList(st.watch(ctx), ids, &blockblob.CommitBlockListOptions{
		HTTPHeaders: headers(req.Meta), Metadata: pairs(req.Metadata), AccessConditions: conditions(req.Cond),
	})
	if err != nil {
		e := r.fault(ctx, err, st)
		if e.Code == "InvalidBlockList" {
			e.Err = fmt.Errorf("another writer of the key has made the service discard these blocks: %w", e.Err)
		}
		return transfer.Written{}, onKey(req.Cond, e)
	}
	return transfer.Written{Version: unquoted(out.ETag)}, nil
}

// The engine does not ask for what follows: Traits say that Azure has none of it.

// Progress implements transfer.Requests.
func (r *requests) Progress(context.Context, transfer.Upload, int64) (transfer.Progress, error) {
	return transfer.Progress{}, &blob.Error{Kind: blob.ErrUnsupported, Outcome: blob.NotApplied}
}

// Abort implements transfer.Requests. Blocks go by themselves.
func (r *requests) Abort(context.Context, transfer.Upload) error { return nil }

// Uploads implements transfer.Requests.
func (r *requests) Uploads(context.Context, string, string) (transfer.UploadPage, error) {
	return transfer.UploadPage{}, &blob.Error{Kind: blob.ErrUnsupported, Outcome: blob.NotApplied}
}
