package fileblob

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

func set(t testing.TB, s blob.Blob, key, content string) blob.Info {
	t.Helper()
	info, err := s.Set(t.Context(), key, blob.Bytes([]byte(content)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func get(t testing.TB, s blob.Blob, key string) string {
	t.Helper()
	o, err := s.Get(t.Context(), key, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Data)
}

func remove(t testing.TB, s blob.Blob, key string) {
	t.Helper()
	if err := s.Delete(t.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
}

// The order in which a crash cannot hurt: nothing gets its name before it is whole and on disk, and nothing
// is reported before its name is. (neondatabase/neon #1744)
func TestSetSyncsFileThenDirectoryThenNewParents(t *testing.T) {
	s, p := probedStore(t, t.TempDir(), Options{})
	set(t, s, "a/b/k", "content")
	equalLines(t, p.trace(), []string{
		"create .wholeblob/tmp/TEMP",
		"openlock .wholeblob/tmp/TEMP",
		"lock .wholeblob/tmp/TEMP",
		"write .wholeblob/tmp/TEMP",
		"write .wholeblob/tmp/TEMP",
		"stat .wholeblob/tmp/TEMP",
		"fsync .wholeblob/tmp/TEMP",
		"close .wholeblob/tmp/TEMP",
		"openlock " + lockOf("a/b/k"),
		"lock " + lockOf("a/b/k"),
		"opendir a",
		"mkdir a",
		"opendir a",
		"mkdir a/b",
		"opendir a/b",
		"rename .wholeblob/tmp/TEMP a/b/k@",
		"unlock " + lockOf("a/b/k"),
		"fsync a/b/",
		"stat a/b/",
		"fsync a/",
		"fsync /",
		"close .wholeblob/tmp/TEMP",
	})
	p.reset(nil)
	set(t, s, "a/b/j", "content")
	equalLines(t, grep(p.trace(), "fsync", "mkdir"), []string{"fsync .wholeblob/tmp/TEMP", "fsync a/b/"})
}

// Another process may have made the directory a moment ago and die before it syncs the one above.
func TestSetSyncsTheParentsOfADirectoryThatSomeoneElseMade(t *testing.T) {
	dir := t.TempDir()
	s, p := probedStore(t, dir, Options{})
	other := open(t, dir, Options{NoSync: true})
	set(t, other, "a/b/other", "")
	p.reset(nil)
	set(t, s, "a/b/k", "")
	equalLines(t, grep(p.trace(), "fsync", "mkdir"),
		[]string{"fsync .wholeblob/tmp/TEMP", "fsync a/b/", "fsync a/", "fsync /"})

	// Pruned and made again behind our back: what was synced before is another directory.
	remove(t, other, "a/b/k")
	remove(t, other, "a/b/other")
	set(t, other, "a/b/other", "")
	p.reset(nil)
	set(t, s, "a/b/k", "")
	equalLines(t, grep(p.trace(), "fsync", "mkdir"),
		[]string{"fsync .wholeblob/tmp/TEMP", "fsync a/b/", "fsync a/", "fsync /"})
}

// The object was deleted, and its directory pruned, before the Set had synced it: it is only durable that the key is
// gone once the directory above is.
func TestSetSyncsTheParentOfARememberedDirectoryThatIsGone(t *testing.T) {
	dir := t.TempDir()
	s, p := probedStore(t, dir, Options{})
	other := open(t, dir, Options{NoSync: true})
	set(t, s, "a/j", "")
	p.reset(func(_ int, call string) (error, bool) {
		if call == "fsync a/" {
			if err := other.DeleteAll(t.Context(), []string{"a/j", "a/k"}); err != nil {
				t.Error(err)
			}
		}
		return nil, false
	})
	set(t, s, "a/k", "")
	equalLines(t, grep(p.trace(), "fsync"), []string{"fsync .wholeblob/tmp/TEMP", "fsync a/", "fsync /"})
}

func TestCancelBeforeTheRenameChangesNothingAndAfterItNothingMore(t *testing.T) {
	for at, committed := range map[string]bool{"fsync .wholeblob/tmp": false, "lock .wholeblob/locks": false, "rename ": true, "fsync a/": true} {
		s, p := probedStore(t, t.TempDir(), Options{})
		old := set(t, s, "a/k", "old")
		ctx, cancel := context.WithCancel(t.Context())
		p.reset(func(_ int, call string) (error, bool) {
			if strings.HasPrefix(call, at) {
				cancel()
			}
			return nil, false
		})
		_, err := s.Set(ctx, "a/k", blob.Bytes([]byte("new")), nil)
		cancel()
		p.reset(nil)
		info, statErr := s.Stat(t.Context(), "a/k")
		if statErr != nil || committed != (info.Version != old.Version) || committed != (err == nil) {
			t.Errorf("cancelled at %q: %v; %v, %v", at, err, info, statErr)
		}
		if err != nil && (!errors.Is(err, context.Canceled) || blob.OutcomeOf(err) != blob.NotApplied) {
			t.Errorf("cancelled at %q: %v", at, err)
		}
	}
}

func TestDeleteSyncsTheDirectoryAndWhatItPrunes(t *testing.T) {
	s, p := probedStore(t, t.TempDir(), Options{})
	set(t, s, "a/b/k", "")
	set(t, s, "a/b/j", "")
	p.reset(nil)
	remove(t, s, "a/b/k")
	equalLines(t, grep(p.trace(), "remove", "fsync", "rmdir"), []string{"remove a/b/k@", "fsync a/b/", "rmdir a/b"})
	p.reset(nil)
	remove(t, s, "a/b/j")
	equalLines(t, grep(p.trace(), "remove", "fsync", "rmdir"),
		[]string{"remove a/b/j@", "fsync a/b/", "rmdir a/b", "rmdir a", "fsync /"})
	// Gone already, but perhaps not yet on disk.
	p.reset(nil)
	remove(t, s, "a/b/j")
	equalLines(t, grep(p.trace(), "remove", "fsync", "rmdir"), []string{"fsync /"})
}

func TestDeleteAllSyncsEachDirectoryOnce(t *testing.T) {
	s, p := probedStore(t, t.TempDir(), Options{})
	keys := []string{"a/1", "a/2", "a/3", "a/missing"}
	for _, key := range keys[:3] {
		set(t, s, key, "")
	}
	set(t, s, "a/stays", "")
	p.reset(nil)
	if err := s.DeleteAll(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	equalLines(t, grep(p.trace(), "fsync"), []string{"fsync a/"})
}

func TestRestoreKeepsAndSyncs(t *testing.T) {
	s, p := probedStore(t, t.TempDir(), Options{Restore: true})
	set(t, s, "a/k", "one")
	p.reset(nil)
	remove(t, s, "a/k")
	trash := ".wholeblob/trash/" + trashName("a/k")
	equalLines(t, grep(p.trace(), "rename", "remove", "fsync", "rmdir"), []string{
		"rename a/k@ " + trash, "fsync .wholeblob/trash/", "fsync a/", "rmdir a", "fsync /"})
	p.reset(nil)
	if _, err := s.Restore(t.Context(), "a/k"); err != nil {
		t.Fatal(err)
	}
	equalLines(t, grep(p.trace(), "rename", "mkdir", "fsync"), []string{
		"mkdir a", "rename " + trash + " a/k@", "fsync a/", "fsync /", "fsync .wholeblob/trash/"})
}

func TestNoSyncSyncsNothing(t *testing.T) {
	s, p := probedStore(t, t.TempDir(), Options{NoSync: true, Restore: true})
	set(t, s, "a/k", "")
	remove(t, s, "a/k")
	if _, err := s.Restore(t.Context(), "a/k"); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteAll(t.Context(), []string{"a/k"}); err != nil {
		t.Fatal(err)
	}
	equalLines(t, grep(p.trace(), "fsync"), nil)
}

// Of many directories only so many are remembered; none stays open after Close.
func TestRememberedDirectoriesAreBoundedAndClosed(t *testing.T) {
	s, p := probedStore(t, t.TempDir(), Options{})
	for i := range maxDurable + 10 {
		set(t, s, string(rune('a'+i%26))+string(rune('a'+i/26))+"/k", "")
	}
	remembered := 0
	for path, n := range p.open {
		if path != "" && !strings.HasPrefix(path, hiddenDir) {
			remembered += n
		}
	}
	if remembered != maxDurable {
		t.Errorf("%d directories are remembered, want %d", remembered, maxDurable)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := p.openPaths(); n != 0 {
		t.Errorf("%d files and directories are open after Close: %v", n, p.open)
	}
}
