package fakes3_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/wholeblob/wholeblob/internal/realserver"
)

// TestVersityGWBehavesAsS3 runs the checks of the fake against a real server:
// what holds on both is a fact about S3 and not about the fake.
func TestVersityGWBehavesAsS3(t *testing.T) {
	server := realserver.VersityGW(t)
	hc := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	client := s3.New(sdkOptions(t, hc, server.Endpoint, server.Region, server.AccessKey, server.SecretKey))
	conform(t, client, server.NewBucket(t), versitygwDeviations)
}

// versitygwDeviations are the checks that versitygw v1.8.0 (posix backend with
// a versioning directory) fails, with what it does instead.
var versitygwDeviations = map[string]string{
	"delete-objects-quiet":                "Quiet is ignored",
	"delete-objects-1001":                 "more than 1000 keys are accepted",
	"delete-objects-etag":                 "the ETag of a key is ignored: it deletes",
	"range-past-the-end-names-the-size":   "416 comes without Content-Range",
	"delete-if-match-absent":              "204",
	"get-not-modified-since-its-own-date": "compares with fractions of a second: 200",
	"multipart-gaps-keep-their-numbers":   "parts are numbered anew",
	"list-uploads-paged":                  "400 on a page that begins within one key's uploads",
	"list-says-it-is-encoded":             "encoding-type is ignored",
	"list-bad-token":                      "any token is taken for a key",
	"create-over-a-marker":                "412: a delete marker counts as the object",
	"list-versions-paged":                 "pages of one entry never end",
	"key-double-slash":                    "slashes are folded",
	"key-leading-slash":                   "slashes are folded",
	"key-trailing-slash":                  "400: a directory holds no data",
	"key-beside-key-below-it":             "409: a file cannot be a directory too",
	"key-of-1024-bytes":                   "400: one segment is a file name",
	"key-of-1025-bytes":                   "accepted",
}
