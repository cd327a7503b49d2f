//go:build linux || darwin

package cache

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// warmed returns a store with an object, and the directory of a cache that has closed with a whole copy of it on disk.
func warmed(t *testing.T, content []byte) (h *hooked, dir string) {
	t.Helper()
	h, dir = newHooked(), t.TempDir()
	set(t, h.inner, key, string(content))
	c := over(t, h, diskOnly(dir))
	wantGet(t, c, key, string(content))
	if err := c.shut(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(tiertest.Entries(t, dir)); n != 1 {
		t.Fatalf("%d entries", n)
	}
	return h, dir
}

// Whatever became of a file while nobody looked, the read is answered with the store's bytes at the cost of one request, the entry goes and is counted, and
// the next read has a good copy. A cut file that fails the read is restic/restic #1328.
func TestReadOfADamagedEntryIsAnsweredByTheStore(t *testing.T) {
	content := tiertest.Bytes(1, 100_000)
	for name, change := range map[string]func(b []byte) []byte{
		"half":        func(b []byte) []byte { return b[:len(b)/2] },
		"nothing":     func([]byte) []byte { return nil },
		"tail zeroed": func(b []byte) []byte { clear(b[len(b)-5000:]); return b },
		"all zeroed":  func(b []byte) []byte { clear(b); return b },
		"longer":      func(b []byte) []byte { return append(b, b...) },
	} {
		t.Run(name, func(t *testing.T) { wantMended(t, content, change) })
	}
	// A bit here and there, more of them in the header. Each of its bits is flipped beside the format.
	h, dir := warmed(t, content)
	path := tiertest.Entries(t, dir)[0].Path
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 1 + at/7 {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		c := over(t, h, diskOnly(dir))
		before := h.count(blob.OpGet)
		wantGet(t, c, key, string(content))
		if n, s := h.count(blob.OpGet)-before, c.Stats().Disk; n != 1 || s.Damaged != 1 {
			t.Fatalf("byte %d: %d requests, %+v", at, n, s)
		}
		if err := c.shut(t.Context()); err != nil {
			t.Fatal(err)
		}
		path = tiertest.Entries(t, dir)[0].Path
	}
}

func wantMended(t *testing.T, content []byte, change func(b []byte) []byte) {
	t.Helper()
	h, dir := warmed(t, content)
	path := tiertest.Entries(t, dir)[0].Path
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := over(t, h, diskOnly(dir))
	defer mustClose(t, c)
	before := h.count(blob.OpGet)
	wantGet(t, c, key, string(content))
	tiertest.WaitFor(t, "the good copy", func() bool { return c.Stats().Disk.Fills == 1 && c.Stats().Disk.Entries == 1 })
	wantGet(t, c, key, string(content))
	if n, s := h.count(blob.OpGet)-before, c.Stats(); n != 1 || s.Disk.Damaged != 1 || s.Disk.Entries != 1 || s.DiskHits != 1 || s.Misses != 1 {
		t.Errorf("%d requests, %+v", n, s)
	}
}

// Every operation of the file system fails, for good, from some moment on: each read through the cache has the store's bytes all the same, at
// once, and so has each after a Set and a Delete. The warm copy is read as long as the disk can be read. A line of the log or two tell.
func TestReadsGoOnWhateverTheDiskRefuses(t *testing.T) {
	content := string(tiertest.Bytes(1, 50_000))
	for _, op := range []string{"create", "write", "close", "rename", "remove", "open", "read", "pread", "mkdir", "opendir", "readdir", "lstat", "everything"} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.EROFS, syscall.ENOSPC, syscall.EACCES} {
			t.Run(fmt.Sprint(op, "/", errno), func(t *testing.T) {
				h, dir := warmed(t, []byte(content))
				synctest.Test(t, func(t *testing.T) {
					var on atomic.Bool
					var log bytes.Buffer
					d, err := diskcache.Open(dir, diskcache.Options{Size: 8 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil)), Fault: func(o, _ string) error {
						if on.Load() && (o == op || op == "everything") {
							return errno
						}
						return nil
					}})
					if err != nil {
						t.Fatal(err)
					}
					c := over(t, h, diskOnly(t.TempDir())) // and another disk in the place of its own
					_, c.disk = c.disk.Close(t.Context()), d
					began := time.Now()
					on.Store(true)
					for i := range 3 {
						wantGet(t, c, key, content)
						wantRange(t, c, blob.Span(5000, 10_000), content)
						k := fmt.Sprint(i)
						set(t, c, k, content+k)
						wantGet(t, c, k, content+k)
						synctest.Wait()
						wantGet(t, c, k, content+k)
						if err := c.Delete(t.Context(), k, nil); err != nil {
							t.Error(err)
						}
						wantGet(t, c, k, "absent")
					}
					if d := time.Since(began); d != 0 {
						t.Errorf("the reads and writes waited %v", d)
					}
					on.Store(false)
					if err := c.Close(t.Context()); err != nil {
						t.Error(err)
					}
					if s := d.Stats(); s.Resets > 1 {
						t.Errorf("all entries given up %d times", s.Resets)
					}
					if n := strings.Count(log.String(), "level=WARN"); n > 2 {
						t.Errorf("%d lines:\n%s", n, log.String())
					}
				})
			})
		}
	}
}
