package fakes3_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// check is one named fact about S3.
type check struct {
	name string
	run  func(*conf) error
}

// conf is what a check has at hand: a client, a bucket, and a prefix that no
// other check uses.
type conf struct {
	context.Context
	c      *s3.Client
	bucket string
	prefix string
	min    int // smallest part but the last
}

// conform runs every check against a server. dev names the checks that this
// server is known to fail, with what it does instead: such a check must
// fail, so that a list that has gone stale is noticed. The bucket must exist;
// a second one, bucket+"-versioned", must have versioning enabled.
func conform(t *testing.T, client *s3.Client, bucket string, dev map[string]string) {
	t.Helper()
	known := map[string]bool{}
	run := rand.Uint32()
	for _, ck := range allChecks() {
		known[ck.name] = true
		t.Run(ck.name, func(t *testing.T) {
			cf := &conf{Context: t.Context(), c: client, bucket: bucket, min: 5 << 20, prefix: fmt.Sprintf("%08x/%s/", run, ck.name)}
			err := ck.run(cf)
			switch what, listed := dev[ck.name]; {
			case listed && err == nil:
				t.Errorf("listed as a deviation (%s), but it holds now", what)
			case listed:
				t.Logf("known deviation, %s: %v", what, err)
			case err != nil:
				t.Error(err)
			}
		})
	}
	for name := range dev {
		if !known[name] {
			t.Errorf("the list of deviations names an unknown check %q", name)
		}
	}
}

func allChecks() []check {
	var all []check
	for _, list := range [][]check{objectChecks, rangeChecks, conditionChecks, multipartChecks, listChecks, versionChecks, integrityChecks, keyChecks} {
		all = append(all, list...)
	}
	return all
}

// Helpers: each does one request.

func (f *conf) key(name string) *string { return aws.String(f.prefix + name) }

func (f *conf) put(name string, data []byte, change ...func(*s3.PutObjectInput)) (*s3.PutObjectOutput, error) {
	in := &s3.PutObjectInput{Bucket: &f.bucket, Key: f.key(name), Body: bytes.NewReader(data)}
	for _, ch := range change {
		ch(in)
	}
	return f.c.PutObject(f, in)
}

type got struct {
	*s3.GetObjectOutput
	data []byte
}

func (f *conf) get(name string, change ...func(*s3.GetObjectInput)) (*got, error) {
	in := &s3.GetObjectInput{Bucket: &f.bucket, Key: f.key(name)}
	for _, ch := range change {
		ch(in)
	}
	out, err := f.c.GetObject(f, in)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(out.Body)
	if cerr := out.Body.Close(); err == nil {
		err = cerr
	}
	return &got{out, data}, err
}

func (f *conf) head(name string, change ...func(*s3.HeadObjectInput)) (*s3.HeadObjectOutput, error) {
	in := &s3.HeadObjectInput{Bucket: &f.bucket, Key: f.key(name)}
	for _, ch := range change {
		ch(in)
	}
	return f.c.HeadObject(f, in)
}

func (f *conf) del(name string, change ...func(*s3.DeleteObjectInput)) (*s3.DeleteObjectOutput, error) {
	in := &s3.DeleteObjectInput{Bucket: &f.bucket, Key: f.key(name)}
	for _, ch := range change {
		ch(in)
	}
	return f.c.DeleteObject(f, in)
}

// holds checks that key has exactly this content.
func (f *conf) holds(name string, want []byte) error {
	g, err := f.get(name)
	if err != nil {
		return fmt.Errorf("get %s: %w", name, err)
	}
	return same("content of "+name, string(g.data), string(want))
}

// Expectations: nil when they are met.

func same[T comparable](what string, have, want T) error {
	if have == want {
		return nil
	}
	if s, ok := any(have).(string); ok && len(s) > 100 {
		return fmt.Errorf("%s: %d bytes that differ from the %d wanted", what, len(s), len(any(want).(string)))
	}
	return fmt.Errorf("%s: have %v, want %v", what, have, want)
}

func statusOf(err error) int {
	var re *awshttp.ResponseError
	if errors.As(err, &re) {
		return re.HTTPStatusCode()
	}
	return 0
}

// refused checks that err is an answer with a status and a code; code "" for
// answers without a body.
func refused(err error, status int, code string) error {
	if err == nil {
		return fmt.Errorf("accepted, want %d %s", status, code)
	}
	var ae smithy.APIError
	if statusOf(err) != status || code != "" && (!errors.As(err, &ae) || ae.ErrorCode() != code) {
		return fmt.Errorf("want %d %s: %w", status, code, err)
	}
	return nil
}

func all(errs ...error) error { return errors.Join(errs...) }

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b) // never fails
	return b
}

func md5ETag(b []byte) string { return fmt.Sprintf(`"%x"`, md5.Sum(b)) }

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
		return all(err1, err2, f.holds("k", []byte("second")))
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

var conditionChecks = []check{
	{"if-none-match-star-on-absent", func(f *conf) error {
		_, err := f.put("k", []byte("1"), ifNone("*"))
		return all(err, f.holds("k", []byte("1")))
	}},
	{"if-none-match-star-on-present", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, perr := f.put("k", []byte("2"), ifNone("*"))
		return all(err, refused(perr, 412, "PreconditionFailed"), f.holds("k", []byte("1")))
	}},
	{"if-match-right", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, perr := f.put("k", []byte("2"), ifMatch(md5ETag([]byte("1"))))
		return all(err, perr, f.holds("k", []byte("2")))
	}},
	{"if-match-wrong", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, perr := f.put("k", []byte("2"), ifMatch(md5ETag([]byte("x"))))
		return all(err, refused(perr, 412, "PreconditionFailed"), f.holds("k", []byte("1")))
	}},
	{"if-match-absent", func(f *conf) error {
		_, err := f.put("k", []byte("2"), ifMatch(md5ETag([]byte("x"))))
		return refused(err, 404, "NoSuchKey")
	}},
	{"delete-if-match-wrong", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, derr := f.del("k", func(in *s3.DeleteObjectInput) { in.IfMatch = aws.String(md5ETag([]byte("x"))) })
		return all(err, refused(derr, 412, "PreconditionFailed"), f.holds("k", []byte("1")))
	}},
	{"delete-if-match-right", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, derr := f.del("k", func(in *s3.DeleteObjectInput) { in.IfMatch = aws.String(md5ETag([]byte("1"))) })
		_, gerr := f.get("k")
		return all(err, derr, refused(gerr, 404, "NoSuchKey"))
	}},
	{"delete-if-match-absent", func(f *conf) error {
		_, err := f.del("k", func(in *s3.DeleteObjectInput) { in.IfMatch = aws.String(md5ETag([]byte("1"))) })
		return refused(err, 404, "NoSuchKey")
	}},
	{"get-if-match", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, yes := f.get("k", func(in *s3.GetObjectInput) { in.IfMatch = aws.String(md5ETag([]byte("1"))) })
		_, no := f.get("k", func(in *s3.GetObjectInput) { in.IfMatch = aws.String(md5ETag([]byte("2"))) })
		return all(err, yes, refused(no, 412, "PreconditionFailed"))
	}},
	{"get-if-none-match", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, no := f.get("k", func(in *s3.GetObjectInput) { in.IfNoneMatch = aws.String(md5ETag([]byte("1"))) })
		_, yes := f.get("k", func(in *s3.GetObjectInput) { in.IfNoneMatch = aws.String(md5ETag([]byte("2"))) })
		return all(err, yes, refused(no, 304, ""))
	}},
	{"get-if-modified-since", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		h, herr := f.head("k")
		if err := all(err, herr); err != nil {
			return err
		}
		_, no := f.get("k", func(in *s3.GetObjectInput) { in.IfModifiedSince = h.LastModified })
		old := h.LastModified.Add(-3600e9)
		_, yes := f.get("k", func(in *s3.GetObjectInput) { in.IfModifiedSince = &old })
		_, un := f.get("k", func(in *s3.GetObjectInput) { in.IfUnmodifiedSince = &old })
		return all(refused(no, 304, ""), yes, refused(un, 412, "PreconditionFailed"))
	}},
	{"racing-creators-one-wins", func(f *conf) error {
		const racers = 8
		won := make(chan error, racers)
		for i := range racers {
			go func() {
				_, err := f.put("k", []byte{byte(i)}, ifNone("*"))
				won <- err
			}()
		}
		winners := 0
		for range racers {
			err := <-won
			switch st := statusOf(err); {
			case err == nil:
				winners++
			case st != http.StatusPreconditionFailed && st != http.StatusConflict:
				return err
			}
		}
		return same("winners", winners, 1)
	}},
}

func ifNone(v string) func(*s3.PutObjectInput) {
	return func(in *s3.PutObjectInput) { in.IfNoneMatch = &v }
}

func ifMatch(v string) func(*s3.PutObjectInput) {
	return func(in *s3.PutObjectInput) { in.IfMatch = &v }
}
