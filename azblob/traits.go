package azblob

import (
	"strings"
	"unicode/utf8"

	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// Limits of the service ("Scalability and performance targets for Blob storage", "Put Blob", "Put Block", "Blob Batch",
// "Naming and Referencing Containers, Blobs, and Metadata").
const (
	maxPart     = 4000 << 20
	maxParts    = 50_000
	maxPut      = 5000 << 20
	maxObject   = maxPart * maxParts
	maxName     = 1024 // characters of a name
	maxSegments = 254  // of a name, between slashes
	maxBatch    = 256
)

func (o *Options) traits() transfer.Traits {
	trust := o.Conditions == TrustYes || azure(o.Endpoint)
	return transfer.Traits{
		Store:            storeName,
		MaxPart:          maxPart,
		MaxParts:         maxParts,
		MaxPut:           maxPut,
		MaxObject:        maxObject,
		Ordered:          true, // checked by the engine
		Verify:           !trust,
		SetConditions:    trust,
		DeleteConditions: trust,
		BatchDelete:      maxBatch,
		Restore:          o.Restore != KeepsNothing,
		Addressable:      addressable,
		ValidVersion:     wire.EntityTag,
	}
}

// addressable refuses what Azure cannot hold, and what clients, proxies and servers on the way are known to fold into another key: a read of
// "a/../b" or "a\b" must never return "b" or "a/b".
func addressable(key string) bool {
	if !utf8.ValidString(key) || units(key) > maxName || strings.Contains(key, `\`) || strings.Count(key, "/") >= maxSegments {
		return false
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// units counts the characters of a name as the service does: in UTF-16.
func units(key string) int {
	n := 0
	for _, r := range key {
		if n++; r > 0xFFFF {
			n++
		}
	}
	return n
}
