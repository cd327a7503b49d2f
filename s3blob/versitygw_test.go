package s3blob_test

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/realserver"
)

func TestConformanceOnVersityGW(t *testing.T) {
	runReal(t, realserver.VersityGW(t), blobtest.Config{Racers: 4, Deviations: versityGW, Racy: versityGWRacy})
}

// Why versitygw breaks rules by itself: its posix back end keeps each object as the file of that name.
const (
	folds   = "leading slashes and runs of them are folded"
	folder  = "a name is a file or a folder, and a folder has no content"
	segment = "a file name has at most 255 bytes"
	nul     = "a file name has no NUL: 500 InternalError"
	looks   = "a read looks at the path three times, for size, ETag and bytes (GetObject of its posix back end): a write in between mixes them"
	mixes   = looks + ", and who then writes under the newer ETag loses that write"
)

// versityGW are the rules that versitygw breaks by itself.
var versityGW = deviations(
	map[string]string{
		"list/delimiter-beside-key":               folder,
		"stat/no-folders":                         folder,
		"keys/refused-elsewhere/nul":              nul,
		"keys/refused-elsewhere/too-long":         segment,
		"keys/refused-elsewhere/too-long-utf8":    segment,
		"keys/refused-elsewhere/too-many-slashes": folds,
		"keys/never-collide/plain":                folds, // "/a" is the same file as "a"
	},
	[]string{"keys/round-trip", "keys/never-collide", "keys/deleted-alone", "keys/deleteall"},
	map[string]string{
		"beside-folder-marker": folder,
		"double-slash":         folds,
		"double-slash-end":     folds,
		"double-slash-only":    folds,
		"slash":                folds,
		"triple-slash":         folds,
		"long-segment":         segment,
		"long-segment-unicode": segment,
		"longest-one-segment":  segment,
	},
	[]string{"keys/never-collide", "keys/deleted-alone", "keys/deleteall"},
	map[string]string{
		"beside-child":     folder,
		"file-of-folder":   folder,
		"space-segment":    folder,
		"dot-segment-like": folder,
	},
	[]string{"keys/round-trip", "keys/never-collide", "keys/deleted-alone"},
	map[string]string{"leading-slash": folds},
	[]string{"keys/round-trip", "keys/never-collide"},
	map[string]string{"leading-double-slash": folds},
)

// versityGWRacy are the rules that it breaks when two requests meet in the wrong order. Seen without this library: beside three writers of one
// key, one plain GET in some two thousand came with an ETag that was not the MD5 of its body. All of these rules are asserted on the
// fake and on SeaweedFS.
var versityGWRacy = map[string]string{
	"getranges/one-version":         looks,
	"set/atomic-under-readers":      looks,
	"concurrency/set-beside-delete": looks,
	"condition/counter":             mixes,
	"linear/sets":                   mixes,
	"linear/sets-and-deletes":       "a conditional delete checks and then acts: a write in between is deleted",
}
