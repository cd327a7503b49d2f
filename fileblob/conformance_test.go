package fileblob

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
)

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	o.Create = true
	s, err := New(t.Context(), dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	for name, opts := range map[string]Options{
		"default": {NoSync: true},
		"restore": {NoSync: true, Restore: true},
		"synced":  {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &blobtest.Config{
				MaxGet: func(t *testing.T, n int64) blob.Blob {
					o := opts
					o.MaxGet = n
					return open(t, t.TempDir(), o)
				},
				Foreign: foreign,
				Pending: map[string]string{"set/sha256": "stored checksums"},
			}
			if !opts.NoSync {
				c.ListKeys = 20 // each key is synced
			}
			blobtest.Run(t, func(t *testing.T) blob.Blob { return open(t, t.TempDir(), opts) }, c)
		})
	}
}

// foreign puts an object under a key that Set refuses, as a program with other rules for keys would have.
func foreign(t *testing.T, store blob.Blob, key string, data []byte) {
	t.Helper()
	s := store.(*Store)
	h := &header{key: key, version: blob.NewToken(), modTime: s.opts.Now()}
	guard, err := s.stage(t.Context(), "foreign", blob.Bytes(data), h)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = guard.Close() }()
	if _, err := s.publish(t.Context(), staged{dir: s.temp, name: "foreign", key: key, version: h.version}, blob.Condition{}); err != nil {
		t.Fatal(err)
	}
}
