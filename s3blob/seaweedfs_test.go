package s3blob_test

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/realserver"
)

// Two racers: conditional writes that compete for a key take seconds there.
func TestConformanceOnSeaweedFS(t *testing.T) {
	runReal(t, realserver.SeaweedFS(t), blobtest.Config{Racers: 2, Deviations: seaweedFS})
}

// Why SeaweedFS breaks rules by itself: its filer keeps each object as an entry of a folder.
const (
	answers   = "a folder answers reads as an empty object of its name with a slash"
	backslash = "a backslash is taken for a slash: 400 for .. as a segment"
	entry     = "the name of an entry has at most 255 bytes"
	nul400    = "400 for a NUL, on reads and deletes too"
)

// seaweedFS are the rules that SeaweedFS breaks by itself.
var seaweedFS = deviations(
	map[string]string{
		"stat/no-folders":         answers,
		"list/prefix-is-a-string": folds, // of the prefix too
	},
	[]string{"keys/refused-elsewhere"},
	map[string]string{
		"backslash-dot-dot": backslash,
		"nul":               nul400,
	},
	[]string{"keys/round-trip", "keys/never-collide", "keys/deleted-alone", "keys/deleteall"},
	map[string]string{
		"double-slash-end":     folds,
		"long-segment":         entry,
		"long-segment-unicode": entry,
		"longest-one-segment":  entry,
	},
	[]string{"keys/never-collide", "keys/deleted-alone", "keys/deleteall"},
	map[string]string{"beside-folder-marker": answers},
	[]string{"keys/round-trip", "keys/never-collide", "keys/deleted-alone"},
	map[string]string{
		"leading-slash":     folds,
		"triple-slash":      folds,
		"double-slash-only": folds,
	},
	[]string{"keys/never-collide", "keys/deleted-alone"},
	map[string]string{"double-slash": folds},
	[]string{"keys/round-trip", "keys/never-collide"},
	map[string]string{"leading-double-slash": folds, "slash": folds},
	[]string{"keys/never-collide"},
	map[string]string{"plain": folds, "beside-child": folds},
)
