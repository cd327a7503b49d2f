package gcsblob_test

import (
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/retry"
)

// realStep is the size in bytes from which a write is a session and a read several ranges. A session of more than one chunk takes more
// than 256 KiB.
const realStep = 64 << 10

// openReal returns a store on a bucket of a fake-gcs-server.
func openReal(t testing.TB, srv *realserver.GCS, bucket string, edits ...func(*gcsblob.Options)) *gcsblob.Store {
	t.Helper()
	o := &gcsblob.Options{
		Endpoint: srv.Endpoint, Conditions: gcsblob.TrustYes,
		PartSize: chunk, Threshold: realStep, Segment: realStep,
		Retry: retry.Policy{FirstDelay: 5 * time.Millisecond, Attempts: 4},
	}
	for _, edit := range edits {
		edit(o)
	}
	return openWith(t, bucket, o)
}

func TestConformanceOnFakeGCSServer(t *testing.T) {
	srv := realserver.FakeGCS(t)
	for _, prefix := range []string{"", "some/prefix"} {
		t.Run("prefix="+prefix, func(t *testing.T) {
			bucket := srv.NewBucket(t)
			under := func(o *gcsblob.Options) { o.Prefix = prefix }
			blobtest.Run(t, func(t *testing.T) blob.Blob { return openReal(t, srv, bucket, under) }, &blobtest.Config{
				PartSize: realStep, LargeObject: 2*chunk + 17, Racers: 4,
				Pending: pending, Deviations: fakeGCS, Racy: fakeGCSRacy,
				MaxGet: func(t *testing.T, n int64) blob.Blob {
					return openReal(t, srv, bucket, under, func(o *gcsblob.Options) { o.MaxGet = n })
				},
			})
		})
	}
}

// fakeGCS are the rules that fake-gcs-server v1.56.1 breaks by itself.
var fakeGCS = map[string]string{
	"delete/if-version":                 unconditional,
	"list/delimiter-several-characters": oneByte,
	"list/delimiter-not-slash":          oneByte,
}

// fakeGCSRacy are the rules that it breaks when two requests meet in the wrong order.
var fakeGCSRacy = map[string]string{
	"linear/sets-and-deletes": unconditional,
}

const (
	unconditional = "ifGenerationMatch on a delete is ignored: it deletes"
	oneByte       = "a prefix of a listing ends after the first byte of the delimiter"
)

// What the suite leaves to smaller objects: sessions of several chunks, around the size of a chunk.
func TestChunksOnFakeGCSServer(t *testing.T) {
	srv := realserver.FakeGCS(t)
	st := openReal(t, srv, srv.NewBucket(t), func(o *gcsblob.Options) { o.Segment = chunk })
	for _, size := range []int{chunk - 1, chunk, chunk + 1, 2 * chunk, 3*chunk + 1} {
		data := content(size)
		mustSet(t, st, "k", data, nil)
		wantBytes(t, mustGet(t, st, "k", nil).Data, data)
	}
}
