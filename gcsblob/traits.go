package gcsblob

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
)

// Limits of Cloud Storage ("Quotas & limits"; "Resumable uploads" for the multiple). The size of a chunk is bounded by
// nothing but the object's; ours is, so that a mistake in units is one.
const (
	chunkUnit = 256 << 10
	maxPart   = 5 << 30
	maxObject = 5 << 40
	maxKey    = 1024
)

func (o *Options) traits() transfer.Traits {
	trust := o.Conditions == TrustYes || o.google()
	return transfer.Traits{
		Store:            storeName,
		MinPart:          chunkUnit,
		MaxPart:          maxPart,
		PartMultiple:     chunkUnit,
		MaxPut:           maxObject,
		MaxObject:        maxObject,
		SerialParts:      true,
		Abort:            true,
		Sums:             true,
		SuffixReads:      true,
		Ordered:          true,
		StartAfter:       true,
		Verify:           !trust,
		SetConditions:    trust,
		DeleteConditions: trust,
		Restore:          o.Restore != RestoreOff,
		Addressable:      addressable,
		ValidVersion:     validGeneration,
	}
}

// addressable refuses what Cloud Storage cannot hold ("Object naming requirements", About Cloud Storage objects).
func addressable(key string) bool {
	return len(key) <= maxKey && utf8.ValidString(key) && !strings.ContainsAny(key, "\r\n") &&
		key != "." && key != ".." && !strings.HasPrefix(key, ".well-known/acme-challenge/")
}

// validGeneration reports whether version is the decimal text of a generation, as it is written in replies.
func validGeneration(version string) bool {
	n, err := strconv.ParseInt(version, 10, 64)
	return err == nil && n > 0 && strconv.FormatInt(n, 10) == version
}

// generation returns the condition as a generation to match: 0 stands for none there. ok is false without a condition. The engine has
// checked the version with validGeneration.
func generation(c blob.Condition) (gen int64, ok bool) {
	if c.Absent() {
		return 0, true
	}
	v, ok := c.Version()
	if !ok {
		return 0, false
	}
	gen, _ = strconv.ParseInt(v, 10, 64)
	return gen, true
}
