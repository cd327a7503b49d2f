package s3blob_test

import (
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

// openReal returns a store on bucket of a real server.
func openReal(t testing.TB, srv *realserver.S3, bucket string, edit func(*s3blob.Options)) *s3blob.Store {
	t.Helper()
	o := &s3blob.Options{
		Endpoint: srv.Endpoint, Region: srv.Region, PathStyle: srv.PathStyle,
		AccessKey: srv.AccessKey, SecretKey: srv.SecretKey,
		Conditions: s3blob.TrustYes,
		Retry:      retry.Policy{FirstDelay: 5 * time.Millisecond, Attempts: 4},
	}
	if edit != nil {
		edit(o)
	}
	st, err := s3blob.New(t.Context(), bucket, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, st) })
	return st
}

// realPart is the smallest part that AWS, and servers that follow it, take.
const realPart = 5 << 20

func runReal(t *testing.T, srv *realserver.S3, deviations map[string]string) {
	bucket := srv.NewBucket(t)
	edit := func(o *s3blob.Options) { o.PartSize, o.Segment = realPart, realPart }
	blobtest.Run(t, func(t *testing.T) blob.Blob { return openReal(t, srv, bucket, edit) }, &blobtest.Config{
		PartSize: realPart, Pending: pending, Deviations: deviations, Racers: 4,
		MaxGet: func(t *testing.T, n int64) blob.Blob {
			return openReal(t, srv, bucket, func(o *s3blob.Options) { edit(o); o.MaxGet = n })
		},
	})
}

func TestConformanceOnVersityGW(t *testing.T) {
	runReal(t, realserver.VersityGW(t), versityGW)
}

// Why versitygw breaks rules by itself: its posix back end keeps each object as the file of that name.
const (
	folds   = "leading slashes and runs of them are folded"
	folder  = "a name is a file or a folder, and a folder has no content"
	segment = "a file name has at most 255 bytes"
	nul     = "a file name has no NUL: 500 InternalError"
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

// deviations adds to whole the cases of each list of rules that stands before them.
func deviations(whole map[string]string, rulesAndCases ...any) map[string]string {
	for i := 0; i < len(rulesAndCases); i += 2 {
		for _, rule := range rulesAndCases[i].([]string) {
			for name, why := range rulesAndCases[i+1].(map[string]string) {
				whole[rule+"/"+name] = why
			}
		}
	}
	return whole
}
