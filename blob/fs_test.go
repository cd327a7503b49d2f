package blob_test

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

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

// foreign is a store in which other programs keep keys that Set refuses.
type foreign struct {
	blob.Blob
	keys []string
}

func (f foreign) List(context.Context, string, *blob.ListOptions) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		for _, k := range f.keys {
			if !yield(blob.Info{Key: k, IsPrefix: strings.HasSuffix(k, "/")}, nil) {
				return
			}
		}
	}
}

func TestFSHidesWhatIsNoPath(t *testing.T) {
	b := foreign{memblob.New(nil), []string{".", "./", "..", "../", "/", "ok", "ok2/", "x\xff", "y\xff/"}}
	entries, err := fs.ReadDir(blob.FS(t.Context(), b), ".")
	if err != nil || len(entries) != 2 || entries[0].Name() != "ok" || entries[1].Name() != "ok2" {
		t.Errorf("%v, %v", entries, err)
	}
}
