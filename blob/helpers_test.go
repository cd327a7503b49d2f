package blob_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

func TestCopyKeepsWhatDescribesTheObject(t *testing.T) {
	src, dst := memblob.New(nil), memblob.New(nil)
	_, err := src.Set(t.Context(), "from", blob.Bytes([]byte("content")), &blob.SetOptions{Metadata: map[string]string{"a": "1"}, ContentType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		opts        *blob.SetOptions
		metadata    map[string]string
		contentType string
	}{
		{"nil", nil, map[string]string{"a": "1"}, "text/plain"},
		{"zero", &blob.SetOptions{}, map[string]string{"a": "1"}, "text/plain"},
		{"no metadata", &blob.SetOptions{Metadata: map[string]string{}}, nil, "text/plain"},
		{"its own", &blob.SetOptions{Metadata: map[string]string{"b": "2"}, ContentType: "text/html"}, map[string]string{"b": "2"}, "text/html"},
	} {
		info, err := blob.Copy(t.Context(), dst, "to", src, "from", c.opts)
		if err != nil || info.Key != "to" || info.Size != 7 {
			t.Fatalf("%s: %+v, %v", c.name, info, err)
		}
		got, err := dst.Get(t.Context(), "to", nil)
		if err != nil || string(got.Data) != "content" || !maps.Equal(got.Metadata, c.metadata) || got.ContentType != c.contentType || got.Version != info.Version {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	if got, err := src.Get(t.Context(), "from", nil); err != nil || string(got.Data) != "content" || !maps.Equal(got.Metadata, map[string]string{"a": "1"}) {
		t.Errorf("the source: %+v, %v", got, err)
	}
}

func TestCopyOntoItselfAndConditions(t *testing.T) {
	b := memblob.New(nil)
	put(t, b, "k", "other")
	if _, err := blob.Copy(t.Context(), b, "k", b, "k", nil); err != nil {
		t.Error(err)
	}
	_, err := blob.Copy(t.Context(), b, "k", b, "other", &blob.SetOptions{If: blob.IfAbsent()})
	if !errors.Is(err, blob.ErrExists) {
		t.Error(err)
	}
	if got, err := b.Get(t.Context(), "k", nil); err != nil || string(got.Data) != "k" {
		t.Errorf("%q, %v", got.Data, err)
	}
}

func TestCopyThatCannotEndWellWritesNothing(t *testing.T) {
	src := blobtest.NewFaults(memblob.New(&memblob.Options{MaxGet: 10}), blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpGet, Key: blobtest.KeyIs("broken")})
	dst := blobtest.NewFaults(memblob.New(nil))
	put(t, src, "small", "broken", "more than MaxGet")
	for _, c := range []struct {
		dstKey, srcKey string
		opts           *blob.SetOptions
		want           error
		gets           int
	}{
		{"to", "missing", nil, blob.ErrNotFound, 1},
		{"to", "broken", nil, blob.ErrUnavailable, 1},
		{"to", "more than MaxGet", nil, blob.ErrTooLarge, 1},
		{"a/../b", "small", nil, blob.ErrInvalidKey, 0}, // refused before the source is read
		{"to", "small", &blob.SetOptions{If: blob.IfVersion("")}, blob.ErrInvalidOption, 0},
		{"to", "", nil, blob.ErrInvalidKey, 1},
	} {
		before := src.Calls(blob.OpGet)
		_, err := blob.Copy(t.Context(), dst, c.dstKey, src, c.srcKey, c.opts)
		if !errors.Is(err, c.want) || src.Calls(blob.OpGet)-before != c.gets {
			t.Errorf("%q to %q: %v, %d gets", c.srcKey, c.dstKey, err, src.Calls(blob.OpGet)-before)
		}
	}
	// A store that breaks its promise and returns a part without an error.
	short := blobtest.NewFaults(memblob.New(nil), blobtest.Fault{Do: blobtest.Truncate, Op: blob.OpGet})
	put(t, short, "k")
	if _, err := blob.Copy(t.Context(), dst, "to", short, "k", nil); !errors.Is(err, blob.ErrTruncated) {
		t.Error(err)
	}
	if n := dst.Calls(blob.OpSet); n != 0 {
		t.Errorf("%d sets", n)
	}
}

func TestDeletePrefixIsAPlainStringPrefix(t *testing.T) {
	all := []string{"ba", "bar", "bar-baz/1", "bar/", "bar/1", "bar/2/3", "bas", "foo/bar/1"}
	for _, c := range []struct {
		prefix string
		left   []string
	}{
		{"bar", []string{"ba", "bas", "foo/bar/1"}},
		{"bar/", []string{"ba", "bar", "bar-baz/1", "bas", "foo/bar/1"}},
		{"bar/1", []string{"ba", "bar", "bar-baz/1", "bar/", "bar/2/3", "bas", "foo/bar/1"}},
		{"none", all},
	} {
		b := memblob.New(nil)
		put(t, b, all...)
		n, err := blob.DeletePrefix(t.Context(), b, c.prefix)
		if left := keysOf(t, b); err != nil || n != len(all)-len(c.left) || !slices.Equal(left, c.left) {
			t.Errorf("%q: %d, %v; left %q, want %q", c.prefix, n, err, left, c.left)
		}
	}
}

func TestDeletePrefixRefusesTheEmptyPrefix(t *testing.T) {
	inner := memblob.New(nil)
	put(t, inner, "team/a", "b")
	view, err := blob.Prefixed(inner, "team")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []blob.Blob{inner, view} { // a view too: all that is someone's everything
		n, err := blob.DeletePrefix(t.Context(), b, "")
		if n != 0 || !errors.Is(err, blob.ErrInvalidOption) || blob.OutcomeOf(err) != blob.NotApplied {
			t.Errorf("%d, %v", n, err)
		}
	}
	if keys := keysOf(t, inner); len(keys) != 2 {
		t.Errorf("left %q", keys)
	}
}

// many are keys of two batches and a bit.
func many() []string {
	keys := make([]string, 2345)
	for i := range keys {
		keys[i] = fmt.Sprintf("p/%04d", i)
	}
	return keys
}

func TestDeletePrefixDeletesAnyNumberInBatches(t *testing.T) {
	for _, n := range []int{999, 1000, 1001, 2000, 2345} {
		b := blobtest.NewFaults(memblob.New(nil))
		put(t, b, append(many()[:n], "q")...)
		deleted, err := blob.DeletePrefix(t.Context(), b, "p/")
		if left := keysOf(t, b); err != nil || deleted != n || !slices.Equal(left, []string{"q"}) {
			t.Errorf("%d keys: %d, %v; left %d", n, deleted, err, len(left))
		}
		if calls := b.Calls(blob.OpDeleteAll); calls != (n+999)/1000 {
			t.Errorf("%d keys: %d calls of DeleteAll", n, calls)
		}
	}
}

func TestDeletePrefixCountsWhatWasDeletedBeforeAnError(t *testing.T) {
	for _, c := range []struct {
		name    string
		fault   blobtest.Fault
		deleted int // as reported
		left    int
	}{
		{"two keys of the second batch", blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpDeleteAll, Key: func(k string) bool { return k == "p/1500" || k == "p/1501" }}, 1998, 2 + 345},
		{"a lost reply in the first batch", blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpDeleteAll, Key: blobtest.KeyIs("p/0007")}, 999, 1345},
		{"the last key", blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpDeleteAll, Key: blobtest.KeyIs("p/2344")}, 2344, 1},
		{"the listing", blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpList, Keep: 1200, Call: 1}, 1000, 1345},
		{"the listing at once", blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpList, Call: 1}, 0, 2345},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := blobtest.NewFaults(memblob.New(nil), c.fault)
			put(t, b, many()...)
			n, err := blob.DeletePrefix(t.Context(), b, "p/")
			left := len(keysOf(t, b))
			if !errors.Is(err, blob.ErrUnavailable) || n != c.deleted || left != c.left {
				t.Errorf("%d deleted, %d left, %v; want %d and %d", n, left, err, c.deleted, c.left)
			}
		})
	}
}

func TestDeletePrefixStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := blobtest.NewFaults(memblob.New(nil), blobtest.Fault{
		Do: blobtest.Delay, Op: blob.OpDeleteAll, Key: blobtest.KeyIs("p/1999"), Wait: func(context.Context, string, string) { cancel() },
	})
	put(t, b, many()...)
	n, err := blob.DeletePrefix(ctx, b, "p/")
	if !errors.Is(err, context.Canceled) || n != 1000 {
		t.Errorf("%d, %v", n, err)
	}
	if left := len(keysOf(t, b)); left != 1345 {
		t.Errorf("%d left", left)
	}
	n, err = blob.DeletePrefix(t.Context(), blob.Blob(b), "p/") // goes on
	if err != nil || n != 1345 {
		t.Errorf("%d, %v", n, err)
	}
}
