package fakes3_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
// a second one, bucket+"-versioned", is made with versioning enabled.
func conform(t *testing.T, client *s3.Client, bucket string, dev map[string]string) {
	t.Helper()
	makeVersioned(t, client, bucket+"-versioned")
	known := map[string]bool{}
	run := rand.Uint32()
	for _, ck := range allChecks() {
		known[ck.name] = true
		t.Run(ck.name, func(t *testing.T) {
			cf := &conf{Context: t.Context(), c: client, bucket: bucket, min: 5 << 20, prefix: fmt.Sprintf("%08x/%s/", run, ck.name)}
			err := ck.run(cf)
			what, listed := dev[ck.name]
			if listed && err != nil {
				t.Logf("known deviation, %s: %v", what, err)
			}
			if err := verdict(err, what, listed); err != nil {
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

// verdict is what is wrong with the outcome of a check.
func verdict(outcome error, what string, listed bool) error {
	switch {
	case listed && outcome == nil:
		return fmt.Errorf("listed as a deviation (%s), but it holds now", what)
	case listed:
		return nil
	}
	return outcome
}

func TestStaleDeviationsAreNoticed(t *testing.T) {
	failed := errors.New("failed")
	if verdict(nil, "", false) != nil || verdict(failed, "fails", true) != nil {
		t.Error("an outcome as expected is reported")
	}
	if verdict(failed, "", false) == nil || verdict(nil, "fails", true) == nil {
		t.Error("an outcome that is not expected goes through")
	}
}

func makeVersioned(t *testing.T, client *s3.Client, name string) {
	t.Helper()
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket:                  &name,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	}); err != nil {
		t.Fatal(err)
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
