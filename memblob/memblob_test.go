package memblob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

func set(t *testing.T, s blob.Blob, key, content string) blob.Info {
	t.Helper()
	info, err := s.Set(t.Context(), key, blob.Bytes([]byte(content)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func get(t *testing.T, s blob.Blob, key string) string {
	t.Helper()
	o, err := s.Get(t.Context(), key, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Data)
}

func TestCallersSlicesAreNotShared(t *testing.T) {
	s := memblob.New(nil)
	in := []byte("content")
	meta := map[string]string{"a": "1"}
	info, err := s.Set(t.Context(), "k", blob.Bytes(in), &blob.SetOptions{Metadata: meta})
	if err != nil {
		t.Fatal(err)
	}
	clear(in)
	meta["a"] = "2"
	info.Metadata["a"] = "3"
	o, err := s.Get(t.Context(), "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	clear(o.Data)
	o.Metadata["a"] = "4"
	o, err = s.Get(t.Context(), "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(o.Data) != "content" || o.Metadata["a"] != "1" {
		t.Errorf("the object changed: %q, %v", o.Data, o.Metadata)
	}
}

func TestStreamThatEndsWithAWrappedEOFStoresNothing(t *testing.T) {
	s := memblob.New(nil)
	for _, end := range []error{fmt.Errorf("connection: %w", io.EOF), io.ErrUnexpectedEOF} {
		r := io.MultiReader(bytes.NewReader(make([]byte, 1000)), iotest.ErrReader(end))
		_, err := s.Set(t.Context(), "k", blob.Stream(r, -1), nil)
		if !errors.Is(err, end) || blob.OutcomeOf(err) != blob.NotApplied {
			t.Errorf("Set: %v", err)
		}
		if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Stat after a failed Set: %v", err)
		}
	}
}

func TestDeclaredSizeIsNotAllocatedOnTrust(t *testing.T) {
	s := memblob.New(nil)
	for name, src := range map[string]blob.Source{
		"stream":   blob.Stream(bytes.NewReader([]byte("short")), 1<<60),
		"readerat": blob.ReaderAt(bytes.NewReader([]byte("short")), 1<<60),
	} {
		if _, err := s.Set(t.Context(), name, src, nil); !errors.Is(err, blob.ErrSourceLength) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSourceSizesAroundTheBufferSteps(t *testing.T) {
	s := memblob.New(nil)
	for _, n := range []int{0, 1, 4095, 4096, 4097, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3<<20 + 1} {
		want := bytes.Repeat([]byte{byte(n), 1, 2}, n/3+1)[:n]
		for name, src := range map[string]blob.Source{
			"bytes":    blob.Bytes(want),
			"readerat": blob.ReaderAt(bytes.NewReader(want), int64(n)),
			"stream":   blob.Stream(bytes.NewReader(want), int64(n)),
			"unknown":  blob.Stream(iotest.DataErrReader(iotest.HalfReader(bytes.NewReader(want))), -1),
		} {
			if _, err := s.Set(t.Context(), name, src, nil); err != nil {
				t.Fatalf("%s of %d bytes: %v", name, n, err)
			}
			if got := get(t, s, name); got != string(want) {
				t.Errorf("%s of %d bytes read back as %d bytes", name, n, len(got))
			}
		}
	}
}

func TestMaxObjectBoundsStreamsOfUnknownLength(t *testing.T) {
	s := memblob.New(&memblob.Options{MaxObject: 10})
	for _, src := range []blob.Source{
		blob.Bytes(make([]byte, 11)),
		blob.Stream(bytes.NewReader(make([]byte, 11)), -1),
	} {
		if _, err := s.Set(t.Context(), "k", src, nil); !errors.Is(err, blob.ErrTooLarge) {
			t.Errorf("Set of 11 bytes: %v", err)
		}
	}
	if _, err := s.Set(t.Context(), "k", blob.Stream(bytes.NewReader(make([]byte, 10)), -1), nil); err != nil {
		t.Error(err)
	}
}

func TestMaxGetBoundsOneReadAndTheSumOfRanges(t *testing.T) {
	s := memblob.New(&memblob.Options{MaxGet: 4})
	set(t, s, "k", "12345")
	if _, err := s.Get(t.Context(), "k", nil); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("Get of 5 bytes: %v", err)
	}
	rs := []blob.Range{blob.Span(0, 2), blob.Span(0, 3)}
	if _, err := s.GetRanges(t.Context(), "k", rs, nil); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("GetRanges of 5 bytes: %v", err)
	}
	if _, err := s.GetRanges(t.Context(), "k", rs[:1], nil); err != nil {
		t.Error(err)
	}
}

func TestListCrossesPagesWhileKeysChange(t *testing.T) {
	s := memblob.New(nil)
	for i := range 1000 {
		set(t, s, fmt.Sprintf("k%04d", i), "")
	}
	last, n := "", 0
	for info, err := range s.List(t.Context(), "k", nil) {
		if err != nil {
			t.Fatal(err)
		}
		if info.Key <= last {
			t.Fatalf("%q after %q", info.Key, last)
		}
		last = info.Key
		n++
		// Behind and before the position: neither may repeat or lose another key.
		if err := s.Delete(t.Context(), info.Key, nil); err != nil {
			t.Fatal(err)
		}
		if len(info.Key) == len("k0000") {
			set(t, s, "k"+info.Key, "")
		}
	}
	if n != 2000 || last[:2] != "kk" {
		t.Errorf("%d keys listed, the last is %q", n, last)
	}
}

func TestListFoldsWithoutGoingBackBeforeStartAfter(t *testing.T) {
	s := memblob.New(nil)
	for _, k := range []string{"a", "a-b", "a/", "a/b", "a/c", "a0", "b/c", "b/d"} {
		set(t, s, k, "")
	}
	for _, c := range []struct{ prefix, after, want string }{
		{"", "", "a a-b a/* a0 b/* "},
		{"", "a/", "a0 b/* "},
		{"", "a/b", "a0 b/* "},
		{"", "a.", "a/* a0 b/* "},
		{"a/", "", "a/ a/b a/c "},
		{"a", "", "a a-b a/* a0 "},
	} {
		got := ""
		for info, err := range s.List(t.Context(), c.prefix, &blob.ListOptions{StartAfter: c.after, Delimiter: "/"}) {
			if err != nil {
				t.Fatal(err)
			}
			got += info.Key
			if info.IsPrefix {
				got += "*"
			}
			got += " "
		}
		if got != c.want {
			t.Errorf("List(%q, after %q) = %s, want %s", c.prefix, c.after, got, c.want)
		}
	}
}

func TestRestoreBringsBackTheNewestDelete(t *testing.T) {
	s := memblob.New(&memblob.Options{Restore: true})
	set(t, s, "k", "one")
	if err := s.Delete(t.Context(), "k", nil); err != nil {
		t.Fatal(err)
	}
	two := set(t, s, "k", "two")
	if err := s.DeleteAll(t.Context(), []string{"k", "missing"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		info, err := s.Restore(t.Context(), "k")
		if err != nil || info.Version != two.Version {
			t.Fatalf("Restore = %+v, %v", info, err)
		}
	}
	if got := get(t, s, "k"); got != "two" {
		t.Errorf("restored %q", got)
	}
	if _, err := s.Restore(t.Context(), "missing"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Restore of a key never written: %v", err)
	}
}

func TestEveryErrorNamesStoreOperationAndKey(t *testing.T) {
	s := memblob.New(nil)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err1 := s.Get(t.Context(), "k", nil)
	_, err2 := s.Set(done, "k", blob.Bytes(nil), nil)
	_, err3 := s.Set(t.Context(), "k", blob.Bytes(nil), &blob.SetOptions{SHA256: true})
	_, err4 := s.Restore(t.Context(), "k")
	err5 := s.Delete(t.Context(), "k", &blob.DeleteOptions{If: blob.IfAbsent()})
	for i, want := range []error{blob.ErrNotFound, context.Canceled, blob.ErrUnsupported, blob.ErrUnsupported, blob.ErrInvalidOption} {
		err := []error{err1, err2, err3, err4, err5}[i]
		var e *blob.Error
		if !errors.Is(err, want) || !errors.As(err, &e) || e.Store != "memory" || e.Op == "" || e.Key != "k" || e.Outcome != blob.NotApplied {
			t.Errorf("%d: %#v", i, err)
		}
	}
}
