package gcsblob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/api/googleapi"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// A condition that cannot be met is refused before a byte of the content is sent, and one that fails only at the end then.
func TestTheConditionOfASessionHoldsAtItsStartAndAtItsEnd(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, small)
	first := mustSet(t, st, "k", []byte("first"), nil)
	srv.ResetLog()
	_, err := st.Set(t.Context(), "k", blob.Bytes(content(chunk+1)), &blob.SetOptions{If: blob.IfAbsent()})
	if e := mustKind(t, err, blob.ErrExists); e.Outcome != blob.NotApplied || e.Status != 412 {
		t.Errorf("%v", e)
	}
	wantLog(t, srv, "\nuploads.start k uploadType=resumable ifGenerationMatch=0 -> 412\n")

	for _, c := range []struct {
		key  string
		cond blob.Condition
		kind error
	}{{"new", blob.IfAbsent(), blob.ErrExists}, {"k", blob.IfVersion(first.Version), blob.ErrPrecondition}} {
		in := srv.Inject(fakehttp.Fault{Op: "uploads.put", Key: c.key, Nth: 1, Then: func() { srv.PutObject("b", c.key, []byte("theirs"), nil) }})
		_, err = st.Set(t.Context(), c.key, blob.Bytes(content(chunk+1)), &blob.SetOptions{If: c.cond})
		if e := mustKind(t, err, c.kind); e.Outcome != blob.NotApplied {
			t.Errorf("%v", e)
		}
		in.Remove()
		wantBytes(t, mustGet(t, st, c.key, nil).Data, []byte("theirs"))
	}
	if err := st.Close(context.Background()); err != nil {
		t.Errorf("a session that its condition ended is owed: %v", err)
	}
}

// Whatever chunk's reply is lost, before or after the service took it, the object is written once and whole.
func TestALostReplyWithinASessionIsMadeGood(t *testing.T) {
	for _, n := range []int{5 << 10, 3*chunk + 9} {
		for nth := 1; nth <= (n+chunk-1)/chunk; nth++ {
			for how, f := range map[string]fakehttp.Fault{
				"before":  {Before: fakehttp.Reset},
				"after":   {After: fakehttp.Reset},
				"503":     {Reply: &fakehttp.Reply{Status: 503}},
				"503 too": {Reply: &fakehttp.Reply{Status: 503, Commit: true}},
				"429":     {Reply: &fakehttp.Reply{Status: 429}},
				"408":     {Reply: &fakehttp.Reply{Status: 408}},
			} {
				t.Run(fmt.Sprintf("%d/%d/%s", n, nth, how), func(t *testing.T) {
					srv := fake(t, fakegcs.Options{})
					st := open(t, srv, small)
					f.Op, f.Nth = "uploads.put", nth
					srv.Inject(f)
					data := content(n)
					info := mustSet(t, st, "k", data, &blob.SetOptions{If: blob.IfAbsent()})
					obj, _ := srv.Object("b", "k")
					wantBytes(t, obj.Bytes(), data)
					if info.Version != text(obj.Generation) {
						t.Errorf("version %s, want %d", info.Version, obj.Generation)
					}
					if got := srv.Log().Count("uploads.start"); got != 1 {
						t.Errorf("%d sessions:\n%s", got, srv.Log())
					}
				})
			}
		}
	}
}

// A service that keeps less of a chunk than it was sent gets the rest.
func TestAPartlyKeptChunkIsContinued(t *testing.T) {
	srv := fake(t, fakegcs.Options{Knobs: fakegcs.Knobs{Keep: func(_ *fakehttp.Request, n int64) int64 { return min(n, chunk) }}})
	st := open(t, srv, func(o *gcsblob.Options) { o.PartSize, o.Threshold = 3*chunk, 1 })
	data := content(7*chunk + 3)
	mustSet(t, st, "k", data, nil)
	obj, _ := srv.Object("b", "k")
	wantBytes(t, obj.Bytes(), data)
}

// A session that is lost half-way begins anew, a bounded number of times.
func TestALostSessionBeginsAnew(t *testing.T) {
	for _, status := range []int{404, 410, 499} {
		srv := fake(t, fakegcs.Options{})
		st := open(t, srv, small)
		in := srv.Inject(fakehttp.Fault{Op: "uploads.put", Nth: 2, Reply: &fakehttp.Reply{Status: status}})
		data := content(3*chunk + 9)
		mustSet(t, st, "k", data, &blob.SetOptions{If: blob.IfAbsent()})
		obj, _ := srv.Object("b", "k")
		wantBytes(t, obj.Bytes(), data)
		if n := srv.Log().Count("uploads.start"); n != 2 || in.Hits() != 1 {
			t.Errorf("%d: %d sessions", status, n)
		}
		srv.Inject(fakehttp.Fault{Op: "uploads.put", Times: -1, Reply: &fakehttp.Reply{Status: status}})
		srv.ResetLog()
		_, err := st.Set(t.Context(), "k", blob.Bytes(data), nil)
		wantKind(t, err, blob.ErrConflict)
		if n := srv.Log().Count("uploads.start"); n > 4 {
			t.Errorf("%d: %d sessions", status, n)
		}
	}
}

var errSource = errors.New("the disk is gone")

// failing is a source of size bytes that fails, ends or panics at byte at.
type failing struct {
	at  int64
	err error
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	n := max(0, min(int64(len(p)), f.at-off))
	if n < int64(len(p)) {
		if f.err == nil {
			panic("the source panics")
		}
		return int(n), f.err
	}
	return int(n), nil
}

// A source that fails never makes an object, in one request or in a session, and leaves the one that is there
// (benbjohnson/litestream #1263: closing the writer after a failed copy made the half the object).
func TestAFailingSourceNeverMakesAnObject(t *testing.T) {
	for _, size := range []int64{3 << 10, 3 << 20} {
		for name, src := range map[string]failing{
			"fails":  {size * 6 / 10, errSource},
			"ends":   {size * 6 / 10, io.EOF},
			"at end": {size - 1, errSource},
			"first":  {0, errSource},
		} {
			t.Run(fmt.Sprintf("%d/%s", size, name), func(t *testing.T) {
				srv := fake(t, fakegcs.Options{})
				st := open(t, srv, small)
				srv.PutObject("b", "old", []byte("old"), nil)
				for _, key := range []string{"new", "old"} {
					_, err := st.Set(t.Context(), key, blob.ReaderAt(src, size), nil)
					if err == nil || blob.OutcomeOf(err) != blob.NotApplied {
						t.Fatalf("%v: want an error, not applied", err)
					}
					if src.err == errSource && !errors.Is(err, errSource) { //nolint:errorlint // which one it is
						t.Errorf("%v hides the source's error", err)
					}
				}
				if err := st.Close(context.Background()); err != nil {
					t.Errorf("close: %v", err)
				}
				if objs := srv.Objects("b"); len(objs) != 1 || string(objs[0].Bytes()) != "old" {
					t.Errorf("%d objects, the first %q", len(objs), objs[0].Key)
				}
				if open := srv.Uploads("b"); len(open) > 0 {
					t.Errorf("sessions left: %v", open)
				}
			})
		}
	}
}

// A cancelled Set cancels its session and makes no object.
func TestACancelledSetCancelsItsSession(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, small)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := srv.Inject(fakehttp.Fault{Op: "uploads.put", Nth: 2, HoldAfter: true})
	failed := make(chan error)
	go func() {
		_, err := st.Set(ctx, "k", blob.Bytes(content(3*chunk)), nil)
		failed <- err
	}()
	<-in.Reached()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	in.Release()
	if err := st.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if n := srv.Log().Count("uploads.cancel"); n != 1 || len(srv.Uploads("b")) > 0 || len(srv.Objects("b")) > 0 {
		t.Errorf("%d cancels, %v, objects %d", n, srv.Uploads("b"), len(srv.Objects("b")))
	}
}

// The address of a session lets anybody write: neither errors nor logs nor what Close owes show it, whatever a page or a
// transport says.
func TestTheAddressOfASessionIsNeverShown(t *testing.T) {
	page := "<html>The requested URL /upload/storage/v1/b/b/o?uploadType=resumable&upload_id=fakegcs-upload-000000000001 was not found.</html>"
	for name, reply := range map[string]fakehttp.Reply{
		"page":     {Status: 404, Body: page},
		"message":  {Status: 400, Code: "invalid", Message: "no upload fakegcs-upload-000000000001"},
		"reason":   {Status: 403, Code: "fakegcs-upload-000000000001"},
		"header":   {Status: 403, Header: map[string]string{"X-Guploader-Uploadid": "fakegcs-upload-000000000001"}},
		"document": {Status: 200, Body: "fakegcs-upload-000000000001"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			srv := fake(t, fakegcs.Options{})
			st := open(t, srv, small, func(o *gcsblob.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			srv.Inject(fakehttp.Fault{Op: "uploads.put", Times: -1, Reply: &reply})
			srv.Inject(fakehttp.Fault{Op: "uploads.cancel", Times: -1, Reply: &reply})
			srv.Inject(fakehttp.Fault{Op: "uploads.query", Times: -1, Reply: &reply})
			_, err := st.Set(t.Context(), "k", blob.Bytes(content(2*chunk)), nil)
			if err == nil {
				t.Fatal("no error")
			}
			shown := fmt.Sprintf("%v %+v %#v\n%v\n%s", err, err, err, st.Close(context.Background()), &log)
			var g *googleapi.Error
			if errors.As(err, &g) {
				shown += fmt.Sprintf("%v %s %v %+v", g.Header, g.Body, g.Details, g.Errors)
			}
			if strings.Contains(shown, "fakegcs-upload-0") {
				t.Errorf("shown: %s", shown)
			}
		})
	}
}

// A session is asked where its store is, whatever name the server has for itself; on Google's own endpoint it must be Google's.
func TestASessionStaysAtItsEndpoint(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, small)
	in := srv.Inject(fakehttp.Fault{Op: "uploads.start", Reply: &fakehttp.Reply{Status: 200, Commit: true, NoBody: true, Header: map[string]string{
		"Location": "http://elsewhere.invalid:4443/upload/storage/v1/b/b/o?uploadType=resumable&upload_id=fakegcs-upload-000000000001",
	}}})
	mustSet(t, st, "k", content(2*chunk), nil)
	if in.Hits() != 1 {
		t.Error("not hit")
	}
}
