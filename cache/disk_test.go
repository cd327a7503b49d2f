package cache

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
)

// testDisk opens a tier and closes it with the test; nothing may be left running then.
func testDisk(t testing.TB, dir string, o diskOptions) *disk {
	t.Helper()
	if o.size == 0 {
		o.size = 64 << 20
	}
	ignore := goleak.IgnoreCurrent()
	d, err := openDisk(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(context.Background()); err != nil && o.fault == nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, ignore)
	})
	return d
}

func closeDisk(t testing.TB, d *disk) {
	t.Helper()
	if err := d.close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// settleDisk waits until nothing is queued, found damaged or to be evicted.
func settleDisk(t testing.TB, d *disk) {
	t.Helper()
	diskWait(t, "the queue to drain", func() bool { return d.queue.size() == 0 })
	d.removeCondemned()
	d.evict()
}

// diskWait polls: what it waits for is done by system calls of other goroutines.
func diskWait(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-t.Context().Done():
			t.Fatalf("ended while waiting for %s", what)
		case <-tick.C:
		}
	}
}

func diskBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(b)
	return b
}

func diskInfo(key, version string, size int) blob.Info {
	return blob.Info{
		Key: key, Version: version, Size: int64(size), ModTime: time.Unix(1700000000, 123456789).UTC(),
		Metadata: map[string]string{"owner": "tests", "empty": ""}, ContentType: "text/plain", CRC32C: 7, HasCRC32C: true,
	}
}

func diskPut(t testing.TB, d *disk, info blob.Info, off int64, data []byte) {
	t.Helper()
	if !d.put(info, off, data) {
		t.Fatalf("put %q at %d was skipped: %+v", info.Key, off, d.stats())
	}
	settleDisk(t, d)
}

func diskHit(t testing.TB, d *disk, info blob.Info, off int64, want []byte) {
	t.Helper()
	dst := make([]byte, len(want))
	if !d.read(info.Key, info.Version, off, dst) {
		t.Fatalf("read %q [%d, +%d) missed: %+v", info.Key, off, len(want), d.stats())
	}
	if !bytes.Equal(dst, want) {
		t.Fatalf("read %q [%d, +%d) gave other bytes", info.Key, off, len(want))
	}
}

func diskMiss(t testing.TB, d *disk, info blob.Info, off int64, n int) {
	t.Helper()
	if d.read(info.Key, info.Version, off, make([]byte, n)) {
		t.Fatalf("read %q [%d, +%d) hit", info.Key, off, n)
	}
}

// entryFiles returns the paths of the entries in dir.
func entryFiles(t testing.TB, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if _, ok := parseDiskName(filepath.Base(path)); ok {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestDiskKeepsWhatWasPut(t *testing.T) {
	for _, size := range []int{0, 1, 511, 4095, 4096, 4097, 65535, 65536, 1<<20 + 17} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			dir := t.TempDir()
			d := testDisk(t, dir, diskOptions{})
			data, info := diskBytes(1, size), diskInfo("k", "v1", size)
			diskPut(t, d, info, 0, data)
			check := func(d *disk) {
				got, ok := d.lookup("k")
				if !ok || fmt.Sprint(got) != fmt.Sprint(info) {
					t.Fatalf("lookup: %v %+v, want %+v", ok, got, info)
				}
				diskHit(t, d, info, 0, data)
				for range 50 {
					off := rand.IntN(size + 1)
					if size > 0 && off == size {
						off--
					}
					diskHit(t, d, info, int64(off), data[off:off+rand.IntN(size-off+1)])
				}
				diskMiss(t, d, info, 0, size+1)
				diskMiss(t, d, diskInfo("k", "v2", size), 0, size)
				diskMiss(t, d, diskInfo("other", "v1", size), 0, size)
			}
			check(d)
			closeDisk(t, d)
			check(testDisk(t, dir, diskOptions{}))
		})
	}
}

func TestDiskRunsBesideEachOtherAreOneRead(t *testing.T) {
	d := testDisk(t, t.TempDir(), diskOptions{})
	const block = 64 << 10
	data := diskBytes(2, 3*block+100)
	info := diskInfo("k", "v", len(data))
	diskPut(t, d, info, 2*block, data[2*block:])
	diskPut(t, d, info, 0, data[:block])
	diskMiss(t, d, info, block-1, 2)
	diskPut(t, d, info, block, data[block:2*block])
	diskHit(t, d, info, 0, data)
	diskHit(t, d, info, block-1, data[block-1:2*block+1])
	d.drop("k")
	diskPut(t, d, info, 0, data[:block])
	diskPut(t, d, info, 2*block, data[2*block:])
	diskPut(t, d, info, 0, data)
	if s := d.stats(); s.Entries != 1 {
		t.Errorf("%d entries after the whole object replaced its runs", s.Entries)
	}
	diskHit(t, d, info, 0, data)
	fills := d.stats().Fills
	diskPut(t, d, info, block, data[block:2*block])
	if s := d.stats(); s.Fills != fills {
		t.Errorf("what is there already was written again")
	}
}

func TestDiskHoldsOneVersionOfAKey(t *testing.T) {
	dir := t.TempDir()
	d := testDisk(t, dir, diskOptions{})
	one, two := diskBytes(3, 5000), diskBytes(4, 6000)
	diskPut(t, d, diskInfo("k", "v1", 5000), 0, one)
	diskPut(t, d, diskInfo("k", "v2", 6000), 0, two)
	diskMiss(t, d, diskInfo("k", "v1", 5000), 0, 1)
	diskHit(t, d, diskInfo("k", "v2", 6000), 0, two)
	if files := entryFiles(t, dir); len(files) != 1 {
		t.Errorf("files of two versions: %v", files)
	}
}

func TestDiskRefusesRunsThatDoNotFitTheObject(t *testing.T) {
	d := testDisk(t, t.TempDir(), diskOptions{size: 1 << 20})
	for _, c := range []struct {
		name   string
		size   int
		off    int64
		length int
	}{
		{"past the end", 10000, 8192, 4096},
		{"beyond the end", 10000, 12288, 4096},
		{"negative offset", 10000, -4096, 4096},
		{"unaligned start", 10000, 100, 9900},
		{"short in the middle", 10000, 0, 5000},
		{"empty run", 10000, 0, 0},
		{"longer than the object", 10, 0, 11},
		{"too large for the tier", 1 << 20, 0, 1 << 20},
	} {
		if d.put(diskInfo("k", "v", c.size), c.off, make([]byte, c.length)) {
			t.Errorf("%s: accepted", c.name)
		}
	}
	if s := d.stats(); s.SkippedFills != 8 || s.Entries != 0 || s.QueuedBytes != 0 {
		t.Errorf("%+v", s)
	}
}

func TestDiskDropForgetsAtOnceAndAcrossRestarts(t *testing.T) {
	dir := t.TempDir()
	d := testDisk(t, dir, diskOptions{})
	data := diskBytes(5, 100_000)
	info := diskInfo("k", "v", len(data))
	diskPut(t, d, info, 0, data)
	diskHit(t, d, info, 0, data) // its file is open now
	d.drop("k")
	diskMiss(t, d, info, 0, 1)
	if _, ok := d.lookup("k"); ok {
		t.Error("found after drop")
	}
	if files := entryFiles(t, dir); len(files) != 0 {
		t.Errorf("left: %v", files)
	}
	diskPut(t, d, info, 0, data)
	closeDisk(t, d)
	d = testDisk(t, dir, diskOptions{})
	d.drop("k") // before anything was looked for
	diskMiss(t, d, info, 0, 1)
	closeDisk(t, d)
	diskMiss(t, testDisk(t, dir, diskOptions{}), info, 0, 1)
}

// A drop must win wherever the fill is: queued, written, about to be published.
func TestDiskDropCancelsAPutAtEveryStep(t *testing.T) {
	for _, op := range []string{"create", "write", "close", "rename"} {
		t.Run(op, func(t *testing.T) {
			reached, goOn := make(chan struct{}), make(chan struct{})
			armed := make(chan struct{}, 1)
			dir := t.TempDir()
			d := testDisk(t, dir, diskOptions{fault: func(o, name string) error {
				if o == op && (strings.HasPrefix(name, diskTempPrefix) || o == "rename") {
					select {
					case <-armed:
						close(reached)
						<-goOn
					default:
					}
				}
				return nil
			}})
			data := diskBytes(6, 10_000)
			info := diskInfo("k", "v", len(data))
			armed <- struct{}{}
			if !d.put(info, 0, data) {
				t.Fatal("skipped")
			}
			<-reached
			dropped := make(chan struct{})
			go func() {
				d.drop("k")
				close(dropped)
			}()
			if op == "rename" { // drop waits for it: let it
				close(goOn)
				<-dropped
			} else {
				<-dropped
				close(goOn)
			}
			settleDisk(t, d)
			diskMiss(t, d, info, 0, 1)
			if files := entryFiles(t, dir); len(files) != 0 {
				t.Errorf("left: %v", files)
			}
		})
	}
}

func TestDiskSkipsFillsWhenTheQueueIsFull(t *testing.T) {
	var armed atomic.Bool
	goOn := make(chan struct{})
	d := testDisk(t, t.TempDir(), diskOptions{queue: 64 << 10, fault: func(op, _ string) error {
		if op == "create" && armed.Load() {
			<-goOn
		}
		return nil
	}})
	armed.Store(true)
	data := diskBytes(9, 20_000)
	var kept []blob.Info
	for i := range 10 {
		if info := diskInfo(fmt.Sprint(i), "v", len(data)); d.put(info, 0, data) {
			kept = append(kept, info)
		}
	}
	if s := d.stats(); len(kept) != 3 || s.SkippedFills != 7 || s.QueuedBytes > 64<<10 {
		t.Errorf("%d accepted: %+v", len(kept), s)
	}
	close(goOn)
	settleDisk(t, d)
	for _, info := range kept {
		diskHit(t, d, info, 0, data)
	}
	if s := d.stats(); s.QueuedBytes != 0 || s.Fills != 3 {
		t.Errorf("%+v", s)
	}
}

func TestDiskEvictsByBytesAndKeepsWhatIsRead(t *testing.T) {
	const size = 1 << 20
	d := testDisk(t, t.TempDir(), diskOptions{size: size})
	diskWait(t, "the index", func() bool { return d.stats().Indexed })
	data := diskBytes(7, 10_000)
	hot := diskInfo("hot", "v", len(data))
	diskPut(t, d, hot, 0, data)
	for i := range 500 {
		diskPut(t, d, diskInfo(fmt.Sprintf("cold%d", i), "v", len(data)), 0, data)
		diskHit(t, d, hot, 0, data)
		if s := d.stats(); s.Bytes > size {
			t.Fatalf("%d bytes in a tier of %d", s.Bytes, size)
		}
	}
	s := d.stats()
	if s.Bytes < size*9/10 || s.Evictions == 0 || s.Evictions+s.Entries != 501 {
		t.Errorf("%+v", s)
	}
}

func TestDiskReadersOfAnEvictedFileAreSafe(t *testing.T) {
	d := testDisk(t, t.TempDir(), diskOptions{})
	data := diskBytes(8, 1<<20)
	info := diskInfo("k", "v", len(data))
	diskPut(t, d, info, 0, data)
	g := d.gen.Load()
	hash := hashDiskKey("k")
	r := g.shard(hash).any(hash)
	h, _ := d.acquire(g, g.shard(hash), r)
	d.drop("k")
	dst := make([]byte, len(data))
	if err := d.readAt(h, 0, dst); err != nil || !bytes.Equal(dst, data) {
		t.Errorf("a reader lost its file: %v", err)
	}
	d.handles.release(h)
	if _, err := h.file.Stat(); err == nil {
		t.Error("the file stays open")
	}
}

func TestDiskOptionsAreChecked(t *testing.T) {
	for _, o := range []diskOptions{{}, {size: -1}, {size: 1 << 20, queue: -1}, {size: 1 << 20, sumBlock: 1000}, {size: 1 << 20, sumBlock: 256}} {
		if _, err := openDisk(t.TempDir(), o); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openDisk(file, diskOptions{size: 1 << 20}); err == nil {
		t.Error("a file taken for a directory")
	}
}
