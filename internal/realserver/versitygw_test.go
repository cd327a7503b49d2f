package realserver

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

func TestVersityGWStoresListsAndDeletes(t *testing.T) {
	storesListsAndDeletes(t, VersityGW(t))
}

func storesListsAndDeletes(t *testing.T, s *S3) {
	t.Helper()
	client, bucket, ctx := s.Client(), aws.String(s.NewBucket(t)), t.Context()
	want := bytes.Repeat([]byte("wholeblob"), 1000)
	keys := []string{"a", "dir/b", "dir/c"}
	for _, key := range keys {
		_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: bytes.NewReader(want)})
		if err != nil {
			t.Fatal(err)
		}
	}

	got, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: aws.String("dir/b")})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(got.Body)
	if err := errors.Join(err, got.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(body, want) {
		t.Errorf("read %d bytes that are not the %d written", len(body), len(want))
	}

	if listed := list(t, s, *bucket); strings.Join(listed, " ") != strings.Join(keys, " ") {
		t.Errorf("listed %q, want %q", listed, keys)
	}
	for _, key := range keys {
		if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: &key}); err != nil {
			t.Fatal(err)
		}
	}
	if listed := list(t, s, *bucket); len(listed) != 0 {
		t.Errorf("listed %q after all were deleted", listed)
	}
}

func list(t *testing.T, s *S3, bucket string) []string {
	t.Helper()
	out, err := s.Client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	return keys
}

func TestBucketKeepsDeletedObjectsOnlyWhenVersioned(t *testing.T) {
	keepsDeletedObjectsOnlyWhenVersioned(t, VersityGW(t))
}

func keepsDeletedObjectsOnlyWhenVersioned(t *testing.T, s *S3) {
	t.Helper()
	for name, opts := range map[string][]BucketOption{"plain": nil, "versioned": {Versioned}} {
		t.Run(name, func(t *testing.T) {
			client, bucket, ctx := s.Client(), aws.String(s.NewBucket(t, opts...)), t.Context()
			key := aws.String("k")
			if _, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("v")}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: key}); err != nil {
				t.Fatal(err)
			}
			_, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key})
			var gone *types.NoSuchKey
			if !errors.As(err, &gone) {
				t.Errorf("get of a deleted key: %v", err)
			}
			out, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: bucket})
			if err != nil {
				t.Fatal(err)
			}
			if want := len(opts); len(out.Versions) != want || len(out.DeleteMarkers) != want {
				t.Errorf("%d versions and %d markers, want %d of each", len(out.Versions), len(out.DeleteMarkers), want)
			}
		})
	}
}

func TestServerChecksSignatures(t *testing.T) {
	checksSignatures(t, VersityGW(t))
}

func checksSignatures(t *testing.T, s *S3) {
	t.Helper()
	other := *s
	other.SecretKey = "wrong"
	_, err := other.CreateBucket(t.Context(), t.Name())
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "SignatureDoesNotMatch" {
		t.Errorf("a client with the wrong secret: %v", err)
	}
}

// A file system without extended attributes must not change what tests see.
func TestVersityGWServesWithoutXattrs(t *testing.T) {
	VersityGW(t) // skips where there is none
	without := newKind(versityGW.program, versityGWWith(func(string) bool { return false }))
	s, err := without.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Note, "sidecar") {
		t.Errorf("the server does not say how it keeps metadata: %v", s)
	}
	client, bucket, key := s.Client(), aws.String(s.NewBucket(t, Versioned)), aws.String("k")
	_, err = client.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: bucket, Key: key, Body: strings.NewReader("v"), Metadata: map[string]string{"m": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	head, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: key})
	if err != nil || head.Metadata["m"] != "1" {
		t.Errorf("head: %v, %v", head, err)
	}
	if _, err := os.Stat(s.proc.dir + "/meta/" + *bucket); err != nil {
		t.Errorf("the metadata is not in the sidecar folder: %v", err)
	}
}
