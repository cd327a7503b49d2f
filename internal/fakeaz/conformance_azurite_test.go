package fakeaz_test

import (
	"net/http"
	"testing"

	"github.com/wholeblob/wholeblob/internal/realserver"
)

// The same facts of a server that others wrote: where it has no deviation, this package does not stand alone with what it
// takes the documents to say.
func TestAzuriteConforms(t *testing.T) {
	srv := realserver.Azurite(t)
	c := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(c.CloseIdleConnections)
	conform(t, conf{c: c, endpoint: srv.Endpoint, account: srv.Account, key: srv.Key, container: srv.NewContainer(t)}, azuriteDeviations)
}

// azuriteDeviations are the checks that Azurite 3.37.0 fails, with what it does instead.
var azuriteDeviations = map[string]string{
	"answers-name-the-request":              "no x-ms-client-request-id and no x-ms-version in refusals of HEAD",
	"put-without-a-type":                    "400 without a code",
	"put-without-a-length":                  "400 without a code",
	"metadata-too-large":                    "accepted",
	"lease-without-a-lease":                 "accepted",
	"name-of-1025":                          "accepted",
	"wrong-signature":                       "AuthorizationFailure",
	"range-at-the-end":                      "206 with nothing",
	"range-suffix-is-not-a-form":            "Content-Length: NaN",
	"range-md5-of-more-than-4-mib":          "the header is ignored",
	"range-md5-without-a-range":             "the header is ignored",
	"get-if-match-other":                    "412 for a blob that is not there",
	"get-if-none-match-star":                "400 for a blob that is not there too",
	"delete-if-match-of-nothing":            "412",
	"blocks-become-a-blob":                  "Content-MD5 of a blob of blocks, which the service does not know",
	"blocks-are-not-seen-before-the-commit": "a blob with uncommitted blocks only can be deleted",
	"block-of-nothing":                      "accepted",
	"block-md5":                             "Content-MD5 does not come back",
	"put-discards-blocks":                   "blocks are kept",
	"commit-of-a-list-that-came-damaged":    "Content-MD5 is not compared",
	"commit-of-no-xml":                      "400 without a code",
	"block-list":                            "both lists, whichever is asked for",
	"list-delimiter":                        "prefixes first",
	"list-from-zero-results":                "400 without a code",
	"list-bad-maxresults":                   "400 without a code",
	"list-in-byte-order":                    "the order of UTF-16",
	"name-that-xml-cannot-hold":             "500",
	"batch-that-is-none":                    "202 with one part that says 400",
}
