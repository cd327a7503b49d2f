package memblob

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
)

var everyTier = []string{"memory", "always", "disk", "memory and disk"}

// The whole contract holds for the full stack, the rules of concurrency and linearizability among it.
func TestStackConformance(t *testing.T) {
	faultsweep.Conform(t, func(_ *testing.T, maxGet int64) blob.Blob { return New(&Options{Restore: true, MaxGet: maxGet}) }, foreign, everyTier...)
}

func TestStackFaultSweep(t *testing.T) {
	faultsweep.Stacks(t, func(*testing.T) blob.Blob { return New(&Options{Restore: true}) }, everyTier...)
}
