package fakes3_test

import (
	"bytes"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

var objectChecks = []check{
	{"put-get-round-trip", func(f *conf) error {
		data := noise(100_000)
		out, err := f.put("k", data)
		if err != nil {
			return err
		}
		return all(same("etag", aws.ToString(out.ETag), md5ETag(data)), f.holds("k", data))
	}},
	{"overwrite", func(f *conf) error {
		_, err1 := f.put("k", []byte("one"))
		_, err2 := f.put("k", []byte("second"))
		if err := all(err1, err2, f.holds("k", []byte("second"))); err != nil {
			return err
		}
		_, derr := f.del("k")
		_, gerr := f.get("k")
		return all(derr, refused(gerr, 404, "NoSuchKey"))
	}},
	{"zero-bytes", func(f *conf) error {
		_, err := f.put("k", nil)
		h, herr := f.head("k")
		if err := all(err, herr); err != nil {
			return err
		}
		return all(same("length", aws.ToInt64(h.ContentLength), 0), f.holds("k", nil))
	}},
	{"get-absent-is-404", func(f *conf) error {
		_, err := f.get("absent")
		return refused(err, 404, "NoSuchKey")
	}},
	{"head-absent-is-404", func(f *conf) error {
		_, err := f.head("absent")
		return refused(err, 404, "")
	}},
	{"no-such-bucket", func(f *conf) error {
		g := *f
		g.bucket += "-that-is-not-there"
		_, err := g.get("k")
		return refused(err, 404, "NoSuchBucket")
	}},
	{"head-describes", func(f *conf) error {
		_, err := f.put("k", []byte("hello"), func(in *s3.PutObjectInput) {
			in.ContentType = aws.String("text/x-test")
			in.CacheControl = aws.String("no-cache")
			in.Metadata = map[string]string{"plain": "value one", "with_underscore": "2"}
		})
		h, herr := f.head("k")
		if err := all(err, herr); err != nil {
			return err
		}
		return all(
			same("length", aws.ToInt64(h.ContentLength), 5),
			same("type", aws.ToString(h.ContentType), "text/x-test"),
			same("cache-control", aws.ToString(h.CacheControl), "no-cache"),
			same("metadata", h.Metadata["plain"], "value one"),
			same("metadata", h.Metadata["with_underscore"], "2"),
			same("etag", aws.ToString(h.ETag), md5ETag([]byte("hello"))),
		)
	}},
	{"content-encoding-as-stored", func(f *conf) error {
		data := []byte("not really gzip")
		_, err := f.put("k", data, func(in *s3.PutObjectInput) { in.ContentEncoding = aws.String("gzip") })
		g, gerr := f.get("k")
		if err := all(err, gerr); err != nil {
			return err
		}
		return all(same("encoding", aws.ToString(g.ContentEncoding), "gzip"), same("content", string(g.data), string(data)))
	}},
	{"metadata-over-2KiB", func(f *conf) error {
		_, err := f.put("k", nil, func(in *s3.PutObjectInput) {
			in.Metadata = map[string]string{"m": string(bytes.Repeat([]byte("x"), 2100))}
		})
		return refused(err, 400, "MetadataTooLarge")
	}},
	{"delete", func(f *conf) error {
		_, err := f.put("k", []byte("x"))
		_, derr := f.del("k")
		_, gerr := f.get("k")
		return all(err, derr, refused(gerr, 404, "NoSuchKey"))
	}},
	{"delete-absent-succeeds", func(f *conf) error {
		_, err := f.del("absent")
		return err
	}},
	{"copy", func(f *conf) error {
		data := noise(1000)
		_, err := f.put("from", data, func(in *s3.PutObjectInput) { in.Metadata = map[string]string{"m": "1"} })
		_, cerr := f.c.CopyObject(f, &s3.CopyObjectInput{Bucket: &f.bucket, Key: f.key("to"), CopySource: aws.String(f.bucket + "/" + f.prefix + "from")})
		h, herr := f.head("to")
		if err := all(err, cerr, herr); err != nil {
			return err
		}
		return all(f.holds("to", data), same("metadata", h.Metadata["m"], "1"))
	}},
	{"create-bucket-again", func(f *conf) error {
		_, err := f.c.CreateBucket(f, &s3.CreateBucketInput{Bucket: &f.bucket})
		return refused(err, 409, "BucketAlreadyOwnedByYou")
	}},
	{"head-bucket", func(f *conf) error {
		_, err := f.c.HeadBucket(f, &s3.HeadBucketInput{Bucket: &f.bucket})
		missing := f.bucket + "-that-is-not-there"
		_, merr := f.c.HeadBucket(f, &s3.HeadBucketInput{Bucket: &missing})
		return all(err, refused(merr, 404, ""))
	}},
	{"delete-objects", func(f *conf) error { return f.batch(false) }},
	{"delete-objects-quiet", func(f *conf) error { return f.batch(true) }},
	{"delete-objects-1001", func(f *conf) error {
		_, err := f.deleteAll(1001, false)
		return refused(err, 400, "MalformedXML")
	}},
	{"delete-objects-1000", func(f *conf) error {
		out, err := f.deleteAll(1000, true)
		if err != nil {
			return err
		}
		return same("errors", len(out.Errors), 0)
	}},
	{"delete-objects-etag", func(f *conf) error {
		_, err := f.put("k", []byte("x"))
		out, derr := f.c.DeleteObjects(f, &s3.DeleteObjectsInput{Bucket: &f.bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{
			{Key: f.key("k"), ETag: aws.String(md5ETag([]byte("other")))},
		}}})
		if err := all(err, derr); err != nil {
			return err
		}
		if err := same("errors", len(out.Errors), 1); err != nil {
			return err
		}
		return all(same("code", aws.ToString(out.Errors[0].Code), "PreconditionFailed"), f.holds("k", []byte("x")))
	}},
}

func (f *conf) deleteAll(n int, quiet bool) (*s3.DeleteObjectsOutput, error) {
	var ids []types.ObjectIdentifier
	for i := range n {
		ids = append(ids, types.ObjectIdentifier{Key: f.key(fmt.Sprintf("%04d", i))})
	}
	return f.c.DeleteObjects(f, &s3.DeleteObjectsInput{Bucket: &f.bucket, Delete: &types.Delete{Objects: ids, Quiet: &quiet}})
}

func (f *conf) batch(quiet bool) error {
	for i := range 5 {
		if _, err := f.put(fmt.Sprintf("%04d", i), []byte("x")); err != nil {
			return err
		}
	}
	out, err := f.deleteAll(7, quiet) // two of them absent: those succeed too
	if err != nil {
		return err
	}
	want := 7
	if quiet {
		want = 0
	}
	_, gerr := f.get("0003")
	return all(same("deleted", len(out.Deleted), want), same("errors", len(out.Errors), 0), refused(gerr, 404, "NoSuchKey"))
}
