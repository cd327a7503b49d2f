package blob

import (
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
)

// maxDirectRead is the most bytes that one Read of a file asks for: an io.Reader may return less than its buffer
// holds, and a Get above MaxGet would fail.
const maxDirectRead = 8 << 20

// file is an open file of FS. Its version and size are those seen at Open.
type file struct {
	fs     *blobFS
	info   fileInfo
	closed atomic.Bool

	off   int64  // of the next Read
	ahead []byte // the bytes [start, start+len(ahead)) of the object, read before they were asked for
	start int64
}

var (
	_ io.ReaderAt   = (*file)(nil)
	_ io.ReadSeeker = (*file)(nil)
)

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) {
	if f.closed.Load() {
		return nil, f.fail("stat", fs.ErrClosed)
	}
	return f.info, nil
}

// Close implements fs.File. There is nothing to release but memory.
func (f *file) Close() error {
	if f.closed.Swap(true) {
		return f.fail("close", fs.ErrClosed)
	}
	return nil
}

// Read implements fs.File.
func (f *file) Read(p []byte) (int, error) {
	switch {
	case f.closed.Load():
		return 0, f.fail("read", fs.ErrClosed)
	case len(p) == 0:
		return 0, nil
	case f.off >= f.info.Size():
		return 0, io.EOF
	}
	n := copy(p, f.buffered())
	switch {
	case n > 0:
	case len(p) >= FSReadAhead:
		data, err := f.get(p[:min(int64(len(p)), maxDirectRead, f.info.Size()-f.off)], f.off)
		if err != nil {
			return 0, err
		}
		n = len(data)
	default:
		if err := f.fill(); err != nil {
			return 0, err
		}
		n = copy(p, f.buffered())
	}
	f.off += int64(n)
	return n, nil
}

// buffered returns what has been read ahead from the offset of the next Read on.
func (f *file) buffered() []byte {
	if i := f.off - f.start; 0 <= i && i < int64(len(f.ahead)) {
		return f.ahead[i:]
	}
	return nil
}

// fill reads ahead from the offset of the next Read on, which lies before the end.
func (f *file) fill() error {
	n := min(FSReadAhead, f.info.Size()-f.off)
	buf := f.ahead[:cap(f.ahead)]
	if int64(len(buf)) < n {
		buf = make([]byte, n)
	}
	f.ahead = nil // its content is undefined from here on
	data, err := f.get(buf[:n], f.off)
	if err != nil {
		return err
	}
	f.ahead, f.start = data, f.off
	return nil
}

// ReadAt implements io.ReaderAt with one Get.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	size := f.info.Size()
	switch {
	case f.closed.Load():
		return 0, f.fail("read", fs.ErrClosed)
	case off < 0:
		return 0, f.fail("read", fs.ErrInvalid)
	case len(p) == 0:
		return 0, nil
	case off >= size:
		return 0, io.EOF
	}
	data, err := f.get(p[:min(int64(len(p)), size-off)], off)
	if err == nil && len(data) < len(p) {
		err = io.EOF
	}
	return len(data), err
}

// get fills p with the bytes at off, which all lie within the file, and returns p, or else an error and nothing.
func (f *file) get(p []byte, off int64) ([]byte, error) {
	opts := &GetOptions{Range: Span(off, int64(len(p))), Want: Want{Size: f.info.Size(), HasSize: true}, Dst: p}
	if f.info.Version != "" {
		opts.If = IfVersion(f.info.Version)
	}
	obj, err := f.fs.b.Get(f.fs.ctx, f.info.Key, opts)
	if err != nil {
		return nil, f.fail("read", err)
	}
	if len(obj.Data) != len(p) {
		return nil, f.fail("read", fmt.Errorf("%w: Get returned %d of %d bytes", ErrTruncated, len(obj.Data), len(p)))
	}
	copy(p, obj.Data) // nothing to do if it is p already
	return p, nil
}

// Seek implements io.Seeker. An offset beyond the end is allowed: the next Read is io.EOF.
func (f *file) Seek(offset int64, whence int) (int64, error) {
	if f.closed.Load() {
		return 0, f.fail("seek", fs.ErrClosed)
	}
	var base int64
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		base = f.off
	case io.SeekEnd:
		base = f.info.Size()
	default:
		return 0, f.fail("seek", fs.ErrInvalid)
	}
	if base+offset < 0 { // by overflow too: base is never negative
		return 0, f.fail("seek", fs.ErrInvalid)
	}
	f.off = base + offset
	return f.off, nil
}

func (f *file) fail(op string, err error) error { return pathError(op, f.info.Key, err) }

// dirFile is an open directory of FS.
type dirFile struct {
	fs      *blobFS
	name    string
	closed  bool
	read    bool          // entries have been listed
	entries []fs.DirEntry // that ReadDir has not returned yet
}

var _ fs.ReadDirFile = (*dirFile)(nil)

// Stat implements fs.File.
func (d *dirFile) Stat() (fs.FileInfo, error) {
	if d.closed {
		return nil, pathError("stat", d.name, fs.ErrClosed)
	}
	return dirInfo(d.name), nil
}

// Read implements fs.File: a directory has no content.
func (d *dirFile) Read([]byte) (int, error) { return 0, pathError("read", d.name, errIsDir) }

// Close implements fs.File.
func (d *dirFile) Close() error {
	if d.closed {
		return pathError("close", d.name, fs.ErrClosed)
	}
	d.closed = true
	return nil
}

// ReadDir implements fs.ReadDirFile. The directory is listed by the first call.
func (d *dirFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.closed {
		return nil, pathError("readdir", d.name, fs.ErrClosed)
	}
	if !d.read {
		entries, err := d.fs.readDir(d.name)
		if err != nil {
			return nil, pathError("readdir", d.name, err)
		}
		d.entries, d.read = entries, true
	}
	if n <= 0 {
		n = len(d.entries)
	} else if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	entries := d.entries[:n:n]
	d.entries = d.entries[n:]
	return entries, nil
}
