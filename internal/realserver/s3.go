package realserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// S3 is a running S3 server.
type S3 struct {
	Server    // Endpoint is http://127.0.0.1:port
	Region    string
	AccessKey string
	SecretKey string // random per process, so no client can reach the wrong server unnoticed
	PathStyle bool   // whether the bucket goes into the path; true for every loopback server
}

func newS3(note string) *S3 {
	return &S3{
		Server: Server{Note: note}, Region: "us-east-1", PathStyle: true,
		AccessKey: "wholeblobtest", SecretKey: randomHex(),
	}
}

// knowsTheSecret asks something signed, to which no other server at the endpoint would agree.
func (s *S3) knowsTheSecret(ctx context.Context) error {
	_, err := s.Client().ListBuckets(ctx, &s3.ListBucketsInput{})
	return err
}

// BucketOption is a property of a new bucket.
type BucketOption int

// Versioned turns versioning on: overwritten and deleted objects are kept.
const Versioned BucketOption = 1

// NewBucket creates a bucket that no other test has. It is removed with the
// server's data.
func (s *S3) NewBucket(t testing.TB, opts ...BucketOption) string {
	t.Helper()
	name, err := s.CreateBucket(t.Context(), t.Name(), opts...)
	if err != nil {
		t.Fatalf("realserver: %v: %v", s, err)
	}
	return name
}

// CreateBucket creates a bucket whose name is unique and begins with what can
// be kept of hint.
func (s *S3) CreateBucket(ctx context.Context, hint string, opts ...BucketOption) (string, error) {
	name := bucketName(hint)
	client := s.Client()
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name}); err != nil {
		return "", fmt.Errorf("create bucket %s: %w", name, err)
	}
	if !slices.Contains(opts, Versioned) {
		return name, nil
	}
	_, err := client.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket:                  &name,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		return "", fmt.Errorf("turn on versioning of bucket %s: %w", name, err)
	}
	return name, nil
}

// Client returns a client of the server's own SDK, for setting up and for
// looking at what really is in the store. It never retries and keeps no
// connection, so it leaves no goroutine behind.
func (s *S3) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint:     aws.String(s.Endpoint),
		Region:           s.Region,
		UsePathStyle:     s.PathStyle,
		Credentials:      credentials.NewStaticCredentialsProvider(s.AccessKey, s.SecretKey, ""),
		RetryMaxAttempts: 1,
		HTTPClient:       &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},

		// As config.LoadDefaultConfig sets them for users' clients; a bare
		// Options has neither.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	})
}

// Env returns the environment with which the SDK's default configuration
// reaches the server, as NAME=value.
func (s *S3) Env() []string {
	return []string{
		"AWS_ENDPOINT_URL_S3=" + s.Endpoint,
		"AWS_REGION=" + s.Region,
		"AWS_ACCESS_KEY_ID=" + s.AccessKey,
		"AWS_SECRET_ACCESS_KEY=" + s.SecretKey,
		"AWS_SESSION_TOKEN=", "AWS_PROFILE=", // what the user has set must not mix in
		"AWS_EC2_METADATA_DISABLED=true",
	}
}
