package memblob

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	for name, opts := range map[string]Options{"default": {}, "restore": {Restore: true}} {
		t.Run(name, func(t *testing.T) {
			blobtest.Run(t, func(*testing.T) blob.Blob { return New(&opts) }, &blobtest.Config{
				MaxGet:  func(_ *testing.T, n int64) blob.Blob { return New(&Options{MaxGet: n, Restore: opts.Restore}) },
				Foreign: foreign,
				Pending: map[string]string{"set/sha256": "stored checksums"},
			})
		})
	}
}

// foreign puts an object under a key that Set refuses.
func foreign(_ *testing.T, store blob.Blob, key string, data []byte) {
	s := store.(*Store)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(&object{data: data, info: blob.Info{Key: key, Size: int64(len(data)), Version: blob.NewToken()}})
}

// Otherwise deleted objects would be kept for ever that nobody can restore.
func TestNoKeyIsThereAndDeletedAtOnce(t *testing.T) {
	s := New(&Options{Restore: true})
	for range 2 {
		if _, err := s.Set(t.Context(), "k", blob.Bytes(nil), nil); err != nil {
			t.Fatal(err)
		}
		if n := len(s.mu.deleted); n != 0 {
			t.Errorf("%d deleted objects are kept of keys that exist", n)
		}
		if err := s.Delete(t.Context(), "k", nil); err != nil {
			t.Fatal(err)
		}
	}
}
