package blob_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

func view(t *testing.T, inner blob.Blob, prefix string) blob.Blob {
	t.Helper()
	b, err := blob.Prefixed(inner, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPrefixedKeepsTheContract(t *testing.T) {
	nested := func(t *testing.T, inner blob.Blob) blob.Blob { return view(t, view(t, inner, "outer/x"), "inner") }
	one := func(prefix string) func(t *testing.T, inner blob.Blob) blob.Blob {
		return func(t *testing.T, inner blob.Blob) blob.Blob { return view(t, inner, prefix) }
	}
	longest := strings.Repeat("p/", 40) + strings.Repeat("p", blob.MaxPrefix-81)
	for name, c := range map[string]struct {
		over func(t *testing.T, inner blob.Blob) blob.Blob
		full string
	}{
		"no prefix":      {one(""), ""},
		"prefix":         {one("team"), "team/"},
		"longest prefix": {one(longest), longest + "/"},
		"nested":         {nested, "outer/x/inner/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			belongs := "closing a view closes nothing: the store belongs to whoever made it"
			blobtest.Run(t, func(t *testing.T) blob.Blob { return c.over(t, memblob.New(&memblob.Options{Restore: true})) }, &blobtest.Config{
				MaxKey:        blob.MaxKey - len(c.full),
				MaxKeySlashes: blob.MaxKeySlashes - strings.Count(c.full, "/"),
				MaxGet: func(t *testing.T, n int64) blob.Blob {
					return c.over(t, memblob.New(&memblob.Options{Restore: true, MaxGet: n}))
				},
				Pending: map[string]string{"set/sha256": "stored checksums"},
				Deviations: map[string]string{
					"close/refuses": belongs, "close/waits-for-set": belongs, "close/waits-for-list": belongs, "close/context": belongs,
				},
			})
		})
	}
}

func TestViewsNeverMeet(t *testing.T) {
	inner := memblob.New(nil)
	team, team2, nested := view(t, inner, "team"), view(t, inner, "team2/"), view(t, view(t, inner, "team"), "2")
	put(t, team, "a", "2", "2/x")
	put(t, team2, "b")
	put(t, inner, "team/", "team", "teamwork") // "team/" alone is named like the prefix: no key of the view
	for _, c := range []struct {
		name string
		b    blob.Blob
		want []string
	}{
		{"team", team, []string{"2", "2/x", "a"}},
		{"team2", team2, []string{"b"}},
		{"nested", nested, []string{"x"}},
		{"inner", inner, []string{"team", "team/", "team/2", "team/2/x", "team/a", "team2/b", "teamwork"}},
	} {
		if got := keysOf(t, c.b); !slices.Equal(got, c.want) {
			t.Errorf("%s has %q, want %q", c.name, got, c.want)
		}
	}
	if _, err := team.Get(t.Context(), "../team2/b", nil); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("climbing out: %v", err)
	}
	if n, err := blob.DeletePrefix(t.Context(), team, "2"); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	if got := keysOf(t, inner); !slices.Equal(got, []string{"team", "team/", "team/a", "team2/b", "teamwork"}) {
		t.Errorf("after DeletePrefix in a view: %q", got)
	}
}

func TestViewListsFromWhereItIsAsked(t *testing.T) {
	inner := memblob.New(nil)
	put(t, inner, "a", "p/a", "p/b/1", "p/b/2", "p/c", "q")
	b := view(t, inner, "p")
	for _, c := range []struct {
		prefix string
		opts   blob.ListOptions
		want   []string
	}{
		{"", blob.ListOptions{}, []string{"a", "b/1", "b/2", "c"}},
		{"", blob.ListOptions{StartAfter: "a"}, []string{"b/1", "b/2", "c"}},
		{"", blob.ListOptions{Delimiter: "/"}, []string{"a", "b/", "c"}},
		{"b", blob.ListOptions{StartAfter: "b/1"}, []string{"b/2"}},
		{"", blob.ListOptions{StartAfter: "b/", Delimiter: "/"}, []string{"c"}},
	} {
		var got []string
		for info, err := range b.List(t.Context(), c.prefix, &c.opts) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, info.Key)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q %+v: %q, want %q", c.prefix, c.opts, got, c.want)
		}
	}
}

// oneCallEach makes each call with a key on b and returns its error and the key in its result.
func oneCallEach(ctx context.Context, b blob.Blob, key string) map[string]blob.Error {
	result := map[string]blob.Error{}
	note := func(op, key string, err error) {
		e, _ := err.(*blob.Error) //nolint:errorlint // Blobs return it unwrapped
		if e == nil {
			e = &blob.Error{Key: key, Err: err}
		}
		result[op] = *e
	}
	obj, err := b.Get(ctx, key, nil)
	note(blob.OpGet, obj.Key, err)
	objs, err := b.GetRanges(ctx, key, []blob.Range{blob.From(0), blob.Last(1)}, nil)
	for _, o := range objs {
		note(blob.OpGetRanges, o.Key, err)
	}
	if err != nil {
		note(blob.OpGetRanges, "", err)
	}
	info, err := b.Set(ctx, key, blob.Bytes([]byte("new")), nil)
	note(blob.OpSet, info.Key, err)
	info, err = b.Stat(ctx, key)
	note(blob.OpStat, info.Key, err)
	for info, err := range b.List(ctx, key, nil) {
		note(blob.OpList, info.Key, err)
	}
	info, err = b.Restore(ctx, key)
	note(blob.OpRestore, info.Key, err)
	note(blob.OpDelete, key, b.Delete(ctx, key, nil))
	return result
}

func TestKeysInResultsAndErrorsAreTheViews(t *testing.T) {
	const key = "dir/key"
	for name, fault := range map[string][]blobtest.Fault{"results": nil, "errors": {{Do: blobtest.FailBefore}}} {
		inner := memblob.New(nil)
		put(t, inner, "p/q/"+key)
		b := view(t, view(t, blobtest.NewFaults(inner, fault...), "p"), "q")
		for op, e := range oneCallEach(t.Context(), b, key) {
			if e.Key != key || (e.Kind != nil) != (fault != nil) || e.Kind == nil && e.Err != nil {
				t.Errorf("%s: %s has key %q: %v", name, op, e.Key, &e)
			}
			if strings.Contains(e.Error(), "p/q") {
				t.Errorf("%s: %s names the key of the store: %v", name, op, &e)
			}
		}
	}
}

func TestKeysOfADeleteErrorAreTheViews(t *testing.T) {
	inner := blobtest.NewFaults(memblob.New(nil), blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpDeleteAll, Key: blobtest.KeyIs("p/b")})
	b := view(t, inner, "p")
	put(t, b, "a", "b", "c")
	var d *blob.DeleteError
	err := b.DeleteAll(t.Context(), []string{"a", "b", "c"})
	if !errors.As(err, &d) || len(d.Failed) != 1 || d.Failed[0].Key != "b" || strings.Contains(err.Error(), "p/") {
		t.Fatalf("%+v", err)
	}
	var e *blob.Error
	if !errors.As(err, &e) || e.Key != "b" || e.Kind != blob.ErrUnavailable || e.Store != "memory" || e.Outcome != blob.NotApplied {
		t.Errorf("%+v", e)
	}
	if got := keysOf(t, b); !slices.Equal(got, []string{"b"}) {
		t.Errorf("left %q", got)
	}
}

func TestViewRefusesBeforeTheStoreIsAsked(t *testing.T) {
	inner := blobtest.NewFaults(memblob.New(nil))
	b := view(t, inner, "p")
	for op, e := range oneCallEach(t.Context(), b, "") { // "p/" + "" would be a key of the store
		if op == blob.OpList {
			continue
		}
		if e.Kind != blob.ErrInvalidKey || e.Key != "" || e.Store != "memory" || e.Outcome != blob.NotApplied {
			t.Errorf("%s: %v", op, &e)
		}
		if n := inner.Calls(op); n != 0 {
			t.Errorf("%s reached the store", op)
		}
	}
	if err := b.DeleteAll(t.Context(), []string{"a", ""}); !errors.Is(err, blob.ErrInvalidKey) || inner.Calls(blob.OpDeleteAll) != 0 {
		t.Errorf("deleteall: %v", err)
	}
	// The store refuses what is too long together; the view says its own key.
	key := strings.Repeat("k", blob.MaxKey-1)
	_, err := b.Set(t.Context(), key, blob.Bytes(nil), nil)
	var e *blob.Error
	if !errors.As(err, &e) || e.Kind != blob.ErrInvalidKey || e.Key != key {
		t.Errorf("%v", err)
	}
}

func TestClosingAViewClosesNothing(t *testing.T) {
	inner := memblob.New(nil)
	b := view(t, inner, "p")
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, inner, "a")
	put(t, b, "b")
	if b.Capabilities() != inner.Capabilities() {
		t.Errorf("%+v", b.Capabilities())
	}
	if err := inner.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Stat(t.Context(), "b"); !errors.Is(err, blob.ErrClosed) {
		t.Errorf("a view of a closed store: %v", err)
	}
}

// strange is a Blob whose Stat fails with err.
type strange struct {
	blob.Blob
	err error
}

func (s strange) Stat(context.Context, string) (blob.Info, error) { return blob.Info{}, s.err }

func TestErrorsOfOthersPassThroughAView(t *testing.T) {
	_, err := view(t, strange{err: io.ErrClosedPipe}, "p").Stat(t.Context(), "k")
	if err != io.ErrClosedPipe { //nolint:errorlint // the very same
		t.Errorf("%v", err)
	}
	// The store's own *Error may be shared, with another view for one: it must not be changed.
	shared := &blob.Error{Op: blob.OpStat, Key: "p/k", Kind: blob.ErrNotFound, Err: io.EOF}
	_, err = view(t, strange{err: shared}, "p").Stat(t.Context(), "k")
	var e *blob.Error
	if !errors.As(err, &e) || e.Key != "k" || !errors.Is(err, io.EOF) || shared.Key != "p/k" {
		t.Errorf("%v from %v", err, shared)
	}
}
