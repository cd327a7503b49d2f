package azblob_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
)

// wantLog compares the requests since the last ResetLog, in the order of their text, with one per line of want.
func wantLog(t testing.TB, srv *fakeaz.Server, want string) {
	t.Helper()
	if got := srv.Log().Sorted().String(); got != want {
		t.Errorf("requests:\n%swant:\n%s", got, want)
	}
}

// blocks returns the sorted requests of a Set in blocks.
func blocks(sizes ...int) string {
	var s string
	for _, n := range slices.Sorted(slices.Values(sizes)) { // the log leaves the ids out
		s += fmt.Sprintf("PutBlock k %dB -> 201\n", n)
	}
	return s + "PutBlockList k -> 201\n"
}

// Each operation costs the requests that are documented, and no others: no retry, no probe, no helper of the SDK.
func TestRequestsOfEachOperation(t *testing.T) {
	const n = smallPart
	for _, c := range []struct {
		name string
		do   func(st *azblob.Store) error
		want string
	}{
		{"set empty", func(st *azblob.Store) error { return errOf(st.Set(t.Context(), "k", blob.Bytes(nil), nil)) }, "PutBlob k 0B -> 201\n"},
		{"set one", func(st *azblob.Store) error { return errOf(st.Set(t.Context(), "k", blob.Bytes(content(n-1)), nil)) }, "PutBlob k 4095B -> 201\n"},
		{"set in blocks", func(st *azblob.Store) error { return errOf(st.Set(t.Context(), "k", blob.Bytes(content(2*n+1)), nil)) }, blocks(n, n, 1)},
		{"set if absent", func(st *azblob.Store) error {
			return errOf(st.Set(t.Context(), "new", blob.Bytes(content(2*n)), &blob.SetOptions{If: blob.IfAbsent()}))
		}, "PutBlock new 4096B -> 201\nPutBlock new 4096B -> 201\nPutBlockList new If-None-Match=* -> 201\n"},
		{"get", func(st *azblob.Store) error { return errOf(st.Get(t.Context(), "small", nil)) }, "GetBlob small bytes=0-4095 -> 206\n"},
		{"get large", func(st *azblob.Store) error { return errOf(st.Get(t.Context(), "large", nil)) }, "GetBlob large bytes=0-4095 -> 206\n" +
			"GetBlob large bytes=4096-8191 If-Match=etag -> 206\nGetBlob large bytes=8192-8192 If-Match=etag -> 206\n"},
		{"get empty", func(st *azblob.Store) error { return errOf(st.Get(t.Context(), "empty", nil)) }, "GetBlob empty bytes=0-4095 -> 416\nGetBlobProperties empty -> 200\n"},
		{"get last", func(st *azblob.Store) error {
			return errOf(st.Get(t.Context(), "large", &blob.GetOptions{Range: blob.Last(5)}))
		}, "GetBlob large bytes=8188-8192 If-Match=etag -> 206\nGetBlobProperties large -> 200\n"},
		{"stat", func(st *azblob.Store) error { return errOf(st.Stat(t.Context(), "small")) }, "GetBlobProperties small -> 200\n"},
		{"list", func(st *azblob.Store) error { return list(st, t, "") }, "ListBlobs -> 200\n"},
		{"list folded", func(st *azblob.Store) error { return list(st, t, "/") }, "ListBlobs delimiter=/ -> 200\n"},
		{"delete", func(st *azblob.Store) error { return st.Delete(t.Context(), "small", nil) }, "DeleteBlob small snapshots=include -> 202\n"},
		{"delete absent", func(st *azblob.Store) error { return st.Delete(t.Context(), "nothing", nil) }, "DeleteBlob nothing snapshots=include -> 404\n"},
		{"delete all", func(st *azblob.Store) error { return st.DeleteAll(t.Context(), []string{"small", "nothing", "large"}) }, "BlobBatch 3 keys -> 202\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := fake(t, fakeaz.Options{})
			srv.PutBlob("box", "small", content(10), nil)
			srv.PutBlob("box", "large", content(2*n+1), nil)
			srv.PutBlob("box", "empty", nil, nil)
			if err := c.do(open(t, srv, small)); err != nil {
				t.Fatal(err)
			}
			wantLog(t, srv, c.want)
		})
	}
}

func errOf[T any](_ T, err error) error { return err }

func list(st *azblob.Store, t *testing.T, delimiter string) error {
	for _, err := range st.List(t.Context(), "", &blob.ListOptions{Delimiter: delimiter}) {
		if err != nil {
			return err
		}
	}
	return nil
}
