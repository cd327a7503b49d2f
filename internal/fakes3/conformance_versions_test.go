package fakes3_test

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// versioned is f on the bucket that keeps versions.
func (f *conf) versioned() *conf {
	g := *f
	g.bucket += "-versioned"
	return &g
}

func versionCheck(name string, run func(*conf) error) check {
	return check{name, func(f *conf) error { return run(f.versioned()) }}
}

func headerOf(err error, name string) string {
	var re *awshttp.ResponseError
	if errors.As(err, &re) && re.HTTPResponse() != nil {
		return re.HTTPResponse().Header.Get(name)
	}
	return ""
}

func version(id *string) func(*s3.GetObjectInput) {
	return func(in *s3.GetObjectInput) { in.VersionId = id }
}

// allVersions lists every version in pages: key, id and whether it is a marker.
func (f *conf) allVersions(limit int32) (ids []string, err error) {
	in := &s3.ListObjectVersionsInput{Bucket: &f.bucket, Prefix: &f.prefix}
	if limit > 0 {
		in.MaxKeys = &limit
	}
	for range 50 {
		out, err := f.c.ListObjectVersions(f, in)
		if err != nil {
			return nil, err
		}
		for _, v := range out.Versions {
			ids = append(ids, *v.VersionId)
		}
		for _, m := range out.DeleteMarkers {
			ids = append(ids, *m.VersionId)
		}
		if !aws.ToBool(out.IsTruncated) {
			return ids, nil
		}
		in.KeyMarker, in.VersionIdMarker = out.NextKeyMarker, out.NextVersionIdMarker
	}
	return nil, errors.New("the listing does not end")
}

var versionChecks = []check{
	{"versioning-status", func(f *conf) error {
		out, err := f.c.GetBucketVersioning(f, &s3.GetBucketVersioningInput{Bucket: &f.bucket})
		g := f.versioned()
		vout, verr := g.c.GetBucketVersioning(g, &s3.GetBucketVersioningInput{Bucket: &g.bucket})
		if err := all(err, verr); err != nil {
			return err
		}
		return all(same("plain", out.Status, ""), same("versioned", vout.Status, types.BucketVersioningStatusEnabled))
	}},
	versionCheck("versions-are-kept", func(f *conf) error {
		one, err1 := f.put("k", []byte("1"))
		two, err2 := f.put("k", []byte("2"))
		if err := all(err1, err2); err != nil {
			return err
		}
		if one.VersionId == nil || two.VersionId == nil {
			return errors.New("put without a version id")
		}
		old, err := f.get("k", version(one.VersionId))
		if err != nil {
			return err
		}
		return all(same("old", string(old.data), "1"), f.holds("k", []byte("2")))
	}),
	versionCheck("delete-leaves-a-marker", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		out, derr := f.del("k")
		if err := all(err, derr); err != nil {
			return err
		}
		_, gerr := f.get("k")
		return all(
			same("marker", aws.ToBool(out.DeleteMarker), true),
			refused(gerr, 404, "NoSuchKey"),
			same("x-amz-delete-marker", headerOf(gerr, "x-amz-delete-marker"), "true"),
			f.listed(s3.ListObjectsV2Input{}),
		)
	}),
	versionCheck("get-of-a-marker", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		out, derr := f.del("k")
		if err := all(err, derr); err != nil {
			return err
		}
		_, gerr := f.get("k", version(out.VersionId))
		return refused(gerr, 405, "MethodNotAllowed")
	}),
	versionCheck("deleting-the-marker-restores", func(f *conf) error {
		_, err1 := f.put("k", []byte("1"))
		_, err2 := f.put("k", []byte("2"))
		out, derr := f.del("k")
		if err := all(err1, err2, derr); err != nil {
			return err
		}
		undo, uerr := f.del("k", func(in *s3.DeleteObjectInput) { in.VersionId = out.VersionId })
		if uerr != nil {
			return uerr
		}
		return all(same("marker", aws.ToBool(undo.DeleteMarker), true), f.holds("k", []byte("2")))
	}),
	versionCheck("create-over-a-marker", func(f *conf) error {
		_, err1 := f.put("k", []byte("1"))
		_, err2 := f.del("k")
		_, err3 := f.put("k", []byte("2"), ifAbsent)
		return all(err1, err2, err3, f.holds("k", []byte("2")))
	}),
	versionCheck("version-deleted-for-good", func(f *conf) error {
		one, err1 := f.put("k", []byte("1"))
		_, err2 := f.put("k", []byte("2"))
		if err := all(err1, err2); err != nil {
			return err
		}
		_, err := f.del("k", func(in *s3.DeleteObjectInput) { in.VersionId = one.VersionId })
		_, gerr := f.get("k", version(one.VersionId))
		return all(err, refused(gerr, 404, "NoSuchVersion"), f.holds("k", []byte("2")))
	}),
	versionCheck("list-versions", func(f *conf) error { return f.pagedVersions(0) }),
	versionCheck("list-versions-paged", func(f *conf) error { return f.pagedVersions(1) }),
}

func (f *conf) pagedVersions(limit int32) error {
	var want []string // keys in order, newest first
	for _, key := range []string{"a", "b"} {
		one, err1 := f.put(key, []byte("1"))
		two, err2 := f.put(key, []byte("2"))
		if err := all(err1, err2); err != nil {
			return err
		}
		want = append(want, aws.ToString(two.VersionId), aws.ToString(one.VersionId))
	}
	have, err := f.allVersions(limit)
	return all(err, same("versions", fmt.Sprint(have), fmt.Sprint(want)))
}
