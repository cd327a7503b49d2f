package blobtest

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

func newMemory(t *testing.T) blob.Blob { return memblob.New(nil) }

func TestMemoryStoreKeepsEveryRule(t *testing.T) {
	Run(t, newMemory, &Config{Pending: map[string]string{"set/sha256": "checksums are kept"}})
}
