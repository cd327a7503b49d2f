package diskcache

import (
	"container/list"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/wholeblob/wholeblob/blob"
)

const (
	// An entry read again needs one system call instead of four (open, fstat, header, close; three with a large header's rest), for
	// a descriptor and its header in memory.
	maxHandles = 256
	maxSums    = 32 << 20 // bytes of headers in memory
)

// handle is an open, checked entry. Its file stays readable after it has lost its name, so a reader is safe from evictions.
type handle struct {
	run  *run
	file *os.File
	entryHeader

	// Guarded by handleCache.mu.
	refs int           // readers in it
	elem *list.Element // in the cache; nil: closed by the last reader
}

// handleCache keeps the files read last open, up to limits of files and of header bytes.
type handleCache struct {
	mu     sync.Mutex
	byRun  map[*run]*handle
	recent list.List // of *handle, the one used last in front
	sums   int64
	closed bool
	pool   sync.Pool // *batch
}

// of reports whether the entry is of that version of the object: another may have the same hashes.
func (h *handle) of(key, version string) bool {
	return h.info.Key == key && h.info.Version == version
}

func (c *handleCache) get(r *run) *handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.byRun[r]
	if h != nil {
		h.refs++
		c.recent.MoveToFront(h.elem)
	}
	return h
}

// add puts h in the cache with one reader and returns it, or the handle that another goroutine was faster to add.
func (c *handleCache) add(h *handle) *handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.byRun[h.run]; old != nil {
		_ = h.file.Close()
		old.refs++
		return old
	}
	h.refs = 1
	if c.closed {
		return h
	}
	if c.byRun == nil {
		c.byRun = map[*run]*handle{}
	}
	h.elem = c.recent.PushFront(h)
	c.byRun[h.run] = h
	c.sums += h.payload
	for c.recent.Len() > 1 && (c.recent.Len() > maxHandles || c.sums > maxSums) {
		c.detach(c.recent.Back().Value.(*handle))
	}
	return h
}

func (c *handleCache) release(h *handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.refs--
	if h.refs == 0 && h.elem == nil {
		_ = h.file.Close()
	}
}

// forget closes the files of runs as soon as nobody reads them.
func (c *handleCache) forget(runs []*run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range runs {
		if h := c.byRun[r]; h != nil {
			c.detach(h)
		}
	}
}

// clear forgets all; for good if the tier closes.
func (c *handleCache) clear(closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = c.closed || closed
	for c.recent.Len() > 0 {
		c.detach(c.recent.Front().Value.(*handle))
	}
}

// detach takes h out of the cache; the lock is held.
func (c *handleCache) detach(h *handle) {
	c.recent.Remove(h.elem)
	h.elem = nil
	delete(c.byRun, h.run)
	c.sums -= h.payload
	if h.refs == 0 {
		_ = h.file.Close()
	}
}

// openRun opens and checks the file of r.
func (d *Tier) openRun(dir *os.Root, r *run) (*handle, error) {
	name := r.name()
	file, info, err := d.fs.open(dir, name)
	if err != nil {
		return nil, err
	}
	h, err := d.readHeader(file, name, info.Size(), r)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return h, nil
}

func (d *Tier) readHeader(file *os.File, name string, size int64, r *run) (*handle, error) {
	if err := d.fs.check("read", name); err != nil {
		return nil, err
	}
	if size < minHeader {
		return nil, fmt.Errorf("%w: a file of %d bytes", blob.ErrTruncated, size)
	}
	b := make([]byte, min(size, page))
	if _, err := file.ReadAt(b, 0); err != nil {
		return nil, err
	}
	n, err := headerLen(b)
	if err != nil {
		return nil, err
	}
	if n+r.length != size { // before a damaged length makes us allocate
		return nil, fmt.Errorf("%w: header of %d bytes and payload of %d in a file of %d", blob.ErrTruncated, n, r.length, size)
	}
	if have := int64(len(b)); n <= have {
		b = b[:n:n]
	} else {
		b = append(make([]byte, 0, n), b...)[:n]
		if _, err := file.ReadAt(b[have:], have); err != nil {
			return nil, err
		}
	}
	header, err := parseHeader(b)
	if err != nil {
		return nil, err
	}
	if header.off != r.off || header.length != r.length || hashVersion(header.info.Version) != r.ver || hashKey(header.info.Key) != r.hash {
		return nil, fmt.Errorf("%w: the header is of another entry than the name", blob.ErrCorrupt)
	}
	return &handle{run: r, file: file, entryHeader: *header}, nil
}
