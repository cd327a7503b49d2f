package diskcache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// readAll reads ranges of offset and length, and checks what it got against data.
func readAll(t testing.TB, d *Tier, info blob.Info, data []byte, ranges ...[2]int64) (hits int) {
	t.Helper()
	parts := make([]Part, len(ranges))
	for i, r := range ranges {
		parts[i] = Part{Off: r[0], N: r[1]}
		if i%2 == 0 {
			parts[i].Dst = make([]byte, r[1])
		}
	}
	d.ReadParts(info.Key, info.Version, parts)
	for i, p := range parts {
		if !p.OK {
			continue
		}
		hits++
		if !bytes.Equal(p.Dst, data[p.Off:p.Off+p.N]) {
			t.Errorf("part %d, [%d, +%d): other bytes", i, p.Off, p.N)
		}
	}
	return hits
}

func TestDiskRangesNearEachOtherAreOneSystemCall(t *testing.T) {
	const far = 4096 + maxGap + 1
	var ops tiertest.Ops
	d := testTier(t, t.TempDir(), Options{Fault: ops.At})
	data := tiertest.Bytes(1, 1<<20)
	info := testInfo("k", "v", len(data))
	mustPut(t, d, info, 0, data[:512<<10])
	mustPut(t, d, info, 512<<10, data[512<<10:])
	many := make([][2]int64, 3000)
	for i := range many {
		many[i] = [2]int64{int64(i) * 100, 50}
	}
	for _, c := range []struct {
		name   string
		ranges [][2]int64
		calls  int
	}{
		{"one", [][2]int64{{5000, 100}}, 1},
		{"beside each other", [][2]int64{{4096, 4096}, {8192, 4096}}, 1},
		{"in one checksum block", [][2]int64{{4100, 5}, {4200, 5}, {8000, 5}}, 1},
		{"in any order", [][2]int64{{20000, 100}, {4096, 100}, {12000, 100}}, 1},
		{"equal", [][2]int64{{20000, 100}, {20000, 100}}, 1},
		{"within each other", [][2]int64{{20000, 10000}, {22000, 100}, {22050, 9000}}, 1},
		{"near", [][2]int64{{0, 4096}, {4096 + maxGap, 100}}, 1},
		{"far", [][2]int64{{0, 4096}, {far, 100}}, 2},
		{"near and far", [][2]int64{{far + 100, 100}, {0, 4096}, {far, 100}, {4000, 96}}, 2},
		{"across two files", [][2]int64{{512<<10 - 100, 200}}, 2},
		{"in two files", [][2]int64{{512 << 10, 100}, {512<<10 - 100, 50}, {512<<10 + 100, 100}}, 2},
		{"to the end", [][2]int64{{1<<20 - 10, 10}, {1<<20 - 5000, 10}}, 1},
		{"more than a call takes", many, 6},
	} {
		ops.Take("")
		if hits := readAll(t, d, info, data, c.ranges...); hits != len(c.ranges) {
			t.Errorf("%s: %d of %d hit", c.name, hits, len(c.ranges))
		}
		if calls := ops.Take("pread"); calls != c.calls {
			t.Errorf("%s: %d system calls, want %d", c.name, calls, c.calls)
		}
	}
}

// What is not there, or damaged, hinders no other range.
func TestDiskRangesAreAnsweredOneByOne(t *testing.T) {
	var broken string
	d := testTier(t, t.TempDir(), Options{Fault: func(op, name string) error {
		if op == "pread" && broken != "" && strings.Contains(name, broken) {
			return fmt.Errorf("broken")
		}
		return nil
	}})
	const block = 64 << 10
	data := tiertest.Bytes(2, 4*block)
	info := testInfo("k", "v", len(data))
	for _, off := range []int{0, block, 3 * block} {
		mustPut(t, d, info, int64(off), data[off:off+block])
	}
	all := [][2]int64{{10, 10}, {block - 5, 10}, {block, block}, {2*block - 1, 2}, {2 * block, 1}, {3 * block, block}, {3 * block, block + 1}, {-1, 5}}
	if hits := readAll(t, d, info, data, all...); hits != 4 {
		t.Errorf("%d hits", hits)
	}
	if hits := readAll(t, d, testInfo("k", "w", len(data)), data, all...); hits != 0 {
		t.Errorf("%d hits of another version", hits)
	}
	broken = fmt.Sprintf("-%x-%x-", block, block) // the file at block
	if hits := readAll(t, d, info, data, all...); hits != 2 {
		t.Errorf("%d hits beside a broken file", hits)
	}
	if s := d.Stats(); s.Damaged != 1 {
		t.Errorf("%+v", s)
	}
}

func TestDiskRangesGiveTheBytesOfTheObject(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for _, sumBlock := range []int{512, 4096, 64 << 10} {
		d := testTier(t, t.TempDir(), Options{sumBlock: sumBlock})
		data := tiertest.Bytes(3, 5<<17+77)
		info := testInfo("k", "v", len(data))
		for off := 0; off < len(data); off += 1 << 17 { // files that overlap
			mustPut(t, d, info, int64(off), data[off:min(off+1<<17+1<<16, len(data))])
		}
		for range 300 {
			ranges := make([][2]int64, 1+rnd.IntN(20))
			for i := range ranges {
				off := rnd.Int64N(info.Size)
				ranges[i] = [2]int64{off, 1 + rnd.Int64N(min(info.Size-off, 1<<rnd.IntN(19)))}
			}
			if hits := readAll(t, d, info, data, ranges...); hits != len(ranges) {
				t.Fatalf("%d of %d hit", hits, len(ranges))
			}
		}
	}
}

// Whatever a call reads is checked, also what lies between the ranges.
func TestDiskRangesAreCheckedPerBlock(t *testing.T) {
	data := tiertest.Bytes(4, 64<<10)
	info := testInfo("k", "v", len(data))
	for at := range 10 {
		dir := t.TempDir()
		d := testTier(t, dir, Options{})
		mustPut(t, d, info, 0, data)
		flipByte(t, entryFiles(t, dir)[0], int64(page+at*page+100))
		hits := readAll(t, d, info, data, [2]int64{page + 10, 20}, [2]int64{3*page - 10, page}, [2]int64{5 * page, page})
		if want := map[bool]int{true: 0, false: 3}[at >= 1 && at <= 5]; hits != want {
			t.Errorf("block %d damaged: %d hits, want %d", at, hits, want)
		}
	}
}

func flipByte(t testing.TB, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

// What is used again keeps neither the slices of callers nor more than a little of its own. Buffers of one request in another are grafana/loki #13162.
func TestDiskBatchesAreLeftEmpty(t *testing.T) {
	d := testTier(t, t.TempDir(), Options{})
	dst := make([]byte, 100)
	for _, scratch := range []int{maxPooledScratch, maxPooledScratch + 1} {
		b := &batch{bufs: [][]byte{dst, dst}, iov: [][]byte{dst, dst}[:1], scratch: make([]byte, scratch), seg: [1]segment{{dst: dst}}}
		d.handles.put(b)
		for _, buf := range slices.Concat(b.bufs[:cap(b.bufs)], b.iov[:cap(b.iov)], [][]byte{b.seg[0].dst}) {
			if buf != nil {
				t.Error("keeps a buffer of its caller")
			}
		}
		if cap(b.scratch) > maxPooledScratch {
			t.Errorf("keeps %d bytes", cap(b.scratch))
		}
	}
}
