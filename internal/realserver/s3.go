package realserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// S3 is a running S3 server.
type S3 struct {
	Name      string // of the server's software
	Version   string // as the running binary states it
	Endpoint  string // http://127.0.0.1:port
	Region    string
	AccessKey string
	SecretKey string // random per process, so no client can reach the wrong server unnoticed
	PathStyle bool   // whether the bucket goes into the path; true for every loopback server
	Note      string // how it was set up, where that can change what a test sees

	proc *process
}

// String names the server for logs, without its keys.
func (s *S3) String() string {
	return fmt.Sprintf("%s %s at %s (%s)", s.Name, s.Version, s.Endpoint, s.Note)
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

// bucketName makes a name that S3 allows: 3 to 63 of a-z, 0-9 and "-", not
// beginning or ending with "-".
func bucketName(hint string) string {
	var name strings.Builder
	for _, r := range strings.ToLower(hint) {
		switch {
		case name.Len() == 40:
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			name.WriteRune(r)
		case !strings.HasSuffix(name.String(), "-") && name.Len() > 0:
			name.WriteByte('-')
		}
	}
	return strings.TrimPrefix(strings.TrimSuffix(name.String(), "-")+"-wb-"+randomHex()[:12], "-")
}

// randomHex returns 128 random bits.
func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see its documentation
	return hex.EncodeToString(b[:])
}
