//go:build linux

package fileblob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wholeblob/wholeblob/blob"
)

// mountTmpfs mounts a file system of size bytes on dir, and reports false where that needs rights the test does not have.
func mountTmpfs(t *testing.T, dir string, size int) bool {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Logf("NOT RUN WITH A FULL FILE SYSTEM: mount: %v. The file-size limit and the injected faults are tested instead.", err)
		return false
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return true
}

func TestFullFileSystemFailsTheSetAndKeepsTheOldValue(t *testing.T) {
	dir := t.TempDir()
	if !mountTmpfs(t, dir, 1<<20) {
		return
	}
	s := open(t, dir, Options{})
	set(t, s, "a/k", "old")
	for i := range 3 {
		_, err := s.Set(t.Context(), "a/k", blob.Bytes(make([]byte, 2<<20)), nil)
		if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, blob.ErrUnavailable) || blob.OutcomeOf(err) != blob.NotApplied {
			t.Fatalf("Set %d: %v", i, err)
		}
		if got := get(t, s, "a/k"); got != "old" || len(tempFiles(t, dir)) != 0 {
			t.Fatalf("Set %d left %q and %d temporary files", i, got, len(tempFiles(t, dir)))
		}
	}
	// The space is free again.
	set(t, s, "a/k", strings.Repeat("x", 800<<10))
	remove(t, s, "a/k")
	set(t, s, "b/k", strings.Repeat("x", 800<<10))
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestMountBelowTheRootIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o777); err != nil {
		t.Fatal(err)
	}
	if !mountTmpfs(t, filepath.Join(dir, "a"), 1<<20) {
		return
	}
	s := open(t, dir, Options{})
	_, err := s.Set(t.Context(), "a/k", blob.Bytes(nil), nil)
	if !errors.Is(err, syscall.EXDEV) || !errors.Is(err, blob.ErrPermission) || blob.OutcomeOf(err) != blob.NotApplied {
		t.Errorf("Set: %v", err)
	}
	if len(tempFiles(t, dir)) != 0 {
		t.Error("a temporary file is left")
	}
}

// google/go-cloud #1459: a temporary file elsewhere could not be renamed.
func TestTemporaryDirectoryOfTheSystemIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "does", "not", "exist"))
	s := open(t, dir, Options{})
	set(t, s, "k", "content")
	if got := get(t, s, "k"); got != "content" {
		t.Errorf("read %q", got)
	}
}

func TestFileSizeLimitFailsTheSetAndKeepsTheOldValue(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true})
	set(t, s, "a/k", "old")
	startChild(t, "limited", dir, "a/k").lines(t)
	if got := get(t, s, "a/k"); got != "old" || len(tempFiles(t, dir)) != 0 {
		t.Errorf("%q and %d temporary files are left", got, len(tempFiles(t, dir)))
	}
}
