package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

const P = 4 << 10 // part size of the write tests

func openSmall(t testing.TB, srv *fakes3.Server) *s3blob.Store { return open(t, srv, small) }

// sources are the kinds of source that can be read again.
var sources = map[string]func([]byte) blob.Source{
	"Bytes":    blob.Bytes,
	"ReaderAt": func(b []byte) blob.Source { return blob.ReaderAt(bytes.NewReader(b), int64(len(b))) },
}

// Sizes around the part size give the fewest requests that can carry them, equal parts but for the last, and the same bytes back
// (apache/opendal #6252, seaweedfs/seaweedfs #6728).
func TestSetSendsEqualPartsAndNoEmptyOne(t *testing.T) {
	for size, want := range map[int]string{
		0:       "PutObject k 0B -> 200\n",
		1:       "PutObject k 1B -> 200\n",
		P - 1:   "PutObject k 4095B -> 200\n",
		P:       parts(P),
		P + 1:   parts(P, 1),
		2 * P:   parts(P, P),
		2*P + 1: parts(P, P, 1),
		5*P - 1: parts(P, P, P, P, P-1),
	} {
		for name, source := range sources {
			t.Run(fmt.Sprintf("%d/%s", size, name), func(t *testing.T) {
				srv := fake(t, fakes3.Options{MinPartSize: -1, Knobs: fakes3.Knobs{EqualParts: true}})
				data := content(size)
				if _, err := openSmall(t, srv).Set(t.Context(), "k", source(data), nil); err != nil {
					t.Fatal(err)
				}
				wantLog(t, srv, "\n"+want)
				obj, _ := srv.Object("b", "k")
				wantBytes(t, obj.Bytes(), data)
			})
		}
	}
}

// parts returns the sorted requests of a multipart upload.
func parts(sizes ...int) string {
	s := "CompleteMultipartUpload k -> 200\nCreateMultipartUpload k -> 200\n"
	for i, n := range sizes {
		s += fmt.Sprintf("UploadPart k partNumber=%d %dB -> 200\n", i+1, n)
	}
	return s
}

// A small Get and a small Set are one request each; an object of n parts is read by n.
func TestRequestsOfSmallAndLargeObjects(t *testing.T) {
	srv := fake(t, fakes3.Options{MinPartSize: -1})
	st := openSmall(t, srv)
	requests := func(f func()) string {
		srv.ResetLog()
		f()
		return srv.Log().Sorted().String()
	}
	set := func(n int) func() {
		return func() {
			if _, err := st.Set(t.Context(), "k", blob.Bytes(content(n)), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	get := func(o *blob.GetOptions) func() { return func() { mustGet(t, st, "k", o) } }
	for _, c := range []struct {
		what string
		do   func()
		want string
	}{
		{"small set", set(100), "PutObject k 100B -> 200\n"},
		{"small get", get(nil), "GetObject k partNumber=1 -> 206\n"},
		{"get by range", get(&blob.GetOptions{Range: blob.Span(10, 20)}), "GetObject k bytes=10-29 -> 206\n"},
		{"get of the last bytes", get(&blob.GetOptions{Range: blob.Last(7)}), "GetObject k bytes=-7 -> 206\n"},
		{"get of no bytes", get(&blob.GetOptions{Range: blob.Span(10, 0)}), "HeadObject k -> 200\n"},
		{"large set", set(3*P + 1), parts(P, P, P, 1)},
		{"large get", get(nil), `GetObject k partNumber=1 -> 206
GetObject k partNumber=2 If-Match=etag -> 206
GetObject k partNumber=3 If-Match=etag -> 206
GetObject k partNumber=4 If-Match=etag -> 206
`},
		{"large get by range", get(&blob.GetOptions{Range: blob.From(P)}), `GetObject k bytes=12288-12288 If-Match=etag -> 206
GetObject k bytes=4096-8191 -> 206
GetObject k bytes=8192-12287 If-Match=etag -> 206
`},
		{"large get of the last bytes", get(&blob.GetOptions{Range: blob.Last(P + 5)}), `GetObject k bytes=-4096 -> 206
GetObject k bytes=8188-8192 If-Match=etag -> 206
`},
		{"stat", func() { _, _ = st.Stat(t.Context(), "k") }, "HeadObject k -> 200\n"},
		{"delete", func() { _ = st.Delete(t.Context(), "k", nil) }, "DeleteObject k -> 204\n"},
		{"delete all", func() { _ = st.DeleteAll(t.Context(), []string{"a", "b", "a"}) }, "DeleteObjects 2 keys -> 200\n"},
		{"list", func() {
			for _, err := range st.List(t.Context(), "p", nil) {
				t.Error(err) // nothing is there
			}
		}, "ListObjectsV2 prefix=p -> 200\n"},
	} {
		if got := requests(c.do); got != c.want {
			t.Errorf("%s:\n%swant:\n%s", c.what, got, c.want)
		}
	}
}

// badReaderAt fails at byte at, in the way of how.
type badReaderAt struct {
	data []byte
	at   int64
	how  func() (int, error)
}

func (b badReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= b.at {
		return bytes.NewReader(b.data).ReadAt(p, off)
	}
	return b.how()
}

var errSource = errors.New("the disk is on fire")

// A source that fails, ends early or panics leaves the old object, no upload, and its own error; an unexpected EOF of a source is not
// its end (aws/aws-sdk-go #780).
func TestFailingSourceLeavesTheOldObject(t *testing.T) {
	for _, c := range []struct {
		name string
		how  func() (int, error)
		want error
	}{
		{"error", func() (int, error) { return 0, errSource }, errSource},
		{"unexpected EOF", func() (int, error) { return 0, io.ErrUnexpectedEOF }, io.ErrUnexpectedEOF},
		{"early end", func() (int, error) { return 0, io.EOF }, blob.ErrSourceLength},
		{"panic", func() (int, error) { panic("source") }, nil},
	} {
		for _, size := range []int{100, 5 * P} {
			t.Run(fmt.Sprintf("%s/%d", c.name, size), func(t *testing.T) {
				srv := fake(t, fakes3.Options{MinPartSize: -1})
				st := openSmall(t, srv)
				old := content(50)
				if _, err := st.Set(t.Context(), "k", blob.Bytes(old), nil); err != nil {
					t.Fatal(err)
				}
				src := blob.ReaderAt(badReaderAt{content(size), int64(size * 3 / 5), c.how}, int64(size))
				_, err := st.Set(t.Context(), "k", src, nil)
				var se *blob.SourceError
				if !errors.As(err, &se) || c.want != nil && !errors.Is(err, c.want) || blob.OutcomeOf(err) != blob.NotApplied {
					t.Errorf("got %v with outcome %v, want a SourceError of %v, not applied", err, blob.OutcomeOf(err), c.want)
				}
				wantBytes(t, mustGet(t, st, "k", nil).Data, old)
				if err := st.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if up := srv.Uploads("b"); len(up) > 0 {
					t.Errorf("uploads left: %v", up)
				}
				if n := srv.Log().Count("UploadPart"); n > 5 {
					t.Errorf("%d parts sent", n)
				}
			})
		}
	}
}

// A part that is refused, or a caller who gives up, ends the upload: exactly one abort, after the parts.
func TestFailedUploadIsAbortedOnce(t *testing.T) {
	run := func(t *testing.T, f fakes3.Fault, during func(in *fakes3.Injected, cancel func())) error {
		srv := fake(t, fakes3.Options{MinPartSize: -1})
		st := openSmall(t, srv)
		in := srv.Inject(f)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if during != nil {
			go during(in, cancel)
		}
		_, err := st.Set(ctx, "k", blob.Bytes(content(5*P)), nil)
		if blob.OutcomeOf(err) != blob.NotApplied {
			t.Errorf("outcome %v of %v", blob.OutcomeOf(err), err)
		}
		if err := st.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := srv.Log().Count("AbortMultipartUpload"); n != 1 || len(srv.Uploads("b")) != 0 {
			t.Errorf("%d aborts, uploads left: %v\n%s", n, srv.Uploads("b"), srv.Log())
		}
		if n := srv.Log().Count("CompleteMultipartUpload"); f.Op != "CompleteMultipartUpload" && n > 0 {
			t.Error("the upload was committed")
		}
		return err
	}
	t.Run("part refused", func(t *testing.T) {
		wantKind(t, run(t, fakes3.Fault{Op: "UploadPart", Nth: 3, Times: -1, Reply: &fakes3.Reply{Status: 403}}, nil), blob.ErrPermission)
	})
	t.Run("commit refused", func(t *testing.T) {
		wantKind(t, run(t, fakes3.Fault{Op: "CompleteMultipartUpload", Reply: &fakes3.Reply{Status: 400, Code: "InvalidPart"}}, nil), blob.ErrInvalidOption)
	})
	t.Run("cancelled", func(t *testing.T) {
		err := run(t, fakes3.Fault{Op: "UploadPart", Nth: 2, HoldBefore: true}, func(in *fakes3.Injected, cancel func()) {
			<-in.Reached()
			cancel()
		})
		wantKind(t, err, context.Canceled)
	})
}

// What could not be aborted is named by Close, and done by a later one.
func TestCloseNamesTheUploadsItOwes(t *testing.T) {
	srv := fake(t, fakes3.Options{MinPartSize: -1})
	st := openSmall(t, srv)
	srv.Inject(fakes3.Fault{Op: "UploadPart", Times: -1, Reply: &fakes3.Reply{Status: 403}})
	abort := srv.Inject(fakes3.Fault{Op: "AbortMultipartUpload", Times: -1, Reply: &fakes3.Reply{Status: 403}})
	if _, err := st.Set(t.Context(), "k", blob.Bytes(content(2*P)), nil); err == nil {
		t.Fatal("no error")
	}
	var owed *blob.OwedError
	if err := st.Close(t.Context()); !errors.As(err, &owed) || len(owed.Uploads) != 1 {
		t.Fatalf("Close: %v, want one upload owed", err)
	}
	abort.Remove()
	if err := st.Close(t.Context()); err != nil {
		t.Fatalf("second Close: %v", err)
	}
	if up := srv.Uploads("b"); len(up) > 0 {
		t.Errorf("uploads left: %v", up)
	}
}

// An unconditional Set whose reply was lost is sent again; a conditional one, or AtMostOnce, is reported as Unknown and not repeated.
func TestLostReplyOfAWrite(t *testing.T) {
	for _, size := range []int{100, 3 * P} {
		commit := map[bool]string{true: "PutObject", false: "CompleteMultipartUpload"}[size < P]
		for name, o := range map[string]*blob.SetOptions{"unconditional": nil, "IfAbsent": {If: blob.IfAbsent()}, "AtMostOnce": {AtMostOnce: true}} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				srv := fake(t, fakes3.Options{MinPartSize: -1})
				st := openSmall(t, srv)
				srv.Inject(fakes3.Fault{Op: commit, After: fakes3.Reset})
				_, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), o)
				n := srv.Log().Count(commit)
				if o == nil && (err != nil || n != 2) {
					t.Errorf("%v after %d requests, want success after 2", err, n)
				}
				if o != nil && (blob.OutcomeOf(err) != blob.Unknown || errors.Is(err, blob.ErrExists) || n != 1) {
					t.Errorf("%v with outcome %v after %d requests, want unknown after 1", err, blob.OutcomeOf(err), n)
				}
				wantBytes(t, mustGet(t, st, "k", nil).Data, content(size))
			})
		}
	}
}
