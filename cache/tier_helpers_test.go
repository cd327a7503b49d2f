package cache

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/internal/diskcache"
)

func randomBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// waitFor polls: what it waits for is done by system calls of other goroutines.
func waitFor(t testing.TB, what string, done func() bool) {
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

// written waits until nothing is queued.
func written(t testing.TB, d *diskcache.Tier) {
	t.Helper()
	waitFor(t, "the queue to drain", func() bool { return d.Stats().QueuedBytes == 0 })
}

// reopen gives c another disk tier in the place of its own, which it closes.
func reopen(t testing.TB, c *Cache, dir string, o diskcache.Options) {
	t.Helper()
	if err := c.disk.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := diskcache.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	c.disk = d
}

// entryFile is a file of the disk tier, and the bytes of its object that its name says it has.
type entryFile struct {
	path   string
	off, n int64
}

var entryName = regexp.MustCompile(`^[0-9a-f]{32}-[0-9a-f]+-([0-9a-f]+)-([0-9a-f]+)-[0-9a-f]+$`)

func entries(t testing.TB, dir string) (files []entryFile) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if m := entryName.FindStringSubmatch(filepath.Base(path)); m != nil {
			off, _ := strconv.ParseInt(m[1], 16, 64)
			n, _ := strconv.ParseInt(m[2], 16, 64)
			files = append(files, entryFile{path: path, off: off, n: n})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// opCount counts the operations of the file system, as the fault hook of a tier.
type opCount struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *opCount) at(op, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[op]++
	return nil
}

// take returns the count of op and starts over.
func (c *opCount) take(op string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n[op]
	clear(c.n)
	return n
}
