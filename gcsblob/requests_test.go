package gcsblob_test

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
)

// Each operation sends exactly these requests.
func TestRequestsOfEachOperation(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, func(o *gcsblob.Options) {
		o.PartSize, o.Segment, o.Concurrency, o.Prefix, o.Restore = chunk, chunk, 1, "p", gcsblob.RestoreSoftDelete
	})
	run := func(name, want string, f func() error) {
		t.Helper()
		srv.ResetLog()
		if err := f(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantLog(t, srv, want)
	}
	set := func(key string, n int, c blob.Condition) func() error {
		return func() error {
			_, err := st.Set(t.Context(), key, blob.Bytes(content(n)), &blob.SetOptions{If: c})
			return err
		}
	}
	get := func(key string, r blob.Range) func() error {
		return func() error {
			_, err := st.Get(t.Context(), key, &blob.GetOptions{Range: r})
			return err
		}
	}
	run("set", `
objects.insert p/small uploadType=multipart 10B -> 200
`, set("small", 10, blob.Condition{}))
	run("set if absent", `
objects.insert p/small2 uploadType=multipart ifGenerationMatch=0 10B -> 200
`, set("small2", 10, blob.IfAbsent()))
	run("set in chunks", `
uploads.start p/large uploadType=resumable ifGenerationMatch=0 -> 200
uploads.put p/large bytes 0-262143/524293 262144B -> 308
uploads.put p/large bytes 262144-524287/524293 262144B -> 308
uploads.put p/large bytes 524288-524292/524293 5B -> 200
`, set("large", 2*chunk+5, blob.IfAbsent()))
	run("set empty", `
objects.insert p/empty uploadType=multipart 0B -> 200
`, set("empty", 0, blob.Condition{}))
	run("get", `
xml.get p/small bytes=0-262143 -> 206
`, get("small", blob.Range{}))
	run("get in segments", `
xml.get p/large bytes=0-262143 -> 206
xml.get p/large bytes=262144-524287 x-goog-if-generation-match -> 206
xml.get p/large bytes=524288-524292 x-goog-if-generation-match -> 206
`, get("large", blob.Range{}))
	run("get empty", `
xml.get p/empty bytes=0-262143 -> 416
objects.get p/empty -> 200
`, get("empty", blob.Range{}))
	run("get range", `
xml.get p/large bytes=5-13 -> 206
`, get("large", blob.Span(5, 9)))
	run("get end", `
xml.get p/large bytes=-7 -> 206
`, get("large", blob.Last(7)))
	run("get none", `
objects.get p/large -> 200
`, get("large", blob.Span(5, 0)))
	run("getranges", `
xml.get p/large bytes=0-4 -> 206
xml.get p/large bytes=524288-524292 x-goog-if-generation-match -> 206
`, func() error {
		_, err := st.GetRanges(t.Context(), "large", []blob.Range{blob.Span(0, 5), blob.Last(5)}, nil)
		return err
	})
	run("stat", `
objects.get p/large -> 200
`, func() error { _, err := st.Stat(t.Context(), "large"); return err })
	run("list", `
objects.list prefix=p/ delimiter=/ startOffset=p/large -> 200
`, func() error {
		for _, err := range st.List(t.Context(), "", &blob.ListOptions{StartAfter: "large", Delimiter: "/"}) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	run("delete", `
objects.delete p/small2 -> 204
`, func() error { return st.Delete(t.Context(), "small2", nil) })
	run("delete absent", `
objects.delete p/small2 -> 404
`, func() error { return st.Delete(t.Context(), "small2", nil) })
	run("deleteall", `
objects.delete p/small -> 204
objects.delete p/empty -> 204
`, func() error { return st.DeleteAll(t.Context(), []string{"small", "empty"}) })
}
