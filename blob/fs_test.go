package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

// tree has a file beside a directory of its name, names that sort otherwise than their keys, markers of directories, and
// keys that are no path.
var tree = []string{
	"a", "a-b", "a/b", "a/c/d", // "a" is a file
	"dir-x", "dir.txt", "dir/", "dir/1", "dir/sub/2", "dir/sub/deep/3", "dir//hidden", "dir2/4",
	"/rooted", "only//hidden", "marker/", "trailing/x/", "with space", "\u00fcnicode/\u2603", `"quoted"`, ".dot/.file",
}

var visible = []string{
	"a", "a-b", "dir-x", "dir.txt", "dir/1", "dir/sub/2", "dir/sub/deep/3", "dir2/4", "with space", "\u00fcnicode/\u2603", `"quoted"`, ".dot/.file",
}

func TestFSIsAFileSystem(t *testing.T) {
	b := memblob.New(nil)
	put(t, b, tree...)
	if err := fstest.TestFS(blob.FS(t.Context(), b), visible...); err != nil {
		t.Error(err)
	}
	empty := memblob.New(nil)
	if err := fstest.TestFS(blob.FS(t.Context(), empty)); err != nil {
		t.Error(err)
	}
	if entries, err := fs.ReadDir(blob.FS(t.Context(), empty), "."); len(entries) != 0 || err != nil {
		t.Errorf("an empty store: %v, %v", entries, err)
	}
}

func TestFSOfAViewWalksTheViewAlone(t *testing.T) {
	inner := memblob.New(nil)
	put(t, inner, "outside", "p/dir/in", "p/a", "p2/outside")
	var got []string
	err := fs.WalkDir(blob.FS(t.Context(), view(t, inner, "p")), ".", func(name string, _ fs.DirEntry, err error) error {
		got = append(got, name)
		return err
	})
	if want := []string{".", "a", "dir", "dir/in"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestFSWhatIsAFileAndWhatIsADirectory(t *testing.T) {
	b := memblob.New(nil)
	put(t, b, tree...)
	fsys := blob.FS(t.Context(), b)
	for name, want := range map[string]string{
		".": "dir", "a": "file", "a/b": "file", "a/c": "dir", "dir": "dir", "dir/sub": "dir", "only": "dir", "marker": "dir", "trailing/x": "dir",
		"missing": "", "di": "", "dir/su": "", "dir/1/x": "",
		"dir/": "invalid", "/rooted": "invalid", "dir//hidden": "invalid", "": "invalid", "..": "invalid", "a/../a": "invalid", "\xff": "invalid",
	} {
		info, statErr := fs.Stat(fsys, name)
		file, openErr := fsys.Open(name)
		_, readErr := fs.ReadFile(fsys, name)
		_, dirErr := fs.ReadDir(fsys, name)
		for _, err := range []error{statErr, openErr, readErr, dirErr} {
			var p *fs.PathError
			if err != nil && (!errors.As(err, &p) || p.Path != name) {
				t.Errorf("%q: %v is no PathError of it", name, err)
			}
		}
		switch want {
		case "dir":
			if statErr != nil || !info.IsDir() || openErr != nil || readErr == nil || dirErr != nil || errors.Is(readErr, fs.ErrNotExist) {
				t.Errorf("%q is no directory: %v, %v, %v, %v", name, statErr, openErr, readErr, dirErr)
			}
		case "file":
			if statErr != nil || info.IsDir() || info.Size() != int64(len(name)) || openErr != nil || readErr != nil || dirErr == nil || errors.Is(dirErr, fs.ErrNotExist) {
				t.Errorf("%q is no file: %v, %v, %v, %v", name, statErr, openErr, readErr, dirErr)
			}
		default:
			target := fs.ErrNotExist
			if want == "invalid" {
				target = fs.ErrInvalid
			}
			if !errors.Is(statErr, target) || !errors.Is(openErr, target) || !errors.Is(readErr, target) || !errors.Is(dirErr, target) {
				t.Errorf("%q: %v, %v, %v, %v; want %v", name, statErr, openErr, readErr, dirErr, target)
			}
		}
		if openErr == nil {
			_ = file.Close()
		}
	}
}

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

func TestFSErrorsAreThoseOfTheStore(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault blobtest.Fault
		do    func(fsys fs.FS) error
	}{
		{"open", blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpStat}, func(fsys fs.FS) error { _, err := fsys.Open("dir/1"); return err }},
		{"open a directory", blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpList}, func(fsys fs.FS) error { _, err := fsys.Open("dir"); return err }},
		{"stat", blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpStat}, func(fsys fs.FS) error { _, err := fs.Stat(fsys, "dir/1"); return err }},
		{"read file", blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpGet}, func(fsys fs.FS) error { _, err := fs.ReadFile(fsys, "dir/1"); return err }},
		{"read file, missing", blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpList}, func(fsys fs.FS) error {
			_, err := fs.ReadFile(fsys, "dir/1")
			return errors.Join(err, &fs.PathError{Err: blob.ErrUnavailable}) // not asked for: no error of it
		}},
		{"list", blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpList}, func(fsys fs.FS) error { _, err := fs.ReadDir(fsys, "."); return err }},
		{"list a directory", blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpStat}, func(fsys fs.FS) error { _, err := fs.ReadDir(fsys, "dir"); return err }},
		{"half a list", blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpList, Keep: 1}, func(fsys fs.FS) error {
			entries, err := fs.ReadDir(fsys, ".")
			if len(entries) != 0 {
				t.Errorf("entries beside an error: %v", entries)
			}
			return err
		}},
		{"half a list of an open directory", blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpList, Keep: 1}, func(fsys fs.FS) error {
			d, err := fsys.Open(".")
			if err != nil {
				t.Fatal(err)
			}
			entries, err := d.(fs.ReadDirFile).ReadDir(-1)
			if len(entries) != 0 {
				t.Errorf("entries beside an error: %v", entries)
			}
			return err
		}},
	} {
		inner := memblob.New(nil)
		put(t, inner, tree...)
		err := c.do(blob.FS(t.Context(), blobtest.NewFaults(inner, c.fault)))
		var p *fs.PathError
		if !errors.Is(err, blob.ErrUnavailable) || !errors.As(err, &p) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", c.name, err)
		}
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

func TestFSRunsUnderItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := memblob.New(nil)
	put(t, b, "f")
	fsys := blob.FS(ctx, b)
	f, err := fsys.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_, openErr := fsys.Open("f")
	_, dirErr := fs.ReadDir(fsys, ".")
	_, readErr := f.Read(make([]byte, 1))
	for _, err := range []error{openErr, dirErr, readErr} {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestFSInfoIsTheObjects(t *testing.T) {
	b := memblob.New(nil)
	_, err := b.Set(t.Context(), "dir/f", blob.Bytes([]byte("12345")), &blob.SetOptions{Metadata: map[string]string{"a": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := b.Stat(t.Context(), "dir/f")
	info, err := fs.Stat(blob.FS(t.Context(), b), "dir/f")
	if err != nil || info.Name() != "f" || info.Size() != 5 || info.Mode() != 0o444 || !info.ModTime().Equal(want.ModTime) || info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if got, ok := info.Sys().(blob.Info); !ok || got.Key != "dir/f" || got.Version != want.Version || got.Metadata["a"] != "1" {
		t.Errorf("%+v", info.Sys())
	}
	dir, err := fs.Stat(blob.FS(t.Context(), b), "dir")
	if err != nil || dir.Name() != "dir" || !dir.IsDir() || dir.Mode() != fs.ModeDir|0o555 {
		t.Errorf("%v, %v", dir, err)
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

func TestFSCost(t *testing.T) {
	inner := memblob.New(nil)
	put(t, inner, tree...)
	for name, c := range map[string]struct {
		do               func(fsys fs.FS) error
		stat, list, gets int
	}{
		"open a file":      {func(fsys fs.FS) error { _, err := fsys.Open("dir/1"); return err }, 1, 0, 0},
		"open a directory": {func(fsys fs.FS) error { _, err := fsys.Open("dir"); return err }, 1, 1, 0},
		"open the root":    {func(fsys fs.FS) error { _, err := fsys.Open("."); return err }, 0, 0, 0},
		"stat a file":      {func(fsys fs.FS) error { _, err := fs.Stat(fsys, "dir/1"); return err }, 1, 0, 0},
		"read a file":      {func(fsys fs.FS) error { _, err := fs.ReadFile(fsys, "dir/1"); return err }, 0, 0, 1},
		"read a directory": {func(fsys fs.FS) error { _, err := fs.ReadDir(fsys, "dir"); return err }, 1, 1, 0},
		"read the root":    {func(fsys fs.FS) error { _, err := fs.ReadDir(fsys, "."); return err }, 0, 1, 0},
		"invalid":          {func(fsys fs.FS) error { _, _ = fsys.Open("../x"); _, _ = fs.ReadFile(fsys, "/"); return nil }, 0, 0, 0},
	} {
		b := blobtest.NewFaults(inner)
		if err := c.do(blob.FS(t.Context(), b)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s, l, g := b.Calls(blob.OpStat), b.Calls(blob.OpList), b.Calls(blob.OpGet); s != c.stat || l != c.list || g != c.gets {
			t.Errorf("%s: %d Stats, %d Lists, %d Gets; want %d, %d, %d", name, s, l, g, c.stat, c.list, c.gets)
		}
	}
}
