package gcsblob

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/storage"
	rawstorage "google.golang.org/api/storage/v1"

	"github.com/wholeblob/wholeblob/internal/transfer"
)

// DeletedVersions implements transfer.Requests: one page of the generations of key that are kept though they are deleted or overwritten,
// newest first. Neither way of keeping has markers. Both list the current generation apart ("Use soft-deleted objects") or beside
// the others ("Use versioned objects").
func (r *requests) DeletedVersions(ctx context.Context, key, token string) (transfer.VersionPage, error) {
	call := r.raw.Objects.List(r.bucket).Prefix(key).Projection("noAcl").
		Fields("kind", "nextPageToken", "items(name,generation,timeDeleted,softDeleteTime)")
	if r.keep == RestoreSoftDelete {
		call.SoftDeleted(true)
	} else {
		call.Versions(true)
	}
	out, err := r.page(ctx, call, token)
	if err != nil {
		return transfer.VersionPage{}, err
	}
	page := transfer.VersionPage{Token: out.NextPageToken}
	for _, obj := range out.Items {
		if obj.Name != key {
			page.Token = "" // names are in order: the list has gone on to keys that begin with ours
			continue
		}
		page.Versions = append(page.Versions, kept(obj))
	}
	slices.SortFunc(page.Versions, func(a, b transfer.KeptVersion) int { return cmp.Compare(gen(b.ID), gen(a.ID)) })
	return page, nil
}

func kept(obj *rawstorage.Object) transfer.KeptVersion {
	deleted := cmp.Or(obj.SoftDeleteTime, obj.TimeDeleted)
	at, _ := time.Parse(time.RFC3339, deleted) // in full: it tells which one is newer
	return transfer.KeptVersion{
		Key: obj.Name, ID: generationText(obj.Generation), ModTime: at,
		Deleted: deleted != "", Latest: deleted == "",
	}
}

// gen is the number of a generation. Later ones are greater ("Object Versioning").
func gen(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64)
	return n
}

// Undelete implements transfer.Requests: a soft-deleted generation is restored, a noncurrent one copied onto its name; both make a new
// generation, and only where there is none: else it is ErrPrecondition, and doing it twice is doing it once.
func (r *requests) Undelete(ctx context.Context, v transfer.KeptVersion) error {
	st := &sent{}
	var err error
	if r.keep == RestoreSoftDelete {
		_, err = r.object(v.Key).Generation(gen(v.ID)).If(storage.Conditions{DoesNotExist: true}).
			Restore(st.watch(ctx), &storage.RestoreOptions{})
	} else {
		// One request: within a bucket no bytes are moved ("Objects: copy").
		_, err = r.raw.Objects.Copy(r.bucket, v.Key, r.bucket, v.Key, &rawstorage.Object{}).
			SourceGeneration(gen(v.ID)).IfGenerationMatch(0).Context(st.watch(ctx)).Do()
	}
	if err != nil {
		return r.fault(ctx, err, st)
	}
	return nil
}
