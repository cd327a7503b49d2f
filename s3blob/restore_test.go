package s3blob_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// On a versioned bucket Restore brings back what the newest delete removed, however often it was deleted, and over pages of versions
// and of keys that begin alike.
func TestRestoreUndoesTheNewestDelete(t *testing.T) {
	for _, page := range []int{0, 1, 2} {
		srv := fake(t, fakes3.Options{Versioned: true, Knobs: fakes3.Knobs{PageSize: page}})
		st := open(t, srv, func(o *s3blob.Options) { o.Restore = true })
		set := func(key, data string) {
			t.Helper()
			if _, err := st.Set(t.Context(), key, blob.Bytes([]byte(data)), nil); err != nil {
				t.Fatal(err)
			}
		}
		remove := func(key string) {
			t.Helper()
			if err := st.Delete(t.Context(), key, nil); err != nil {
				t.Fatal(err)
			}
		}
		set("key2", "other")
		remove("key2")
		set("key", "one")
		remove("key")
		set("key", "two")
		remove("key")
		remove("key")
		for range 2 { // idempotent
			info, err := st.Restore(t.Context(), "key")
			if err != nil || info.Size != 3 || info.Key != "key" {
				t.Fatalf("page size %d: Restore: %+v, %v", page, info, err)
			}
			wantBytes(t, mustGet(t, st, "key", nil).Data, []byte("two"))
		}
		wantKind(t, getError(st, "key2", nil), blob.ErrNotFound)
		remove("never")
		for _, key := range []string{"never", "nothing"} {
			if _, err := st.Restore(t.Context(), key); !errors.Is(err, blob.ErrNotFound) || blob.OutcomeOf(err) != blob.NotApplied {
				t.Errorf("Restore(%q): %v, outcome %v", key, err, blob.OutcomeOf(err))
			}
		}
	}
}

// Sweep aborts what crashed processes left, under the store's own prefix and older than asked for, and nothing else.
func TestSweepAbortsOldUploadsUnderThePrefix(t *testing.T) {
	now := time.Now()
	srv := fake(t, fakes3.Options{MinPartSize: -1, Anonymous: true, Now: func() time.Time { return now.Add(-time.Hour) }, Knobs: fakes3.Knobs{PageSize: 2}})
	leave := func(prefix string, n int) {
		st := open(t, srv, func(o *s3blob.Options) { small(o); o.Prefix = prefix })
		for range n {
			part := srv.Inject(fakes3.Fault{Op: "UploadPart", Times: -1, Reply: &fakes3.Reply{Status: 403}})
			abort := srv.Inject(fakes3.Fault{Op: "AbortMultipartUpload", Times: -1, Reply: &fakes3.Reply{Status: 403}})
			if _, err := st.Set(t.Context(), "k", blob.Bytes(content(2*P)), nil); err == nil {
				t.Fatal("no error")
			}
			_ = st.Close(t.Context()) // as if the process had crashed: what it owes stays
			part.Remove()
			abort.Remove()
			st = open(t, srv, func(o *s3blob.Options) { small(o); o.Prefix = prefix })
		}
	}
	leave("team", 5)
	leave("team2", 1)
	st := open(t, srv, func(o *s3blob.Options) { o.Prefix = "team" })
	if res, err := st.Sweep(t.Context(), 2*time.Hour); err != nil || res.Kept != 5 || len(res.Aborted) > 0 {
		t.Errorf("sweep of older ones: %+v, %v", res, err)
	}
	if res, err := st.Sweep(t.Context(), time.Minute); err != nil || len(res.Aborted) != 5 || len(res.Failed) > 0 {
		t.Errorf("sweep: %+v, %v", res, err)
	}
	if up := srv.Uploads("b"); len(up) != 1 {
		t.Errorf("left: %v", up)
	}
	if _, err := st.Sweep(t.Context(), -1); !errors.Is(err, blob.ErrInvalidOption) {
		t.Errorf("negative age: %v", err)
	}
	whole := open(t, srv, nil)
	if _, err := whole.Sweep(t.Context(), time.Minute); !errors.Is(err, blob.ErrInvalidOption) {
		t.Errorf("whole bucket: %v", err)
	}
	allowed := open(t, srv, func(o *s3blob.Options) { o.AllowWholeBucket = true })
	if res, err := allowed.Sweep(t.Context(), time.Minute); err != nil || len(res.Aborted) != 1 {
		t.Errorf("whole bucket, allowed: %+v, %v", res, err)
	}
}

// Restores of one key at the same time all succeed.
func TestRestoresAtTheSameTime(t *testing.T) {
	srv := fake(t, fakes3.Options{Versioned: true, NoLog: true})
	st := open(t, srv, func(o *s3blob.Options) { o.Restore = true })
	for range 20 {
		if _, err := st.Set(t.Context(), "k", blob.Bytes(content(10)), nil); err != nil {
			t.Fatal(err)
		}
		if err := st.Delete(t.Context(), "k", nil); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := st.Restore(t.Context(), "k"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
