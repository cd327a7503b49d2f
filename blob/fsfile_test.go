package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

// whole returns n bytes that differ from place to place.
func whole(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16)
	}
	return b
}

// open stores content and opens it.
func open(t *testing.T, b blob.Blob, content []byte) *fsFile {
	t.Helper()
	if _, err := b.Set(t.Context(), "f", blob.Bytes(content), nil); err != nil {
		t.Fatal(err)
	}
	f, err := blob.FS(t.Context(), b).Open("f")
	if err != nil {
		t.Fatal(err)
	}
	return &fsFile{f, f.(io.ReadSeeker), f.(io.ReaderAt)}
}

type fsFile struct {
	fs.File
	io.Seeker
	io.ReaderAt
}

func TestFSFileIsAGoodReader(t *testing.T) {
	for _, n := range []int{0, 1, 1000, blob.FSReadAhead + 7} {
		if err := iotest.TestReader(open(t, memblob.New(nil), whole(n)), whole(n)); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestFSReadsAhead(t *testing.T) {
	const ahead = blob.FSReadAhead
	content := whole(9<<20 + 3)
	for _, c := range []struct{ size, buffer, gets int }{
		{0, 100, 0},
		{1, 100, 1},
		{4 * ahead, 4096, 4},
		{4 * ahead, 1000, 4},
		{4*ahead + 1, ahead - 1, 5},
		{4 * ahead, ahead, 4},          // directly
		{4 * ahead, 4 * ahead, 1},      // one request for a large buffer
		{4*ahead - 1, 4 * ahead, 1},    // also at the end
		{len(content), 16 << 20, 2},    // but bounded
		{2*ahead + 10, 2*ahead + 1, 2}, // the rest by reading ahead
	} {
		b := blobtest.NewFaults(memblob.New(nil))
		f := open(t, b, content[:c.size])
		var got []byte
		for buf := make([]byte, c.buffer); ; {
			n, err := f.Read(buf)
			got = append(got, buf[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if gets := b.Calls(blob.OpGet); gets != c.gets || !bytes.Equal(got, content[:c.size]) {
			t.Errorf("%d bytes into %d: %d Gets, want %d; %d bytes came", c.size, c.buffer, gets, c.gets, len(got))
		}
	}
}

func TestFSSeeks(t *testing.T) {
	content := whole(3 * blob.FSReadAhead)
	b := blobtest.NewFaults(memblob.New(nil))
	f := open(t, b, content)
	for _, off := range []int64{10, 0, 5, blob.FSReadAhead - 10, 2 * blob.FSReadAhead, 0, blob.FSReadAhead - 1} {
		p := make([]byte, 20)
		if at, err := f.Seek(off, io.SeekStart); at != off || err != nil {
			t.Fatal(at, err)
		}
		if _, err := io.ReadFull(f, p); err != nil || !bytes.Equal(p, content[off:off+20]) {
			t.Errorf("at %d: %v", off, err)
		}
	}
	if n := b.Calls(blob.OpGet); n != 6 { // what lies ahead already costs nothing
		t.Errorf("%d Gets", n)
	}
	for _, c := range []struct {
		off    int64
		whence int
	}{{-1, io.SeekStart}, {-int64(len(content)) - 1, io.SeekEnd}, {math.MinInt64, io.SeekCurrent}, {math.MaxInt64, io.SeekEnd}, {0, 3}} {
		if _, err := f.Seek(c.off, c.whence); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Seek(%d, %d): %v", c.off, c.whence, err)
		}
	}
	if n, err := f.ReadAt(make([]byte, 1), -1); n != 0 || !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("ReadAt of a negative offset: %d, %v", n, err)
	}
	if at, err := f.Seek(0, io.SeekCurrent); at != blob.FSReadAhead+19 || err != nil {
		t.Errorf("a refused Seek moved to %d, %v", at, err)
	}
	if at, err := f.Seek(100, io.SeekEnd); at != int64(len(content))+100 || err != nil {
		t.Error(at, err)
	}
	if n, err := f.Read(make([]byte, 1)); n != 0 || err != io.EOF { //nolint:errorlint // io.EOF itself
		t.Error(n, err)
	}
}

func TestFSReadAtServesManyAtOnce(t *testing.T) {
	content := whole(100_000)
	f := open(t, memblob.New(nil), content)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p := make([]byte, 5000)
			for off := int64(i); off < 90_000; off += 9999 {
				if n, err := f.ReadAt(p, off); n != len(p) || err != nil || !bytes.Equal(p, content[off:off+5000]) {
					t.Errorf("at %d: %d, %v", off, n, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestFSFileIsOneVersion(t *testing.T) {
	content := whole(3 * blob.FSReadAhead)
	for name, c := range map[string]struct {
		change func(b blob.Blob) error
		want   error
	}{
		"replaced": {func(b blob.Blob) error {
			_, err := b.Set(t.Context(), "f", blob.Bytes(bytes.Clone(content)), nil)
			return err
		}, blob.ErrPrecondition},
		"deleted": {func(b blob.Blob) error { return b.Delete(t.Context(), "f", nil) }, fs.ErrNotExist},
	} {
		b := memblob.New(nil)
		f := open(t, b, content)
		if _, err := io.ReadFull(f, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if err := c.change(b); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(f)
		if !errors.Is(err, c.want) || len(rest) != blob.FSReadAhead-10 {
			t.Errorf("%s: Read of %d bytes: %v", name, len(rest), err)
		}
		if n, err := f.ReadAt(make([]byte, 10), 0); n != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: ReadAt: %d, %v", name, n, err)
		}
		if info, err := f.Stat(); err != nil || info.Size() != int64(len(content)) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// versionless is a store that has no versions, and hands out the bytes it keeps.
type versionless struct{ blob.Blob }

func (v versionless) Stat(ctx context.Context, key string) (blob.Info, error) {
	info, err := v.Blob.Stat(ctx, key)
	info.Version = ""
	return info, err
}

func (v versionless) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	if opts != nil && !opts.If.IsZero() {
		return blob.Object{}, errors.New("a condition on a store without versions")
	}
	return v.Blob.Get(ctx, key, opts)
}

func TestFSWithoutVersionsNoticesAnotherSize(t *testing.T) {
	for _, n := range []int{999, 1001} {
		b := versionless{memblob.New(nil)}
		f := open(t, b, whole(1000))
		if err := iotest.TestReader(f, whole(1000)); err != nil {
			t.Fatal(err)
		}
		f = open(t, b, whole(1000))
		if _, err := b.Set(t.Context(), "f", blob.Bytes(whole(n)), nil); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(f); err == nil || len(got) != 0 {
			t.Errorf("%d bytes instead of 1000: read %d, %v", n, len(got), err)
		}
	}
}

// sharing is a store whose Get returns the same slice to all, as one with a cache may.
type sharing struct {
	blob.Blob
	data []byte
}

func (s sharing) Get(context.Context, string, *blob.GetOptions) (blob.Object, error) {
	return blob.Object{Info: blob.Info{Size: int64(len(s.data))}, Data: s.data}, nil
}

func TestFSReadFileReturnsACopy(t *testing.T) {
	s := sharing{memblob.New(nil), []byte("shared")}
	got, err := fs.ReadFile(blob.FS(t.Context(), s), "f")
	if err != nil || string(got) != "shared" {
		t.Fatal(got, err)
	}
	got[0] = 'X'
	if string(s.data) != "shared" {
		t.Error("the caller changed what the store shares")
	}
	// A file too keeps no slice of a store that leaves Dst alone.
	f := open(t, s, []byte("shared"))
	if n, err := f.Read(got); n != 6 || err != nil || string(got) != "shared" {
		t.Errorf("%q, %v", got, err)
	}
	got[0] = 'X'
	if n, err := f.ReadAt(got, 0); n != 6 || err != nil || string(got) != "shared" || string(s.data) != "shared" {
		t.Errorf("%q from %q, %v", got, s.data, err)
	}
}

func TestFSIsNeverSilentAboutMissingBytes(t *testing.T) {
	b := blobtest.NewFaults(memblob.New(nil), blobtest.Fault{Do: blobtest.Truncate, Op: blob.OpGet})
	f := open(t, b, whole(1000))
	if got, err := io.ReadAll(f); !errors.Is(err, blob.ErrTruncated) || len(got) != 0 {
		t.Errorf("Read: %d bytes, %v", len(got), err)
	}
	if n, err := f.ReadAt(make([]byte, 100), 0); !errors.Is(err, blob.ErrTruncated) || n != 0 {
		t.Errorf("ReadAt: %d bytes, %v", n, err)
	}
	if got, err := fs.ReadFile(blob.FS(t.Context(), b), "f"); !errors.Is(err, blob.ErrTruncated) {
		t.Errorf("ReadFile: %d bytes, %v", len(got), err)
	}
}

func TestFSGoesOnAfterAFailedRead(t *testing.T) {
	content := whole(2 * blob.FSReadAhead)
	b := blobtest.NewFaults(memblob.New(nil), blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpGet, Call: 2})
	f := open(t, b, content)
	first, err := io.ReadAll(f)
	if !errors.Is(err, blob.ErrUnavailable) {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(append(first, rest...), content) {
		t.Errorf("%d and %d bytes, %v", len(first), len(rest), err)
	}
}

func TestFSKeepsWithinMaxGetExceptWhereAsked(t *testing.T) {
	f := open(t, memblob.New(&memblob.Options{MaxGet: blob.FSReadAhead}), whole(2*blob.FSReadAhead))
	if n, err := f.ReadAt(make([]byte, blob.FSReadAhead+1), 0); n != 0 || !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("%d, %v", n, err)
	}
	if got, err := io.ReadAll(io.LimitReader(iotest.OneByteReader(f), 1<<30)); err != nil || len(got) != 2*blob.FSReadAhead {
		t.Errorf("%d, %v", len(got), err)
	}
}

func TestFSClosedFilesRefuse(t *testing.T) {
	b := memblob.New(nil)
	f := open(t, b, whole(10))
	d, err := blob.FS(t.Context(), b).Open(".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(nil); err == nil || errors.Is(err, fs.ErrClosed) || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("Read of a directory: %v", err)
	}
	if err := errors.Join(f.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	calls := map[string]error{"close": f.Close(), "close directory": d.Close()}
	_, calls["read"] = f.Read(make([]byte, 1))
	_, calls["readat"] = f.ReadAt(make([]byte, 1), 0)
	_, calls["seek"] = f.Seek(0, io.SeekStart)
	_, calls["stat"] = f.Stat()
	_, calls["stat directory"] = d.Stat()
	_, calls["readdir"] = d.(fs.ReadDirFile).ReadDir(-1)
	for name, err := range calls {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// scribbling is a store whose second Get fails after it has written to Dst.
type scribbling struct {
	blob.Blob
	gets *int
}

func (s scribbling) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	if *s.gets++; *s.gets == 2 {
		clear(opts.Dst)
		return blob.Object{}, blob.ErrUnavailable
	}
	return s.Blob.Get(ctx, key, opts)
}

func TestFSForgetsABufferThatAFailedReadMayHaveChanged(t *testing.T) {
	content := whole(2 * blob.FSReadAhead)
	f := open(t, scribbling{memblob.New(nil), new(int)}, content)
	p := make([]byte, 100)
	for _, c := range []struct {
		off  int64
		want error
	}{{7, nil}, {blob.FSReadAhead + 50, blob.ErrUnavailable}, {7, nil}} {
		if _, err := f.Seek(c.off, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(f, p); !errors.Is(err, c.want) || err == nil && !bytes.Equal(p, content[c.off:c.off+100]) {
			t.Errorf("at %d: wrong bytes, or %v instead of %v", c.off, err, c.want)
		}
	}
}
