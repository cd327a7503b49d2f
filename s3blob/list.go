package s3blob

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
)

// List implements transfer.Requests. Keys travel percent-encoded, since XML 1.0 cannot hold every character a
// key may have ("ListObjectsV2", EncodingType, Amazon S3 API Reference).
func (r *requests) List(ctx context.Context, req transfer.ListRequest) (transfer.ListPage, error) {
	in := &s3.ListObjectsV2Input{Bucket: &r.bucket, Prefix: &req.Prefix, EncodingType: types.EncodingTypeUrl}
	if req.Delimiter != "" {
		in.Delimiter = &req.Delimiter
	}
	if req.StartAfter != "" {
		in.StartAfter = &req.StartAfter
	}
	if req.Token != "" {
		in.ContinuationToken = &req.Token
	}
	st := &sent{}
	out, err := r.client.ListObjectsV2(st.watch(ctx), in)
	if err != nil {
		return transfer.ListPage{}, r.fault(ctx, err, st)
	}
	return listPage(out)
}

func listPage(out *s3.ListObjectsV2Output) (transfer.ListPage, error) {
	page := transfer.ListPage{
		Infos: make([]blob.Info, 0, len(out.Contents)+len(out.CommonPrefixes)),
		Token: aws.ToString(out.NextContinuationToken),
	}
	var err error
	if page.More, err = goesOn(out.IsTruncated, page.Token); err != nil {
		return page, err
	}
	decode := decoder(string(out.EncodingType))
	for _, o := range out.Contents {
		key, err := decode(aws.ToString(o.Key))
		if err != nil {
			return page, err
		}
		page.Infos = append(page.Infos, blob.Info{
			Key: key, Size: aws.ToInt64(o.Size), Version: unquoted(o.ETag), ModTime: aws.ToTime(o.LastModified),
		})
	}
	for _, p := range out.CommonPrefixes {
		key, err := decode(aws.ToString(p.Prefix))
		if err != nil {
			return page, err
		}
		page.Infos = append(page.Infos, blob.Info{Key: key, IsPrefix: true})
	}
	return page, nil
}

// goesOn reports whether a listing goes on. One that does not say so may be any document, or none: only a token stands in
// for the word, and the absence of both is not the end.
func goesOn(truncated *bool, token string) (bool, error) {
	if truncated == nil && token == "" {
		return false, unreadable(errors.New("the reply does not say whether the listing goes on"))
	}
	return truncated == nil || *truncated, nil
}

// decoder returns how keys of a reply are to be read: percent-encoded only if the reply says so, whatever
// was asked for.
func decoder(encoding string) func(string) (string, error) {
	if !strings.EqualFold(encoding, "url") {
		return func(s string) (string, error) { return s, nil }
	}
	return func(s string) (string, error) {
		key, err := url.QueryUnescape(s)
		if err != nil {
			return "", unreadable(fmt.Errorf("a key is badly encoded: %w", err))
		}
		return key, nil
	}
}

// unreadable is a reply to a read that makes no sense.
func unreadable(err error) error {
	return &blob.Error{Kind: blob.ErrCorrupt, Outcome: blob.NotApplied, Err: err}
}

// A token of two markers: keys cannot hold a NUL that anyone could tell from ours, ids never do.
func joinToken(key, id string) string { return id + "\x00" + key }

func cutToken(token string) (key, id string, ok bool) {
	id, key, ok = strings.Cut(token, "\x00")
	return key, id, ok
}

// DeletedVersions implements transfer.Requests: object versions and delete markers of one key, newest first.
func (r *requests) DeletedVersions(ctx context.Context, key, token string) (transfer.VersionPage, error) {
	in := &s3.ListObjectVersionsInput{Bucket: &r.bucket, Prefix: &key, EncodingType: types.EncodingTypeUrl}
	if k, id, ok := cutToken(token); ok {
		in.KeyMarker, in.VersionIdMarker = &k, &id
	}
	st := &sent{}
	out, err := r.client.ListObjectVersions(st.watch(ctx), in)
	if err != nil {
		return transfer.VersionPage{}, r.fault(ctx, err, st)
	}
	decode := decoder(string(out.EncodingType))
	var page transfer.VersionPage
	add := func(k, id *string, latest *bool, v transfer.KeptVersion) error {
		name, err := decode(aws.ToString(k))
		if err == nil && name == key {
			v.Key, v.ID, v.Latest = name, aws.ToString(id), aws.ToBool(latest)
			page.Versions = append(page.Versions, v)
		}
		return err
	}
	for _, v := range out.Versions {
		if err := add(v.Key, v.VersionId, v.IsLatest, transfer.KeptVersion{ModTime: aws.ToTime(v.LastModified)}); err != nil {
			return page, err
		}
	}
	for _, m := range out.DeleteMarkers {
		if err := add(m.Key, m.VersionId, m.IsLatest, transfer.KeptVersion{Marker: true, ModTime: aws.ToTime(m.LastModified)}); err != nil {
			return page, err
		}
	}
	more, err := goesOn(out.IsTruncated, aws.ToString(out.NextKeyMarker))
	if err != nil {
		return page, err
	}
	if more {
		k, err := decode(aws.ToString(out.NextKeyMarker))
		if err != nil {
			return page, err
		}
		if k == key { // else the page has gone on to keys that begin with ours
			page.Token = joinToken(k, aws.ToString(out.NextVersionIdMarker))
		}
	}
	newestFirst(page.Versions)
	return page, nil
}

// newestFirst puts the versions and the marks of one key, which a reply lists apart, in the order of their age. The service says which
// one is the newest; times have a resolution of a second, so of two with the same time a mark counts as the newer, as
// long as it is not contradicted.
func newestFirst(vs []transfer.KeptVersion) {
	slices.SortStableFunc(vs, func(a, b transfer.KeptVersion) int {
		switch {
		case a.Latest != b.Latest:
			return order(a.Latest)
		case !a.ModTime.Equal(b.ModTime):
			return b.ModTime.Compare(a.ModTime)
		case a.Marker != b.Marker:
			return order(a.Marker)
		}
		return 0
	})
}

func order(first bool) int {
	if first {
		return -1
	}
	return 1
}
