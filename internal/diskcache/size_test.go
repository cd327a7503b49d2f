package diskcache

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// The largest number is a way to say "as much as there is", and not so much that nothing fits any more.
func TestDiskOfTheLargestSizeKeepsEntries(t *testing.T) {
	data := tiertest.Bytes(1, 50_000)
	info := testInfo("k", "v", len(data))
	for _, n := range []int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / page * page, math.MaxInt64/9*8 + 8, maxSize + 1, maxSize, maxSize - 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			dir := t.TempDir()
			for _, queue := range []int64{0, math.MaxInt64} {
				d := testTier(t, dir, Options{Size: n, queue: queue})
				mustPut(t, d, info, 0, data)
				wantHit(t, d, info, 0, data)
				if s := d.Stats(); s.Entries != 1 || s.Evictions != 0 {
					t.Errorf("%+v", s)
				}
				closeTier(t, d)
			}
		})
	}
}

// A length in a name, and the size of a file, are what someone wrote there: what no entry has is no entry's, and does not make the sum of all
// sizes anything that evicts the others.
func TestDiskEntriesOfImpossibleSizeAreDropped(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	data := tiertest.Bytes(1, 50_000)
	info := testInfo("k", "v", len(data))
	mustPut(t, d, info, 0, data)
	want := d.Stats().Bytes
	closeTier(t, d)
	shard := filepath.Dir(entryFiles(t, dir)[0])
	for i, c := range []struct{ length, size int64 }{
		{math.MaxInt64, 100}, {math.MaxInt64 - minHeader + 1, 100}, {maxRunLen + 1, 2*maxRunLen + minHeader}, {5, maxHeader + 6}, {0, 1 << 40},
	} {
		h := hashKey("k")
		h[15] = byte(i)
		path := filepath.Join(shard, (&run{hash: h, length: c.length, seq: 1}).name())
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, c.size); err != nil { // sparse
			t.Fatal(err)
		}
	}
	d = testTier(t, dir, Options{})
	wantHit(t, d, info, 0, data)
	if s := d.Stats(); s.Bytes != want || s.Entries != 1 || s.Damaged != 5 {
		t.Errorf("%+v, want %d bytes", s, want)
	}
	if files := entryFiles(t, dir); len(files) != 1 {
		t.Errorf("%q", files)
	}
}
