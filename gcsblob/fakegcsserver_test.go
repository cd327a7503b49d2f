package gcsblob_test

import (
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/retry"
)

// openEmulator returns a store on bucket of fake-gcs-server.
func openEmulator(t testing.TB, srv *realserver.GCS, bucket string, edits ...func(*gcsblob.Options)) *gcsblob.Store {
	t.Helper()
	o := &gcsblob.Options{
		Endpoint: srv.Endpoint, Conditions: gcsblob.TrustYes,
		Retry: retry.Policy{FirstDelay: 5 * time.Millisecond, Attempts: 4},
	}
	for _, edit := range edits {
		edit(o)
	}
	return openWith(t, bucket, o)
}

func TestConformanceOnFakeGCSServer(t *testing.T) {
	srv := realserver.FakeGCS(t)
	bucket := srv.NewBucket(t)
	blobtest.Run(t, func(t *testing.T) blob.Blob { return openEmulator(t, srv, bucket, small) }, &blobtest.Config{
		PartSize: 4 << 10,
		Pending:  faultsweep.Pending(),
		Deviations: map[string]string{
			"list/delimiter-several-characters": "fake-gcs-server folds after the first character of a delimiter",
			"list/delimiter-not-slash":          "fake-gcs-server folds after the first byte of a delimiter",
			"delete/if-version":                 "fake-gcs-server ignores ifGenerationMatch of a delete",
		},
		Racy: map[string]string{
			"linear/sets-and-deletes": "fake-gcs-server ignores ifGenerationMatch of a delete",
		},
		MaxGet: func(t *testing.T, n int64) blob.Blob {
			return openEmulator(t, srv, bucket, small, func(o *gcsblob.Options) { o.MaxGet = n })
		},
	})
}

// A bucket with Object Versioning gives back what was deleted, on the real server as on the fake.
func TestRestoreOnFakeGCSServer(t *testing.T) {
	srv := realserver.FakeGCS(t)
	st := openEmulator(t, srv, srv.NewBucket(t, realserver.Versioned), small, func(o *gcsblob.Options) { o.Restore = gcsblob.RestoreVersions })
	for _, data := range [][]byte{[]byte("one"), content(chunk + 1)} {
		mustSet(t, st, "key2", []byte("another"), nil)
		mustSet(t, st, "key", data, nil)
		for _, key := range []string{"key", "key2"} {
			if err := st.Delete(t.Context(), key, nil); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // idempotent
			if _, err := st.Restore(t.Context(), "key"); err != nil {
				t.Fatal(err)
			}
			wantBytes(t, mustGet(t, st, "key", nil).Data, data)
		}
		_, err := st.Stat(t.Context(), "key2")
		wantKind(t, err, blob.ErrNotFound)
	}
	_, err := st.Restore(t.Context(), "never")
	wantKind(t, err, blob.ErrNotFound)
}
