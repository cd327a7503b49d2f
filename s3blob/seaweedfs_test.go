package s3blob_test

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/realserver"
)

// Two racers: conditional writes that compete for a key take seconds there.
func TestConformanceOnSeaweedFS(t *testing.T) {
	runReal(t, realserver.SeaweedFS(t), blobtest.Config{Racers: 2, Deviations: seaweedFS, Racy: seaweedFSRacy})
}

// Why SeaweedFS breaks rules by itself: its filer keeps each object as an entry of a folder.
const (
	absent412 = "If-Match on a DeleteObject of an absent key: 412, as for another version"
	answers   = "a folder answers reads as an empty object of its name with a slash"
	backslash = "a backslash is taken for a slash: 400 for .. as a segment"
	entry     = "the name of an entry has at most 255 bytes"
	nul400    = "400 for a NUL, on reads and deletes too"
)

// seaweedFS are the rules that SeaweedFS breaks by itself.
var seaweedFS = deviations(
	map[string]string{
		"stat/no-folders":           answers,
		"list/prefix-is-a-string":   folds, // of the prefix too
		"delete/if-version-missing": absent412,
	},
	[]string{"keys/refused-elsewhere"},
	map[string]string{
		"ends-in-dot":         absent412,
		"ends-in-dots":        absent412,
		"segment-ends-in-dot": absent412,
		"backslash":           absent412,
		"backslash-dot-dot":   backslash,
		"nul":                 nul400,
		"newline":             absent412,
		"tab":                 absent412,
		"control-1f":          absent412,
		"delete":              absent412,
		"control-80":          absent412,
		"control-9f":          absent412,
		"private-e000":        absent412,
		"private-f8ff":        absent412,
		"fffe":                absent412,
		"ffff":                absent412,
		"too-long":            absent412,
		"too-long-utf8":       absent412,
		"too-many-slashes":    absent412,
		"acme":                absent412,
		"acme-alone":          absent412,
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

// seaweedFSRacy are the rules that it breaks when requests meet in a certain order.
var seaweedFSRacy = map[string]string{
	"linear/sets-and-deletes": absent412,
}
