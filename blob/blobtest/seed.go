package blobtest

import (
	"math/rand/v2"
	"testing"
)

// RandomSeed returns a random seed, never 0, and logs it, so that the run can be repeated.
func RandomSeed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64() | 1
	t.Logf("blobtest: seed %d", seed)
	return seed
}
