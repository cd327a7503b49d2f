package cache

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// over returns a cache in front of inner, with a directory of its own if it has a disk.
func over(t *testing.T, inner blob.Blob, o Options) *Cache {
	t.Helper()
	if o.Disk > 0 && o.Dir == "" {
		o.Dir = t.TempDir()
	}
	c, err := New(t.Context(), inner, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConformance(t *testing.T) {
	for name, o := range map[string]Options{
		"default":          {},
		"small-blocks":     {Block: 4 << 10},
		"tiny":             {Memory: 64 << 10, Block: 4 << 10},
		"tinier-than-one":  {Memory: 2 << 10},
		"no-write-through": {NoWriteThrough: true, Block: 4 << 10},
		"always":           {Revalidate: Always, Block: 4 << 10},
		"ttl":              {Revalidate: 1, Block: 4 << 10},
		"few-fills":        {FillBytes: 8 << 10, Block: 4 << 10},
		"off":              {Off: true},
		"no-tier":          {Memory: -1},
		"disk":             {Memory: -1, Disk: 8 << 20, Block: 4 << 10},
		"memory-and-disk":  {Memory: 64 << 10, Disk: 8 << 20, Block: 4 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blobtest.Run(t, func(t *testing.T) blob.Blob { return over(t, memblob.New(&memblob.Options{Restore: true}), o) }, &blobtest.Config{
				MaxGet: func(t *testing.T, n int64) blob.Blob {
					limited := o
					limited.MaxGet = n
					return over(t, memblob.New(&memblob.Options{MaxGet: n}), limited)
				},
				Pending: map[string]string{"set/sha256": "stored checksums"},
			})
		})
	}
}
