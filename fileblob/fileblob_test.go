package fileblob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestNewRefusesADirectoryThatIsNoStore(t *testing.T) {
	empty := t.TempDir() // as a mount point whose volume is not mounted
	full := t.TempDir()
	write(t, filepath.Join(full, "file"), "x")
	half := t.TempDir() // as a crash in the first New leaves it
	if err := os.Mkdir(filepath.Join(half, hiddenDir), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, full, half, filepath.Join(empty, "missing"), filepath.Join(full, "file")} {
		s, err := New(t.Context(), dir, nil)
		var e *blob.Error
		if s != nil || !errors.Is(err, blob.ErrNoContainer) || !errors.As(err, &e) || e.Op != blob.OpOpen || e.Store != "file" {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if list, _ := os.ReadDir(empty); len(list) != 0 {
		t.Errorf("New without Create made %v", list)
	}
	for _, dir := range []string{empty, full, half, filepath.Join(empty, "a", "b")} {
		s := open(t, dir, Options{})
		set(t, s, "k", "content")
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		again, err := New(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := get(t, again, "k"); got != "content" {
			t.Errorf("%s: read %q", dir, got)
		}
	}
}

func TestNewRefusesALaterLayout(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, Options{})
	write(t, filepath.Join(dir, hiddenDir, markName), "wholeblob file store, layout 2\n")
	if _, err := New(t.Context(), dir, &Options{Create: true}); !errors.Is(err, blob.ErrUnsupported) {
		t.Errorf("New: %v", err)
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	for want, o := range map[string]Options{
		"MaxGet": {MaxGet: -1}, "MaxObject": {MaxObject: -1}, "TempAge": {TempAge: -1},
	} {
		o.Create = true
		dir := filepath.Join(t.TempDir(), "x")
		_, err := New(t.Context(), dir, &o)
		if !errors.Is(err, blob.ErrInvalidOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the directory was made", want)
		}
	}
	if _, err := New(t.Context(), "", nil); !errors.Is(err, blob.ErrInvalidOption) {
		t.Errorf("empty directory: %v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(done, t.TempDir(), &Options{Create: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestMaxObjectBoundsStreamsOfUnknownLength(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true, MaxObject: 10})
	for _, src := range []blob.Source{blob.Bytes(make([]byte, 11)), blob.Stream(bytes.NewReader(make([]byte, 11)), -1)} {
		_, err := s.Set(t.Context(), "k", src, nil)
		if !errors.Is(err, blob.ErrTooLarge) || blob.OutcomeOf(err) != blob.NotApplied {
			t.Errorf("Set of 11 bytes: %v", err)
		}
	}
	if _, err := s.Set(t.Context(), "k", blob.Stream(bytes.NewReader(make([]byte, 10)), -1), nil); err != nil {
		t.Error(err)
	}
}

func TestStreamThatEndsWithAWrappedEOFStoresNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true})
	set(t, s, "k", "old")
	for _, end := range []error{fmt.Errorf("connection: %w", io.EOF), io.ErrUnexpectedEOF} {
		r := io.MultiReader(bytes.NewReader(make([]byte, 1000)), iotest.ErrReader(end))
		_, err := s.Set(t.Context(), "k", blob.Stream(r, -1), nil)
		if !errors.Is(err, end) || blob.OutcomeOf(err) != blob.NotApplied {
			t.Errorf("Set: %v", err)
		}
		if got := get(t, s, "k"); got != "old" {
			t.Errorf("read %q", got)
		}
	}
}

func TestModTimeIsTheClockOfTheSet(t *testing.T) {
	now := time.Date(2024, 2, 29, 12, 0, 0, 987654321, time.UTC)
	s := open(t, t.TempDir(), Options{NoSync: true, Now: func() time.Time { return now }})
	a := set(t, s, "k", "")
	b, err := s.Stat(t.Context(), "k")
	if err != nil || !a.ModTime.Equal(now) || !b.ModTime.Equal(now) {
		t.Errorf("%v and %v, want %v: %v", a.ModTime, b.ModTime, now, err)
	}
}

func TestRestoreBringsBackTheNewestDeleteAcrossProcesses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true, Restore: true})
	other := open(t, dir, Options{NoSync: true, Restore: true})
	set(t, s, "a/k", "one")
	remove(t, s, "a/k")
	two := set(t, other, "a/k", "two")
	remove(t, other, "a/k")
	for range 2 {
		info, err := s.Restore(t.Context(), "a/k")
		if err != nil || info.Version != two.Version {
			t.Fatalf("Restore = %+v, %v", info, err)
		}
	}
	if got := get(t, other, "a/k"); got != "two" {
		t.Errorf("restored %q", got)
	}
	plain := open(t, dir, Options{NoSync: true})
	if _, err := plain.Restore(t.Context(), "a/k"); err != nil {
		t.Errorf("Restore of a key that exists: %v", err)
	}
	remove(t, s, "a/k")
	if _, err := plain.Restore(t.Context(), "a/k"); !errors.Is(err, blob.ErrUnsupported) {
		t.Errorf("Restore where nothing is kept: %v", err)
	}
}

// A trash directory that is gone must not make a delete that did nothing look done.
func TestDeleteWithoutTrashDirectoryFails(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true, Restore: true})
	set(t, s, "k", "content")
	if err := os.RemoveAll(filepath.Join(dir, hiddenDir, trashDir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "k", nil); err == nil || blob.OutcomeOf(err) != blob.NotApplied {
		t.Errorf("Delete: %v", err)
	}
	if got := get(t, s, "k"); got != "content" {
		t.Errorf("read %q", got)
	}
}

func TestReadIsOneVersionWhileTheKeyIsReplaced(t *testing.T) {
	s, p := probedStore(t, t.TempDir(), Options{NoSync: true})
	set(t, s, "k", strings.Repeat("a", 10_000))
	p.reset(func(_ int, call string) (error, bool) {
		if call == "read k@" { // between two reads of the Get
			p.fail = nil
			p.mu.Unlock()
			defer p.mu.Lock()
			set(t, s, "k", strings.Repeat("b", 20_000))
		}
		return nil, false
	})
	o, err := s.Get(t.Context(), "k", nil)
	if err != nil || string(o.Data) != strings.Repeat("a", 10_000) {
		t.Errorf("%d bytes, %v", len(o.Data), err)
	}
}

// A small object costs the calls of one open and one read.
func TestSmallGetReadsTheFileOnce(t *testing.T) {
	s, p := probedStore(t, t.TempDir(), Options{NoSync: true})
	set(t, s, "a/k", "content")
	p.reset(nil)
	get(t, s, "a/k")
	equalLines(t, p.trace(), []string{"opendir a", "open a/k@", "read a/k@", "stat a/k@", "close a/k@"})
}

func TestGetAllocatesItsPayloadOnceAndWithDstNotAtAll(t *testing.T) {
	const size = 8 << 20
	s := open(t, t.TempDir(), Options{NoSync: true})
	if _, err := s.Set(t.Context(), "k", blob.Bytes(make([]byte, size)), nil); err != nil {
		t.Fatal(err)
	}
	measure := func(o *blob.GetOptions) int64 {
		r := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Get(t.Context(), "k", o); err != nil {
					b.Fatal(err)
				}
			}
		})
		return r.AllocedBytesPerOp()
	}
	if got := measure(nil); got > size*105/100 {
		t.Errorf("Get of %d bytes allocates %d", size, got)
	}
	if got := measure(&blob.GetOptions{Dst: make([]byte, size)}); got > 64<<10 {
		t.Errorf("Get into Dst allocates %d", got)
	}
}
