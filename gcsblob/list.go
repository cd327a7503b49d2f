package gcsblob

import (
	"context"
	"fmt"

	rawstorage "google.golang.org/api/storage/v1"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
)

// List implements transfer.Requests. The SDK's iterator fetches page after page, so this goes one layer down.
//
// The start offset is inclusive ("Objects: list", JSON API): the key itself comes once more, and the engine passes over it. (Adding a NUL to
// it would make it exclusive, but no document says that the service takes one.)
func (r *requests) List(ctx context.Context, req transfer.ListRequest) (transfer.ListPage, error) {
	call := r.raw.Objects.List(r.bucket).Prefix(req.Prefix).Projection("noAcl").
		Fields("kind", "nextPageToken", "prefixes", objectFields)
	if req.Delimiter != "" {
		call.Delimiter(req.Delimiter)
	}
	if req.StartAfter != "" {
		call.StartOffset(req.StartAfter)
	}
	out, err := r.page(ctx, call, req.Token)
	if err != nil {
		return transfer.ListPage{}, err
	}
	page := transfer.ListPage{
		Infos: make([]blob.Info, 0, len(out.Items)+len(out.Prefixes)),
		More:  out.NextPageToken != "",
		Token: out.NextPageToken,
	}
	for _, obj := range out.Items {
		page.Infos = append(page.Infos, infoOf(obj))
	}
	for _, p := range out.Prefixes {
		page.Infos = append(page.Infos, blob.Info{Key: p, IsPrefix: true})
	}
	return page, nil
}

// page fetches one page of a listing. The last one has no token, so a document that does not say it is a page of a listing
// must not pass for an empty one.
func (r *requests) page(ctx context.Context, call *rawstorage.ObjectsListCall, token string) (*rawstorage.Objects, error) {
	if token != "" {
		call.PageToken(token)
	}
	st := &sent{}
	out, err := call.Context(st.watch(ctx)).Do()
	if err != nil {
		return nil, r.fault(ctx, err, st)
	}
	if out.Kind != "storage#objects" {
		return nil, unreadable(fmt.Errorf("the reply is no listing but %q", out.Kind))
	}
	return out, nil
}
