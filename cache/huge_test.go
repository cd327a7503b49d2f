package cache

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// Objects are larger than what is kept of them, and dropping one, under a lock, costs what is kept. By what it has it would take years.
func TestDropOfAHugeObjectCostsWhatIsKeptOfIt(t *testing.T) {
	c := over(t, memblob.New(nil), Options{Block: block})
	defer mustClose(t, c)
	h := newHead(blob.Info{Key: key, Version: "1", Size: 1 << 60}, 1, 0)
	c.memory.put(key, h)
	c.memory.add(h, 5, []byte("x"))
	c.memory.add(h, 1<<40, []byte("x"))
	c.invalidate(key)
	c.memory.cache.CleanUp()
	if n := c.memory.bytes(); n != 0 {
		t.Errorf("%d bytes are in use by what nobody can reach", n)
	}
}

// What is noted of blocks is gone with them: an object of which ever other blocks are read does not fill the heap with their numbers.
func TestEvictedBlocksAreNotRemembered(t *testing.T) {
	c := over(t, memblob.New(nil), Options{Memory: 1 << 20, Block: block})
	defer mustClose(t, c)
	h := newHead(blob.Info{Key: key, Version: "1", Size: 1 << 60}, 1, 0)
	c.memory.put(key, h)
	for i := range int64(10_000) {
		c.memory.head(key)
		c.memory.add(h, i, make([]byte, block))
	}
	c.memory.cache.CleanUp()
	s := h.blocks.Load()
	if s == nil {
		t.Fatal("the object was evicted, though it is used most")
	}
	if n, most := len(s.take()), (1<<20)/block; n > most || n == 0 {
		t.Errorf("%d blocks are noted, of which %d fit", n, most)
	}
}
