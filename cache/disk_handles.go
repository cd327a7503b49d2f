package cache

import (
	"container/list"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/wholeblob/wholeblob/blob"
)

const (
	// An entry read again needs one system call instead of four (open, fstat, header, close; three with a large header's rest), for
	// a descriptor and its header in memory.
	diskMaxHandles = 256
	diskMaxSums    = 32 << 20 // bytes of headers in memory

	maxPooledScratch = 64 << 10
)

// diskHandle is an open, checked entry. Its file stays readable after it has lost its name, so a reader is safe from evictions.
type diskHandle struct {
	run  *diskRun
	file *os.File
	diskHeader

	// Guarded by diskHandles.mu.
	refs int           // readers in it
	elem *list.Element // in the cache; nil: closed by the last reader
}

// diskHandles keeps the files read last open, up to limits of files and of header bytes.
type diskHandles struct {
	mu      sync.Mutex
	byRun   map[*diskRun]*diskHandle
	recent  list.List // of *diskHandle, the one used last in front
	sums    int64
	closed  bool
	scratch sync.Pool // *[]byte
}

func (c *diskHandles) get(r *diskRun) *diskHandle {
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
func (c *diskHandles) add(h *diskHandle) *diskHandle {
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
		c.byRun = map[*diskRun]*diskHandle{}
	}
	h.elem = c.recent.PushFront(h)
	c.byRun[h.run] = h
	c.sums += h.payload
	for c.recent.Len() > 1 && (c.recent.Len() > diskMaxHandles || c.sums > diskMaxSums) {
		c.detach(c.recent.Back().Value.(*diskHandle))
	}
	return h
}

func (c *diskHandles) release(h *diskHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.refs--
	if h.refs == 0 && h.elem == nil {
		_ = h.file.Close()
	}
}

// forget closes the files of runs as soon as nobody reads them.
func (c *diskHandles) forget(runs []*diskRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range runs {
		if h := c.byRun[r]; h != nil {
			c.detach(h)
		}
	}
}

// clear forgets all; for good if the tier closes.
func (c *diskHandles) clear(closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = c.closed || closed
	for c.recent.Len() > 0 {
		c.detach(c.recent.Front().Value.(*diskHandle))
	}
}

// detach takes h out of the cache; the lock is held.
func (c *diskHandles) detach(h *diskHandle) {
	c.recent.Remove(h.elem)
	h.elem = nil
	delete(c.byRun, h.run)
	c.sums -= h.payload
	if h.refs == 0 {
		_ = h.file.Close()
	}
}

// openRun opens and checks the file of r.
func (d *disk) openRun(dir *os.Root, r *diskRun) (*diskHandle, error) {
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

func (d *disk) readHeader(file *os.File, name string, size int64, r *diskRun) (*diskHandle, error) {
	if err := d.fs.check("read", name); err != nil {
		return nil, err
	}
	if size < diskMinHeader {
		return nil, fmt.Errorf("%w: a file of %d bytes", blob.ErrTruncated, size)
	}
	b := make([]byte, min(size, diskPage))
	if _, err := file.ReadAt(b, 0); err != nil {
		return nil, err
	}
	n, err := diskHeaderLen(b)
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
	header, err := parseDiskHeader(b)
	if err != nil {
		return nil, err
	}
	if header.off != r.off || header.length != r.length || hashDiskVersion(header.info.Version) != r.ver || hashDiskKey(header.info.Key) != r.hash {
		return nil, fmt.Errorf("%w: the header is of another entry than the name", blob.ErrCorrupt)
	}
	return &diskHandle{run: r, file: file, diskHeader: *header}, nil
}

// readAt fills dst with the entry's bytes from rel on and checks each checksum block it touches. The bytes go to dst, those of
// the first and the last block that were not asked for to scratch; it is one system call.
func (d *disk) readAt(h *diskHandle, rel int64, dst []byte) error {
	block := int64(h.sumBlock)
	stop := rel + int64(len(dst))
	start := rel / block * block
	end := min((stop+block-1)/block*block, h.length)
	scratch, put := d.handles.getScratch(int(rel - start + end - stop))
	defer put()
	head, tail := scratch[:rel-start], scratch[rel-start:]
	if d.fs.fault != nil {
		if err := d.fs.check("pread", h.run.name()); err != nil {
			return err
		}
	}
	if err := readFull(h.file, head, dst, tail, h.payload+start); err != nil {
		return err
	}
	for at := start; at < end; at += block {
		next := min(at+block, end)
		var sum uint32
		if at < rel {
			sum = diskSum(0, head) // shorter than a block
		}
		sum = diskSum(sum, dst[max(at, rel)-rel:min(next, stop)-rel])
		if next > stop {
			sum = diskSum(sum, tail)
		}
		if i := at / block * diskSumSize; sum != binary.LittleEndian.Uint32(h.sums[i:]) {
			return fmt.Errorf("%w: CRC32C of block %d is %08x", blob.ErrCorrupt, at/block, sum)
		}
	}
	return nil
}

func (c *diskHandles) getScratch(n int) (b []byte, put func()) {
	if n == 0 {
		return nil, func() {}
	}
	p, _ := c.scratch.Get().(*[]byte)
	if p == nil || cap(*p) < n {
		s := make([]byte, n)
		p = &s
	}
	return (*p)[:n], func() {
		if cap(*p) <= maxPooledScratch {
			c.scratch.Put(p)
		}
	}
}

// readFull fills the three buffers from off on.
func readFull(f *os.File, head, dst, tail []byte, off int64) error {
	if len(head) == 0 && len(tail) == 0 {
		_, err := f.ReadAt(dst, off)
		return err
	}
	bufs := make([][]byte, 0, 3)
	for _, b := range [][]byte{head, dst, tail} {
		if len(b) > 0 {
			bufs = append(bufs, b)
		}
	}
	for len(bufs) > 0 {
		n, err := readVector(f, bufs, off)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		off += int64(n)
		for len(bufs) > 0 && n >= len(bufs[0]) {
			n -= len(bufs[0])
			bufs = bufs[1:]
		}
		if n > 0 {
			bufs[0] = bufs[0][n:]
		}
	}
	return nil
}
