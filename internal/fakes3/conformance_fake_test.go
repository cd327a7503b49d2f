package fakes3_test

import (
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// TestBehavesAsS3 runs the checks that also run against real servers, so that
// the fake cannot drift away from them.
func TestBehavesAsS3(t *testing.T) {
	for name, opts := range map[string]fakes3.Options{
		"http":     {},
		"tls":      {TLS: true},
		"inmemory": {InMemory: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, opts)
			conform(t, sdkClient(t, s), "bucket", nil)
		})
	}
}
