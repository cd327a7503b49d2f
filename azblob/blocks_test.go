package azblob_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// blockIDs returns the ids of the blocks that were sent, in the order of their numbers, for each upload, which is named by the random part.
func blockIDs(t *testing.T, srv *fakeaz.Server) map[string][]string {
	t.Helper()
	ids := map[string][]string{}
	for _, e := range srv.Log().Only("PutBlock") {
		id := e.Query.Get("blockid")
		raw, err := base64.StdEncoding.DecodeString(id)
		if err != nil || len(raw) > 64 || strings.ContainsAny(id, "+/=") {
			t.Errorf("block id %q", id)
		}
		ids[string(raw[:32])] = append(ids[string(raw[:32])], id)
	}
	return ids
}

// The ids of twelve blocks are equally long, and those of two Sets differ (xtdb/xtdb #3516).
func TestBlockIDs(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	st := open(t, srv, small)
	data := content(11*smallPart + 1)
	for range 2 {
		set(t, st, "k", data, nil)
	}
	uploads := blockIDs(t, srv)
	if len(uploads) != 2 {
		t.Errorf("%d uploads", len(uploads))
	}
	length := 0
	for _, ids := range uploads {
		if len(ids) != 12 {
			t.Errorf("%d blocks", len(ids))
		}
		for _, id := range ids {
			if length == 0 {
				length = len(id)
			}
			if len(id) != length {
				t.Errorf("id %q has %d characters, others %d", id, len(id), length)
			}
		}
	}
	if obj, _ := srv.Blob("box", "k"); !bytes.Equal(obj.Bytes(), data) || len(obj.Blocks) != 12 {
		t.Errorf("stored %d bytes in %d blocks", obj.Size, len(obj.Blocks))
	}
}

// Two Sets of one key in blocks end in the whole of one of them; the other is overwritten, or a typed conflict, never part of a blend
// (xtdb/xtdb #3516). When the first commits, the service discards the blocks of the second, which are sent again.
func TestTwoWritersOfOneKey(t *testing.T) {
	for _, winner := range []string{"blocks", "one request"} {
		t.Run(winner, func(t *testing.T) {
			srv := fake(t, fakeaz.Options{})
			st := open(t, srv, small)
			first, second := content(3*smallPart), content(3*smallPart+7)
			if winner == "one request" {
				second = content(7)
			}
			held := srv.Inject(fakehttp.Fault{Op: "PutBlockList", HoldBefore: true})
			var done sync.WaitGroup
			done.Go(func() { set(t, st, "k", first, nil) })
			<-held.Reached() // all of its blocks are there
			set(t, st, "k", second, nil)
			obj, _ := srv.Blob("box", "k")
			if !bytes.Equal(obj.Bytes(), second) {
				t.Errorf("in between %d bytes are stored, want those of the second", obj.Size)
			}
			held.Release()
			done.Wait()
			if obj, _ := srv.Blob("box", "k"); !bytes.Equal(obj.Bytes(), first) {
				t.Errorf("stored %d bytes, want those of the first, which ended last", obj.Size)
			}
			if n := srv.Log().Only("PutBlockList").String(); !strings.Contains(n, "-> 400") {
				t.Errorf("nothing was discarded:\n%s", n)
			}
		})
	}
}

// A Set whose blocks are discarded again and again ends in a typed conflict, and has not happened.
func TestBlocksDiscardedForEver(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	st := open(t, srv, func(o *azblob.Options) { small(o); o.Restarts = 2 })
	srv.Inject(fakehttp.Fault{Op: "PutBlockList", Times: -1, Reply: &fakehttp.Reply{Status: 400, Code: "InvalidBlockList"}})
	for _, cond := range []blob.Condition{{}, blob.IfAbsent()} {
		srv.ResetLog()
		_, err := st.Set(t.Context(), "k", blob.Bytes(content(2*smallPart)), &blob.SetOptions{If: cond})
		wantKind(t, err, blob.ErrConflict)
		if blob.OutcomeOf(err) != blob.NotApplied || !strings.Contains(err.Error(), "another writer") {
			t.Errorf("%v, outcome %v", err, blob.OutcomeOf(err))
		}
		if n := srv.Log().Count("PutBlockList"); n != 3 {
			t.Errorf("%d commits, want 3", n)
		}
		if n := len(blockIDs(t, srv)); n != 3 {
			t.Errorf("%d uploads, want 3", n)
		}
	}
}

// Many writers of one key, with and without conditions, leave the whole of one of them.
func TestWritersNeverBlend(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	st := open(t, srv, func(o *azblob.Options) { small(o); o.Restarts = 100; o.Retry.Attempts = 100 })
	const writers = 8
	var done sync.WaitGroup
	for i := range writers {
		done.Go(func() {
			data := bytes.Repeat([]byte{byte(i)}, (i%3+1)*smallPart+i-4)
			if _, err := st.Set(t.Context(), "k", blob.Bytes(data), nil); err != nil && !errors.Is(err, blob.ErrConflict) {
				t.Error(err)
			}
		})
	}
	done.Wait()
	obj := get(t, st, "k")
	i := int(obj.Data[0])
	if want := bytes.Repeat([]byte{byte(i)}, (i%3+1)*smallPart+i-4); !bytes.Equal(obj.Data, want) {
		t.Errorf("the object of writer %d is not whole: %d bytes, want %d", i, len(obj.Data), len(want))
	}
}

// A commit whose reply is lost is sent again, and makes the same blob once more: its blocks are found among the committed ones.
func TestCommitIsRepeatable(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	srv.Inject(fakehttp.Fault{Op: "PutBlockList", After: fakehttp.Reset})
	st := open(t, srv, small)
	data := content(2*smallPart + 1)
	info := set(t, st, "k", data, &blob.SetOptions{Metadata: map[string]string{"a": "b"}, ContentType: "text/plain"})
	obj := get(t, st, "k")
	if !bytes.Equal(obj.Data, data) || obj.Version != info.Version || obj.Metadata["a"] != "b" || obj.ContentType != "text/plain" {
		t.Errorf("got %+v", obj.Info)
	}
	if n := srv.Log().Count("PutBlock"); n != 3 {
		t.Errorf("%d blocks were sent, want 3: the commit alone is repeated", n)
	}
}

// A source that fails makes nothing visible, and no commit is sent (benbjohnson/litestream #1263).
func TestFailedSourceCommitsNothing(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	st := open(t, srv, small)
	for _, size := range []int64{10, 5 * smallPart} {
		_, err := st.Set(t.Context(), "k", blob.ReaderAt(failing{}, size), nil)
		if !errors.Is(err, errSource) || blob.OutcomeOf(err) != blob.NotApplied {
			t.Errorf("%v, outcome %v", err, blob.OutcomeOf(err))
		}
	}
	if _, ok := srv.Blob("box", "k"); ok || srv.Log().Count("PutBlockList") > 0 {
		t.Errorf("requests:\n%s", srv.Log())
	}
}

var errSource = errors.New("the disk is gone")

// failing is a source of which only the first two parts can be read.
type failing struct{}

func (failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > 2*smallPart || off < 10 && len(p) <= 10 {
		return 0, errSource
	}
	return len(p), nil
}

// Uncommitted blocks of another program, with ids of another length, are named.
func TestForeignBlocksInTheWay(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	srv.Inject(fakehttp.Fault{Op: "PutBlock", Times: -1, Reply: &fakehttp.Reply{Status: 400, Code: "InvalidBlobOrBlock"}})
	_, err := open(t, srv, small).Set(t.Context(), "k", blob.Bytes(content(smallPart)), nil)
	wantKind(t, err, blob.ErrConflict)
	if blob.OutcomeOf(err) != blob.NotApplied || !strings.Contains(fmt.Sprint(err), "another program") {
		t.Errorf("%v, outcome %v", err, blob.OutcomeOf(err))
	}
}
