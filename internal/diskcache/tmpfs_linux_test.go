package diskcache

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// A file system that really is full: fills are skipped, what was kept is read, and a drop makes room.
func TestDiskOnAFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,nr_inodes=2000"); err != nil {
		t.Skipf("needs a file system of 1 MiB: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	d := testTier(t, dir, Options{Size: 8 << 20})
	data := tiertest.Bytes(1, 60_000)
	for i := range 40 {
		d.Put(testInfo(fmt.Sprint(i), "v", len(data)), 0, data)
		settle(t, d)
	}
	s := d.Stats()
	if !s.Off || s.TimesOff != 1 || s.Fills < 10 || s.SkippedFills != 40-s.Fills {
		t.Errorf("%+v", s)
	}
	for i := range 40 {
		dst := make([]byte, len(data))
		key := fmt.Sprint(i)
		if d.Read(key, "v", 0, dst) && string(dst) != string(data) {
			t.Error("other bytes")
		}
		d.Drop(key)
	}
	if s := d.Stats(); s.Entries != 0 || s.Hits != s.Fills || s.Damaged != 0 {
		t.Errorf("%+v", s)
	}
}
