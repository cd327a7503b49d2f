package gcsblob_test

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// restoring are the two ways in which a bucket keeps what was deleted.
var restoring = map[gcsblob.Restore]fakegcs.Options{
	gcsblob.RestoreSoftDelete: {},
	gcsblob.RestoreVersions:   {Versioned: true, SoftDelete: -1},
}

// Restore brings back the generation that was deleted last, however many there are on however many pages, and none of a key that begins
// alike.
func TestRestoreUndoesTheNewestDelete(t *testing.T) {
	for keep, opts := range restoring {
		t.Run(string(keep), func(t *testing.T) {
			opts.Knobs.PageSize = 2
			srv := fake(t, opts)
			st := open(t, srv, func(o *gcsblob.Options) { o.Restore = keep })
			mustSet(t, st, "key2", []byte("another"), nil)
			if err := st.Delete(t.Context(), "key2", nil); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				mustSet(t, st, "key", []byte{byte(i)}, &blob.SetOptions{Metadata: map[string]string{"n": text(int64(i))}})
				mustSet(t, st, "key", []byte{byte(i), 1}, &blob.SetOptions{Metadata: map[string]string{"n": text(int64(i))}, ContentType: "text/plain"})
				if err := st.Delete(t.Context(), "key", nil); err != nil {
					t.Fatal(err)
				}
				for range 2 { // idempotent
					info, err := st.Restore(t.Context(), "key")
					if err != nil || info.Size != 2 || info.Metadata["n"] != text(int64(i)) || info.ContentType != "text/plain" {
						t.Fatalf("%+v, %v", info, err)
					}
				}
				wantBytes(t, mustGet(t, st, "key", nil).Data, []byte{byte(i), 1})
			}
			if _, ok := srv.Object("b", "key2"); ok {
				t.Error("another key is back too")
			}
			_, err := st.Restore(t.Context(), "never")
			wantKind(t, err, blob.ErrNotFound)
			_, err = st.Restore(t.Context(), "ke")
			wantKind(t, err, blob.ErrNotFound)
		})
	}
}

// A restore whose reply was lost, and one that meets another's write, leave the key as it is.
func TestRestoreNeverReplacesWhatIsThere(t *testing.T) {
	for keep, opts := range restoring {
		op := map[gcsblob.Restore]string{gcsblob.RestoreSoftDelete: "objects.restore", gcsblob.RestoreVersions: "objects.copy"}[keep]
		for how, f := range map[string]fakehttp.Fault{
			"lost reply": {After: fakehttp.Reset},
			"503":        {Reply: &fakehttp.Reply{Status: 503}},
			"412":        {Reply: &fakehttp.Reply{Status: 412}},
		} {
			t.Run(string(keep)+"/"+how, func(t *testing.T) {
				srv := fake(t, opts)
				st := open(t, srv, func(o *gcsblob.Options) { o.Restore = keep })
				mustSet(t, st, "k", []byte("old"), nil)
				if err := st.Delete(t.Context(), "k", nil); err != nil {
					t.Fatal(err)
				}
				f.Op = op
				in := srv.Inject(f)
				if _, err := st.Restore(t.Context(), "k"); err != nil || in.Hits() != 1 {
					t.Fatalf("%v, %d hits", err, in.Hits())
				}
				wantBytes(t, mustGet(t, st, "k", nil).Data, []byte("old"))
			})
		}
		t.Run(string(keep)+"/another's write", func(t *testing.T) {
			srv := fake(t, opts)
			st := open(t, srv, func(o *gcsblob.Options) { o.Restore = keep })
			mustSet(t, st, "k", []byte("old"), nil)
			if err := st.Delete(t.Context(), "k", nil); err != nil {
				t.Fatal(err)
			}
			srv.Inject(fakehttp.Fault{Op: "objects.list", Then: func() { srv.PutObject("b", "k", []byte("new"), nil) }})
			if _, err := st.Restore(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			wantBytes(t, mustGet(t, st, "k", nil).Data, []byte("new"))
		})
	}
}

// Where nothing is kept, Restore says so of an absent key, and a missing bucket is one.
func TestRestoreWithoutKeeping(t *testing.T) {
	srv := fake(t, fakegcs.Options{SoftDelete: -1})
	_, err := open(t, srv).Restore(t.Context(), "k")
	wantKind(t, err, blob.ErrUnsupported)
	_, err = open(t, srv, func(o *gcsblob.Options) { o.Restore = gcsblob.RestoreSoftDelete }).Restore(t.Context(), "k")
	if err == nil {
		t.Error("a key that never was is restored")
	}
	o := options(srv)
	o.Restore = gcsblob.RestoreVersions
	_, err = openWith(t, "other", o).Restore(t.Context(), "k")
	wantKind(t, err, blob.ErrNoContainer)
}
