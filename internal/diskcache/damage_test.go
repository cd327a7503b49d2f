//go:build linux || darwin

package diskcache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// Whatever happened to a file while nobody looked, or while it was open or not, a read of it is right or a miss, the entry goes, and
// the key can be kept again. A cut file is restic/restic #1328.
func TestDiskDamagedEntriesAreMisses(t *testing.T) {
	data := tiertest.Bytes(1, 200_000)
	info := testInfo("k", "v", len(data))
	edit := func(change func(b []byte) []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(b), 0o600) // the same inode: an open file sees it too
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	replace := func(with func(path string) error) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := errors.Join(os.Remove(path), with(path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("not ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
		opened bool // an open file sees it too
	}{
		{"cut in half", edit(func(b []byte) []byte { return b[:len(b)/2] }), true},
		{"empty", edit(func([]byte) []byte { return nil }), true},
		{"cut in the header", edit(func(b []byte) []byte { return b[:100] }), true},
		{"one byte short", edit(func(b []byte) []byte { return b[:len(b)-1] }), true},
		{"one byte long", edit(func(b []byte) []byte { return append(b, 0) }), false},
		{"tail zeroed", edit(func(b []byte) []byte { clear(b[len(b)-5000:]); return b }), true},
		{"bit of the payload", edit(func(b []byte) []byte { b[len(b)-100_000] ^= 4; return b }), true},
		{"bit of the key", edit(func(b []byte) []byte { b[fixedHeader] ^= 1; return b }), false},
		{"bit of a checksum", edit(func(b []byte) []byte { b[fixedHeader+40] ^= 1; return b }), false},
		{"bit of the magic", edit(func(b []byte) []byte { b[0] ^= 1; return b }), false},
		{"huge header length", edit(func(b []byte) []byte { b[atHeaderLen+3] = 0x7f; return b }), false},
		{"later format", edit(func(b []byte) []byte { b[atFormat] = 2; return b }), false},
		{"another key", edit(func([]byte) []byte {
			h, err := encodeHeader(&blob.Info{Key: "other", Version: "v", Size: info.Size}, 0, data, 4096)
			if err != nil {
				t.Fatal(err)
			}
			return append(h, data...)
		}), false},
		{"another version", edit(func([]byte) []byte {
			h, err := encodeHeader(&blob.Info{Key: "k", Version: "v0", Size: info.Size}, 0, data, 4096)
			if err != nil {
				t.Fatal(err)
			}
			return append(h, data...)
		}), false},
		{"removed", replace(func(string) error { return nil }), false},
		{"symbolic link", replace(func(path string) error { return os.Symlink(outside, path) }), false},
		{"FIFO", replace(func(path string) error { return syscall.Mkfifo(path, 0o600) }), false},
		{"directory", replace(func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) }), false},
	} {
		for _, when := range []string{"restart", "running", "open"} {
			t.Run(c.name+"/"+when, func(t *testing.T) {
				dir := t.TempDir()
				d := testTier(t, dir, Options{})
				mustPut(t, d, info, 0, data)
				if when != "running" {
					closeTier(t, d)
				}
				path := entryFiles(t, dir)[0]
				if when == "open" {
					d = testTier(t, dir, Options{})
					wantHit(t, d, info, 0, data)
				}
				c.damage(t, path)
				if when == "restart" {
					d = testTier(t, dir, Options{})
				}
				if when == "open" && !c.opened {
					wantHit(t, d, info, 0, data) // what was checked once and is open is still the same file
					d.handles.clear(false)
				}
				wantMiss(t, d, info, 0, len(data))
				settle(t, d)
				wantMiss(t, d, info, 0, 1)
				if _, ok := d.Lookup("k"); ok {
					t.Error("still found")
				}
				s := d.Stats()
				if gone := c.name == "removed" || c.name == "directory"; s.Damaged != 1 && (!gone || when != "restart") {
					t.Errorf("not counted: %+v", s)
				}
				if s.Off || s.Resets != 0 || s.Bytes != 0 || s.Entries != 0 {
					t.Errorf("%+v", s)
				}
				mustPut(t, d, info, 0, data)
				wantHit(t, d, info, 0, data)
			})
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "not ours" {
		t.Errorf("outside the directory: %q, %v", b, err)
	}
}

// A read that touches only good blocks is right even if others are damaged; one that touches those is a miss.
func TestDiskReadsCheckTheBlocksTheyTouch(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	data := tiertest.Bytes(2, 100_000)
	info := testInfo("k", "v", len(data))
	mustPut(t, d, info, 0, data)
	path := entryFiles(t, dir)[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := len(b) - len(data) + 5*4096 + 17 // in block 5
	b[at] ^= 0x80
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	wantHit(t, d, info, 100, data[100:5*4096])
	wantHit(t, d, info, 6*4096, data[6*4096:])
	wantMiss(t, d, info, 6*4096-1, 1) // the byte is good, its block is not
	settle(t, d)
	wantMiss(t, d, info, 100, 1)
}

func TestDiskJunkAndForeignFiles(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	data := tiertest.Bytes(3, 10_000)
	info := testInfo("k", "v", len(data))
	mustPut(t, d, info, 0, data)
	bytes := d.Stats().Bytes
	closeTier(t, d)
	shard := filepath.Dir(entryFiles(t, dir)[0])
	old := filepath.Join(dir, genPrefix+strings.Repeat("ab", 16), "00")
	if err := os.MkdirAll(old, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(path string) {
		if err := os.WriteFile(path, data[:100], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10_000 {
		write(filepath.Join(shard, fmt.Sprintf("%s%016x-%x", tempPrefix, 7, i)))
	}
	write(filepath.Join(dir, tempPrefix+"0000000000000007-1"))
	write(filepath.Join(filepath.Dir(shard), tempPrefix+"0000000000000007-1"))
	write(filepath.Join(old, (&run{length: 100}).name()))
	foreign := []string{filepath.Join(shard, "README"), filepath.Join(dir, "notes.txt"), filepath.Join(shard, strings.Repeat("f", 32)+"-1-2-3-4")}
	for _, path := range foreign {
		write(path)
	}
	d = testTier(t, dir, Options{})
	wantHit(t, d, info, 0, data)
	tiertest.WaitFor(t, "the index and the sweep", func() bool {
		_, err := os.Lstat(filepath.Dir(old))
		s := d.Stats()
		return s.Indexed && s.Junk == 10_002 && os.IsNotExist(err)
	})
	if s := d.Stats(); s.Bytes != bytes || s.Entries != 1 || s.Foreign != 2 || s.Damaged != 0 {
		t.Errorf("%+v, want %d bytes", s, bytes)
	}
	for _, path := range foreign {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("a foreign file is gone: %v", err)
		}
	}
}

// Files of two versions of a key can only come from outside or a crash: neither is served.
func TestDiskFilesOfTwoVersionsAreBothDropped(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	data := tiertest.Bytes(4, 10_000)
	one, two := testInfo("k", "v1", len(data)), testInfo("k", "v2", len(data))
	mustPut(t, d, one, 0, data)
	path := entryFiles(t, dir)[0]
	saved, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, d, two, 0, data)
	closeTier(t, d)
	if err := os.WriteFile(path, saved, 0o600); err != nil {
		t.Fatal(err)
	}
	d = testTier(t, dir, Options{})
	wantMiss(t, d, one, 0, 1)
	wantMiss(t, d, two, 0, 1)
	if files := entryFiles(t, dir); len(files) != 0 || d.Stats().Damaged != 2 {
		t.Errorf("%v %+v", files, d.Stats())
	}
}

// After a crash of the machine names that were removed may be back: only an orderly end, or the same run of the kernel, vouches
// for entries.
func TestDiskEntriesAreGivenUpAfterACrashOfTheMachine(t *testing.T) {
	for _, c := range []struct {
		name          string
		closed        bool
		before, after string
		kept          bool
	}{
		{"closed, same boot", true, "A", "A", true},
		{"closed, rebooted", true, "A", "B", true},
		{"killed, same boot", false, "A", "A", true},
		{"killed, rebooted", false, "A", "B", false},
		{"killed, boot unknown", false, "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			d := testTier(t, dir, Options{boot: func() string { return c.before }})
			data := tiertest.Bytes(5, 10_000)
			info := testInfo("k", "v", len(data))
			mustPut(t, d, info, 0, data)
			if c.closed {
				closeTier(t, d)
			}
			copied := t.TempDir() // what a process that was killed now would leave
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			d = testTier(t, copied, Options{boot: func() string { return c.after }})
			if got := d.Read("k", "v", 0, make([]byte, 10)); got != c.kept {
				t.Errorf("hit %v, want %v", got, c.kept)
			}
		})
	}
}

func TestDiskDirectoryHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	_, err := Open(dir, Options{Size: 1 << 20})
	if !errors.Is(err, blob.ErrConflict) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("second open: %v", err)
	}
	closeTier(t, d)
	testTier(t, dir, Options{})
}
