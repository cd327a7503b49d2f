package blobtest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pendingOfMemory are the rules that the memory store does not keep yet.
func pendingOfMemory() map[string]string {
	return map[string]string{"set/sha256": "checksums are kept"}
}

func TestMemoryStoreKeepsEveryRule(t *testing.T) {
	for name, restore := range map[string]bool{"keeps": true, "forgets": false} {
		t.Run(name, func(t *testing.T) {
			Run(t, func(*testing.T) blob.Blob { return memblob.New(&memblob.Options{Restore: restore}) }, &Config{
				Pending: pendingOfMemory(),
				MaxGet:  func(_ *testing.T, n int64) blob.Blob { return memblob.New(&memblob.Options{MaxGet: n}) },
			})
		})
	}
}
