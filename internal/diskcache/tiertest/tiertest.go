// Package tiertest is what the tests of the disk tier and of the cache in front of it share.
package tiertest

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Bytes returns n bytes that do not compress, the same for each seed below 1<<24.
func Bytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(b)
	return b
}

// WaitFor polls: what it waits for is done by system calls of other goroutines.
func WaitFor(t testing.TB, what string, done func() bool) {
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

// Ops counts the operations of the file system. Its At is a tier's Options.Fault.
type Ops struct {
	mu sync.Mutex
	n  map[string]int
}

// At counts op, and lets it be.
func (c *Ops) At(op, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[op]++
	return nil
}

// Take returns the count of op and starts over.
func (c *Ops) Take(op string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n[op]
	clear(c.n)
	return n
}

// Entry is a file of a tier, and the bytes of its object that its name says it has.
type Entry struct {
	Path   string
	Off, N int64
}

// entryName is the name of an entry as docs/disk-cache.md has it, with offset and length.
var entryName = regexp.MustCompile(`^[0-9a-f]{32}-[0-9a-f]+-([0-9a-f]+)-([0-9a-f]+)-[0-9a-f]+$`)

// Entries returns the entries in dir.
func Entries(t testing.TB, dir string) (found []Entry) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if m := entryName.FindStringSubmatch(filepath.Base(path)); m != nil {
			off, _ := strconv.ParseInt(m[1], 16, 64)
			n, _ := strconv.ParseInt(m[2], 16, 64)
			found = append(found, Entry{Path: path, Off: off, N: n})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// WantBlocks wants entries in dir, each of blocks of an object of that size, or the whole of it.
func WantBlocks(t testing.TB, dir string, size, block int64) {
	t.Helper()
	found := Entries(t, dir)
	if len(found) == 0 {
		t.Error("no entries on disk")
	}
	for _, e := range found {
		if end := e.Off + e.N; end > size || e.Off%block != 0 || end != size && end%block != 0 {
			t.Errorf("%s has the bytes [%d, %d)", e.Path, e.Off, end)
		}
	}
}
