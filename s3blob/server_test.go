package s3blob_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
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

// realPart is the smallest part that AWS, and both of the servers here, take (EntityTooSmall), unless it is the last.
const realPart = 5 << 20

// realStep is where an upload in parts, of one part up to realPart, takes the place of a single request, and the size of a range of a
// read: with 5 MiB for these too a run of the suite would move gigabytes.
const realStep = 64 << 10

func realSizes(o *s3blob.Options) { o.PartSize, o.Threshold, o.Segment = realPart, realStep, realStep }

// realServers are the real servers. start skips the test where its server is not to be had.
var realServers = []struct {
	name  string
	start func(testing.TB) *realserver.S3
}{
	{"versitygw", realserver.VersityGW},
	{"seaweedfs", realserver.SeaweedFS},
}

// onRealServers runs f against each of them.
func onRealServers(t *testing.T, f func(t *testing.T, srv *realserver.S3)) {
	for _, s := range realServers {
		t.Run(s.name, func(t *testing.T) { f(t, s.start(t)) })
	}
}

// runReal runs the suite over a real server, with what cfg says of that server.
func runReal(t *testing.T, srv *realserver.S3, cfg blobtest.Config) {
	bucket := srv.NewBucket(t)
	cfg.PartSize, cfg.LargeObject, cfg.Pending = realStep, 2*realPart+17, faultsweep.Pending()
	cfg.MaxGet = func(t *testing.T, n int64) blob.Blob {
		return openReal(t, srv, bucket, func(o *s3blob.Options) { realSizes(o); o.MaxGet = n })
	}
	blobtest.Run(t, func(t *testing.T) blob.Blob { return openReal(t, srv, bucket, realSizes) }, &cfg)
}

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

// What the suite leaves to smaller objects: objects of several parts, around the size of a part, by both ways to read them.
func TestPartsOnRealServers(t *testing.T) {
	onRealServers(t, func(t *testing.T, srv *realserver.S3) {
		bucket := srv.NewBucket(t)
		for _, ranges := range []bool{false, true} {
			st := openReal(t, srv, bucket, func(o *s3blob.Options) { o.PartSize, o.Segment, o.ReadRanges = realPart, realPart, ranges })
			for _, size := range []int{realPart - 1, realPart, realPart + 1, 2 * realPart, 3*realPart + 1} {
				data := content(size)
				if _, err := st.Set(t.Context(), "k", blob.Bytes(data), nil); err != nil {
					t.Fatal(err)
				}
				wantBytes(t, mustGet(t, st, "k", nil).Data, data)
			}
		}
	})
}

// Restore undoes deletes on the versioned buckets of real servers, as on the fake.
func TestRestoreOnRealServers(t *testing.T) {
	onRealServers(t, func(t *testing.T, srv *realserver.S3) {
		st := openReal(t, srv, srv.NewBucket(t, realserver.Versioned), func(o *s3blob.Options) {
			realSizes(o)
			o.Restore, o.Prefix = true, "team"
		})
		set := func(key string, data []byte) {
			t.Helper()
			if _, err := st.Set(t.Context(), key, blob.Bytes(data), nil); err != nil {
				t.Fatal(err)
			}
		}
		remove := func(key string) {
			t.Helper()
			if err := st.Delete(t.Context(), key, nil); err != nil {
				t.Fatal(err)
			}
		}
		large := content(realPart + 1)
		set("key2", []byte("another that begins alike"))
		remove("key2")
		for _, data := range [][]byte{[]byte("one"), large} {
			set("key", data)
			remove("key")
			remove("key")
			wantKind(t, getError(st, "key", nil), blob.ErrNotFound)
			for range 2 { // idempotent
				info, err := st.Restore(t.Context(), "key")
				if err != nil || info.Size != int64(len(data)) {
					t.Fatalf("Restore: %+v, %v", info, err)
				}
				wantBytes(t, mustGet(t, st, "key", nil).Data, data)
			}
		}
		wantKind(t, getError(st, "key2", nil), blob.ErrNotFound)
		if err := st.DeleteAll(t.Context(), []string{"key"}); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Restore(t.Context(), "key"); err != nil {
			t.Errorf("Restore after DeleteAll: %v", err)
		}
		if _, err := st.Restore(t.Context(), "never"); blob.KindOf(err) != blob.ErrNotFound {
			t.Errorf("Restore of a key that never was: %v", err)
		}
	})
}

// Sweep finds on real servers what a crashed process left under the prefix, two uploads of one key and one of another, and
// leaves what belongs to others.
func TestSweepOnRealServers(t *testing.T) {
	onRealServers(t, func(t *testing.T, srv *realserver.S3) {
		bucket := srv.NewBucket(t)
		client := srv.Client()
		for _, key := range []string{"team/a b", "team/a b", "team/c", "team2/a", "t"} {
			up, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.UploadPart(t.Context(), &s3.UploadPartInput{
				Bucket: &bucket, Key: &key, UploadId: up.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("part"),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		st := openReal(t, srv, bucket, func(o *s3blob.Options) { o.Prefix = "team" })
		if res, err := st.Sweep(t.Context(), time.Hour); err != nil || res.Kept != 3 || len(res.Aborted) > 0 {
			t.Errorf("sweep of older ones: %+v, %v", res, err)
		}
		if res, err := st.Sweep(t.Context(), 0); err != nil || len(res.Aborted) != 3 || len(res.Failed) > 0 || res.Kept > 0 {
			t.Errorf("sweep: %+v, %v", res, err)
		}
		if res, err := st.Sweep(t.Context(), 0); err != nil || len(res.Aborted) > 0 {
			t.Errorf("second sweep: %+v, %v", res, err)
		}
		out, err := client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &bucket})
		if err != nil || len(out.Uploads) != 2 {
			t.Errorf("left: %+v, %v", out, err)
		}
	})
}
