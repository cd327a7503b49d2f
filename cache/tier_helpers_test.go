package cache

import (
	"testing"

	"github.com/wholeblob/wholeblob/internal/diskcache"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// written waits until nothing is queued.
func written(t testing.TB, d *diskcache.Tier) {
	t.Helper()
	tiertest.WaitFor(t, "the queue to drain", func() bool { return d.Stats().QueuedBytes == 0 })
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
