package azblob_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// A batch has 256 keys, whatever characters they have, and each of them is gone afterwards.
func TestBatches(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	var keys []string
	for i := range 513 {
		key := fmt.Sprintf("%d %%2F+~=é😀\u2028/a/ b?c#d&<x>", i)
		srv.PutBlob("box", key, nil, nil)
		keys = append(keys, key)
	}
	srv.PutBlob("box", "stays", nil, nil)
	if err := open(t, srv, nil).DeleteAll(t.Context(), append(keys, keys[0], "never there")); err != nil {
		t.Fatal(err)
	}
	if left := srv.Objects("box"); len(left) != 1 || left[0].Key != "stays" {
		t.Errorf("left: %d", len(left))
	}
	wantLog(t, srv, "BlobBatch 2 keys -> 202\nBlobBatch 256 keys -> 202\nBlobBatch 256 keys -> 202\n")
}

// part is one answer in the reply to a batch.
func part(id, text string) string {
	return "--x\r\nContent-Type: application/http\r\n" + id + "\r\n" + text + "\r\n"
}

// Replies to a batch that do not say of each key what became of it leave it Unknown, and are tried again; none makes the reader panic.
func TestBatchRepliesThatSayTooLittle(t *testing.T) {
	const gone, busy = "HTTP/1.1 202 Accepted\r\nx-ms-request-id: 1\r\n", "HTTP/1.1 503 Busy\r\nx-ms-error-code: ServerBusy\r\n"
	first, second := "Content-ID: 0\r\n", "Content-ID: 1\r\n"
	for name, c := range map[string]struct {
		body    string
		failed  []string // after three attempts
		outcome blob.Outcome
	}{
		"whole":              {part(first, gone) + part(second, gone) + "--x--\r\n", nil, 0},
		"absent":             {part(first, gone) + part(second, "HTTP/1.1 404 x\r\nx-ms-error-code: BlobNotFound\r\n") + "--x--\r\n", nil, 0},
		"swapped":            {part(second, busy) + part(first, gone) + "--x--\r\n", []string{"b"}, blob.NotApplied},
		"one is missing":     {part(first, gone) + "--x--\r\n", []string{"b"}, blob.Unknown},
		"cut":                {part(first, gone) + part(second, "HTTP/1.1 202 Acc")[:50], []string{"b"}, blob.Unknown},
		"numbers too large":  {part("Content-ID: 2\r\n", gone) + part("Content-ID: 999999\r\n", gone) + "--x--\r\n", []string{"a", "b"}, blob.Unknown},
		"numbers negative":   {part("Content-ID: -1\r\n", busy) + "--x--\r\n", []string{"a", "b"}, blob.NotApplied},
		"no HTTP inside":     {part(first, "hello") + "--x--\r\n", []string{"a", "b"}, blob.Unknown},
		"nothing":            {"", []string{"a", "b"}, blob.Unknown},
		"one answer for all": {part("", "HTTP/1.1 403 x\r\nx-ms-error-code: AuthenticationFailed\r\n") + "--x--\r\n", nil, 0}, // one by one then
		"refused":            {part(first, gone) + part(second, "HTTP/1.1 403 x\r\nx-ms-error-code: AuthorizationFailure\r\n") + "--x--\r\n", []string{"b"}, blob.NotApplied},
	} {
		t.Run(name, func(t *testing.T) {
			srv := fake(t, fakeaz.Options{})
			srv.Inject(fakehttp.Fault{Op: "BlobBatch", Times: -1, Reply: &fakehttp.Reply{
				Status: http.StatusAccepted, Body: c.body, NoBody: c.body == "", Header: map[string]string{"Content-Type": "multipart/mixed; boundary=x"},
			}})
			// The keys are there for the answers of one key only: the reply to a second batch names others by the same numbers.
			err := open(t, srv, func(o *azblob.Options) { o.Retry.Attempts = 1 }).DeleteAll(t.Context(), []string{"a", "b"})
			var failed []string
			var all *blob.DeleteError
			if errors.As(err, &all) {
				for _, f := range all.Failed {
					failed = append(failed, f.Key)
					if blob.OutcomeOf(f.Err) != c.outcome {
						t.Errorf("%v: outcome %v", f.Err, blob.OutcomeOf(f.Err))
					}
				}
			}
			if slices.Sort(failed); !slices.Equal(failed, c.failed) {
				t.Errorf("failed: %q, want %q: %v", failed, c.failed, err)
			}
		})
	}
}

// Where batches are refused as such, the keys are deleted one by one.
func TestBatchesRefused(t *testing.T) {
	for _, reply := range []fakehttp.Reply{
		{Status: 501, Code: "NotImplemented"}, {Status: 400, Code: "InvalidQueryParameterValue"}, {Status: 403, Code: "AuthorizationResourceTypeMismatch"},
	} {
		srv := fake(t, fakeaz.Options{})
		srv.PutBlob("box", "a", nil, nil)
		srv.Inject(fakehttp.Fault{Op: "BlobBatch", Times: -1, Reply: &reply})
		if err := open(t, srv, nil).DeleteAll(t.Context(), []string{"a", "b"}); err != nil || len(srv.Objects("box")) > 0 {
			t.Errorf("%d %s: %v", reply.Status, reply.Code, err)
		}
		if got := srv.Log().Sorted().String(); !strings.HasPrefix(got, "BlobBatch -> ") || strings.Count(got, "DeleteBlob ") != 2 {
			t.Errorf("%d %s: requests:\n%s", reply.Status, reply.Code, got)
		}
	}
}

// A blob goes with its snapshots, alone and in a batch: it would stay otherwise.
func TestDeleteTakesSnapshots(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	st := open(t, srv, nil)
	for _, remove := range []func() error{
		func() error { return st.Delete(t.Context(), "k", nil) },
		func() error { return st.DeleteAll(t.Context(), []string{"k"}) },
	} {
		set(t, st, "k", content(5), nil)
		snapshot(t, srv, "k")
		if err := remove(); err != nil {
			t.Error(err)
		}
		if past := srv.Past("box", "k"); len(srv.Objects("box")) > 0 || len(past) > 0 {
			t.Errorf("left %d blobs, %d snapshots", len(srv.Objects("box")), len(past))
		}
	}
}
