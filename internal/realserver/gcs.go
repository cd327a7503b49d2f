package realserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// GCS is a running server of the API of Google Cloud Storage.
type GCS struct {
	Server // Endpoint is http://127.0.0.1:port

	mark string // name of a bucket that no other server has
}

// NewBucket creates a bucket that no other test has. It is gone with the
// server.
func (s *GCS) NewBucket(t testing.TB, opts ...BucketOption) string {
	t.Helper()
	name, err := s.CreateBucket(t.Context(), t.Name(), opts...)
	if err != nil {
		t.Fatalf("realserver: %v: %v", s, err)
	}
	return name
}

// CreateBucket creates a bucket whose name is unique and begins with what can
// be kept of hint. The project that it belongs to is one that the server makes
// nothing of.
func (s *GCS) CreateBucket(ctx context.Context, hint string, opts ...BucketOption) (string, error) {
	type versioning struct {
		Enabled bool `json:"enabled"`
	}
	bucket := struct {
		Name       string     `json:"name"`
		Versioning versioning `json:"versioning"`
	}{bucketName(hint), versioning{slices.Contains(opts, Versioned)}}
	if err := askOK(ctx, http.MethodPost, s.JSON()+"b?project=wholeblobtest", bucket); err != nil {
		return "", fmt.Errorf("create bucket %s: %w", bucket.Name, err)
	}
	return bucket.Name, nil
}

// JSON is the URL of the JSON API, which is what clients of Google take for their endpoint.
func (s *GCS) JSON() string { return s.Endpoint + "/storage/v1/" }

// hasTheMark asks for the bucket that only this server has.
func (s *GCS) hasTheMark(ctx context.Context) error {
	return getOK(ctx, s.JSON()+"b/"+url.PathEscape(s.mark))
}

// Env returns the environment with which the SDK reaches the server and looks
// for no credentials, as NAME=value.
func (s *GCS) Env() []string {
	return []string{"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(s.Endpoint, "http://")}
}
