package azblob

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
)

// List implements transfer.Requests. Without further words it lists blobs as they are now: no snapshots, versions, deleted or uncommitted ones
// ("List Blobs", include).
func (r *requests) List(ctx context.Context, req transfer.ListRequest) (transfer.ListPage, error) {
	st := &sent{}
	var (
		items    []*container.BlobItem
		prefixes []*container.BlobPrefix
		next     *string
	)
	if req.Delimiter == "" {
		// A new pager for each page: More is not asked, so it makes one request.
		out, err := r.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
			Prefix: optional(req.Prefix), Marker: optional(req.Token), ResponseFormat: container.StorageResponseFormatXML,
		}).NextPage(st.watch(ctx))
		if err != nil {
			return transfer.ListPage{}, r.fault(ctx, err, st)
		}
		if next = out.NextMarker; out.Segment != nil {
			items = out.Segment.BlobItems
		}
	} else {
		out, err := r.client.NewListBlobsHierarchyPager(req.Delimiter, &container.ListBlobsHierarchyOptions{
			Prefix: optional(req.Prefix), Marker: optional(req.Token), ResponseFormat: container.StorageResponseFormatXML,
		}).NextPage(st.watch(ctx))
		if err != nil {
			return transfer.ListPage{}, r.fault(ctx, err, st)
		}
		if next = out.NextMarker; out.Segment != nil {
			items, prefixes = out.Segment.BlobItems, out.Segment.BlobPrefixes
		}
	}
	return listPage(items, prefixes, next)
}

func listPage(items []*container.BlobItem, prefixes []*container.BlobPrefix, next *string) (transfer.ListPage, error) {
	page := transfer.ListPage{Infos: make([]blob.Info, 0, len(items)+len(prefixes))}
	var err error
	if page.Token, err = goesOn(next); err != nil {
		return page, err
	}
	page.More = page.Token != ""
	for _, item := range items {
		// The SDK has decoded names that XML cannot hold.
		if item == nil || item.Name == nil || item.Properties == nil || item.Properties.ContentLength == nil {
			return page, unreadable("a listing holds a blob without a name or without a length")
		}
		page.Infos = append(page.Infos, blob.Info{
			Key: *item.Name, Size: *item.Properties.ContentLength,
			Version: unquoted(item.Properties.ETag), ModTime: value(item.Properties.LastModified),
		})
	}
	for _, p := range prefixes {
		if p == nil || p.Name == nil {
			return page, unreadable("a listing holds a prefix without a name")
		}
		page.Infos = append(page.Infos, blob.Info{Key: *p.Name, IsPrefix: true})
	}
	return page, nil
}

// goesOn returns where a listing goes on, "" at its end. The element NextMarker is there on the last page too, and empty ("List Blobs"): without it
// the reply may be any document, or none, and is not the end.
func goesOn(next *string) (string, error) {
	if next == nil {
		return "", unreadable("the reply does not say whether the listing goes on")
	}
	return *next, nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
