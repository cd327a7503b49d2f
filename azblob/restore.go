package azblob

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	sdkblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
)

// DeletedVersions implements transfer.Requests. On an account with soft delete a deleted blob is listed as one entry that says so; on one with
// versions all of them are, and the newest is the current one unless the blob has been deleted ("Soft delete for blobs", "Blob versioning").
func (r *requests) DeletedVersions(ctx context.Context, key, token string) (transfer.VersionPage, error) {
	if !addressable(key) {
		return transfer.VersionPage{}, nil
	}
	st := &sent{}
	out, err := r.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: &key, Marker: optional(token), ResponseFormat: container.StorageResponseFormatXML,
		Include: container.ListBlobsInclude{Deleted: r.keeps == KeepsDeleted, Versions: r.keeps == KeepsVersions},
	}).NextPage(st.watch(ctx))
	if err != nil {
		return transfer.VersionPage{}, r.fault(ctx, err, st)
	}
	var page transfer.VersionPage
	next, err := goesOn(out.NextMarker)
	if err != nil {
		return page, err
	}
	if out.Segment == nil {
		page.Token = next
		return page, nil
	}
	for _, item := range out.Segment.BlobItems {
		switch {
		case item == nil || item.Name == nil:
			return page, unreadable("a listing holds a blob without a name")
		case *item.Name != key:
			next = "" // the names that begin with the key come after it
		case value(item.Snapshot) == "":
			page.Versions = append(page.Versions, kept(item))
		}
	}
	page.Token = next
	slices.SortStableFunc(page.Versions, func(a, b transfer.KeptVersion) int { return strings.Compare(b.ID, a.ID) }) // ids are times
	return page, nil
}

func kept(item *container.BlobItem) transfer.KeptVersion {
	v := transfer.KeptVersion{Key: *item.Name, ID: value(item.VersionID)}
	v.Latest = value(item.IsCurrentVersion) || v.ID == "" && !value(item.Deleted)
	v.Deleted = !v.Latest
	if item.Properties != nil {
		v.ModTime = value(item.Properties.LastModified)
	}
	return v
}

// Undelete implements transfer.Requests. A soft-deleted blob is undeleted, which does nothing to one that is not deleted ("Undelete Blob"). A version is copied
// over its own blob, with its metadata, only if there is none ("Blob versioning", promote a version).
func (r *requests) Undelete(ctx context.Context, v transfer.KeptVersion) error {
	st := &sent{}
	client := r.client.NewBlobClient(v.Key)
	if v.ID == "" {
		if _, err := client.Undelete(st.watch(ctx), nil); err != nil {
			return r.fault(ctx, err, st)
		}
		return nil
	}
	source, err := versionURL(client.URL(), v.ID)
	if err != nil {
		return &blob.Error{Kind: blob.ErrInvalidOption, Outcome: blob.NotApplied, Err: scrub(err, r.secrets)}
	}
	out, err := client.StartCopyFromURL(st.watch(ctx), source, &sdkblob.StartCopyFromURLOptions{AccessConditions: conditions(blob.IfAbsent())})
	if err != nil {
		return onKey(blob.IfAbsent(), r.fault(ctx, err, st))
	}
	if s := value(out.CopyStatus); s != sdkblob.CopyStatusTypeSuccess {
		return &blob.Error{Kind: blob.ErrConflict, Status: st.status, Err: errors.New("the copy of a version is " + fmt.Sprintf("%q", s) + ", not done")}
	}
	return nil
}

func versionURL(address, id string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set("versionid", id)
	u.RawQuery = q.Encode()
	return u.String(), nil
}
