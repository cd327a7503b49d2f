//go:build linux || darwin

package fileblob

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wholeblob/wholeblob/blob"
)

func noKey(t *testing.T, s *Store, key string) {
	t.Helper()
	if _, err := s.Get(t.Context(), key, nil); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get %q: %v", key, err)
	}
	if _, err := s.Stat(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Stat %q: %v", key, err)
	}
	if err := s.Delete(t.Context(), key, nil); err != nil {
		t.Errorf("Delete %q: %v", key, err)
	}
	if _, err := s.Restore(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Restore %q: %v", key, err)
	}
}

func TestFilesOfOthersAreNoKeys(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true, Restore: true})
	set(t, s, "real", "")
	foreign := map[string]string{
		"notes.txt": "notes", "empty@": "", "short@": "WHOLE", "text@": "some text of someone else's",
		"lost+found/x@": "x", "UPPER@": "x", "d/x@": "x",
	}
	for name, content := range foreign {
		write(t, filepath.Join(dir, name), content)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo@"), 0o666); err != nil { // must not block anybody
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir@"), 0o777); err != nil {
		t.Fatal(err)
	}
	if got := list(t, s, "", nil); !slices.Equal(got, []string{"real"}) {
		t.Errorf("listed %q", got)
	}
	if got := list(t, s, "", &blob.ListOptions{Delimiter: "/"}); !slices.Equal(got, []string{"real"}) {
		t.Errorf("listed %q", got)
	}
	for _, key := range []string{"empty", "short", "text", "d/x", "fifo", "dir", "notes.txt", "notes.txt/x", "UPPER"} {
		noKey(t, s, key)
	}
	for name := range foreign {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("a foreign file was touched: %v", err)
		}
	}
	// In the way of a directory: refused, not replaced.
	write(t, filepath.Join(dir, "in-the-way"), "x")
	_, err := s.Set(t.Context(), "in-the-way/k", blob.Bytes(nil), nil)
	if !errors.Is(err, blob.ErrPermission) || blob.OutcomeOf(err) != blob.NotApplied {
		t.Errorf("Set below a foreign file: %v", err)
	}
	// A key that does not exist can be made, whatever lies in its place.
	if _, err := s.Set(t.Context(), "text", blob.Bytes([]byte("ours")), &blob.SetOptions{If: blob.IfAbsent()}); err != nil || get(t, s, "text") != "ours" {
		t.Errorf("Set over a foreign file: %v", err)
	}
}

func TestCopiedFileIsNoKey(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true, Restore: true})
	set(t, s, "a", "content")
	b, err := os.ReadFile(filepath.Join(dir, "a@"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "b@"), string(b))
	noKey(t, s, "b")
	if got := list(t, s, "", nil); !slices.Equal(got, []string{"a"}) {
		t.Errorf("listed %q", got)
	}
}

func TestSymbolicLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	elsewhere := open(t, outside, Options{NoSync: true})
	set(t, elsewhere, "k", "secret")
	set(t, elsewhere, "d/k", "secret")

	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true, Restore: true})
	set(t, s, "inside/k", "content")
	for name, target := range map[string]string{
		"k@": filepath.Join(outside, "k@"), "d": filepath.Join(outside, "d"), "up": "..", "alias": "inside", "dangling@": "nowhere",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"k", "d/k", "alias/k", "dangling"} {
		noKey(t, s, key)
	}
	if got := list(t, s, "", nil); !slices.Equal(got, []string{"inside/k"}) {
		t.Errorf("listed %q", got)
	}
	for _, key := range []string{"d/k", "d/new", "alias/k", "up/k"} {
		_, err := s.Set(t.Context(), key, blob.Bytes(nil), nil)
		if !errors.Is(err, blob.ErrPermission) || blob.OutcomeOf(err) != blob.NotApplied {
			t.Errorf("Set %q: %v", key, err)
		}
	}
	set(t, s, "k", "ours") // replaces the link, not what it points to
	if get(t, elsewhere, "k") != "secret" || get(t, elsewhere, "d/k") != "secret" || get(t, s, "inside/k") != "content" || get(t, s, "k") != "ours" {
		t.Error("something was written through a link")
	}
}

func TestDamageIsLoud(t *testing.T) {
	for name, c := range map[string]struct {
		damage     func(b []byte) []byte
		get, stat  error
		listed     bool
		wholeRange blob.Range
	}{
		"cut":             {func(b []byte) []byte { return b[:len(b)-1] }, blob.ErrTruncated, blob.ErrTruncated, true, blob.Span(0, 1)},
		"cut to header":   {func(b []byte) []byte { return b[:len(b)-5000] }, blob.ErrTruncated, blob.ErrTruncated, true, blob.Span(0, 1)},
		"cut in header":   {func(b []byte) []byte { return b[:50] }, blob.ErrTruncated, blob.ErrTruncated, false, blob.Span(0, 1)},
		"longer":          {func(b []byte) []byte { return append(b, 0) }, blob.ErrCorrupt, blob.ErrCorrupt, true, blob.Last(1)},
		"header bit":      {func(b []byte) []byte { b[sizeOffset] ^= 1; return b }, blob.ErrCorrupt, blob.ErrCorrupt, false, blob.Last(1)},
		"later format":    {func(b []byte) []byte { b[offsetFormat] = 2; return b }, blob.ErrUnsupported, blob.ErrUnsupported, false, blob.Last(1)},
		"zeros after the": {func(b []byte) []byte { clear(b[8:]); return b }, blob.ErrUnsupported, blob.ErrUnsupported, false, blob.Last(1)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, Options{NoSync: true})
			version := set(t, s, "k", string(make([]byte, 5000))).Version
			path := filepath.Join(dir, "k@")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, string(c.damage(b)))
			for _, r := range []blob.Range{{}, c.wholeRange, blob.Span(0, 0)} {
				if _, err := s.Get(t.Context(), "k", &blob.GetOptions{Range: r}); !errors.Is(err, c.get) {
					t.Errorf("Get %v: %v", r, err)
				}
			}
			if _, err := s.GetRanges(t.Context(), "k", []blob.Range{blob.Span(0, 1)}, nil); !errors.Is(err, c.get) {
				t.Errorf("GetRanges: %v", err)
			}
			if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, c.stat) {
				t.Errorf("Stat: %v", err)
			}
			checkDamagedList(t, s, c.listed, c.stat)
			if !c.listed { // nobody knows the version: no condition can be decided
				if err := s.Delete(t.Context(), "k", &blob.DeleteOptions{If: blob.IfVersion(version)}); !errors.Is(err, c.stat) {
					t.Errorf("Delete with IfVersion: %v", err)
				}
				if _, err := s.Set(t.Context(), "k", blob.Bytes(nil), &blob.SetOptions{If: blob.IfAbsent()}); !errors.Is(err, c.stat) {
					t.Errorf("Set with IfAbsent: %v", err)
				}
			}
			// The way out.
			if !errors.Is(c.stat, blob.ErrUnsupported) {
				remove(t, s, "k")
				noKey2(t, s)
			}
			set(t, s, "k", "new")
			if get(t, s, "k") != "new" {
				t.Error("not replaced")
			}
		})
	}
}

func noKey2(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.Get(t.Context(), "k", nil); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get after Delete: %v", err)
	}
}

// checkDamagedList expects a listing with the key, or one that ends in an error that names it.
func checkDamagedList(t *testing.T, s *Store, listed bool, kind error) {
	t.Helper()
	var keys []string
	var last error
	for info, err := range s.List(t.Context(), "", nil) {
		if last = err; err == nil {
			keys = append(keys, info.Key)
		}
	}
	if listed && (last != nil || len(keys) != 1) || !listed && (!errors.Is(last, kind) || len(keys) != 0) {
		t.Errorf("List: %q, %v", keys, last)
	}
}
