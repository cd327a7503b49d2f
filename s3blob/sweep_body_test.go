package s3blob_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// A body is sent again whole: after a 503 that came when it had been read, after one that came before, and after a reset
// (minio/minio-go #2253).
func TestBodyIsSentAgainWhole(t *testing.T) {
	for how, f := range map[string]fakes3.Fault{
		"503":              reply(503, "SlowDown", 0),
		"503 at once":      {Reply: &fakes3.Reply{Status: 503, Unread: true}},
		"reset before":     {Before: fakes3.Reset},
		"reset after":      {After: fakes3.Reset},
		"500 after commit": {Reply: &fakes3.Reply{Status: 500, Commit: true}},
	} {
		for _, size := range []int{100, 1 << 20, 3*P + 1} {
			for name, source := range sources {
				for _, unsigned := range []bool{false, true} {
					srv := fake(t, fakes3.Options{MinPartSize: -1, HashBodies: true})
					st := open(t, srv, func(o *s3blob.Options) {
						o.UnsignedPayload = unsigned
						if small(o); size == 1<<20 {
							o.PartSize = 2 << 20
						}
					})
					data := content(size)
					f.Match = func(r *fakes3.Request) bool { return r.Op == "PutObject" || r.Op == "UploadPart" && r.PartNumber == 2 }
					in := srv.Inject(f)
					if _, err := st.Set(t.Context(), "k", source(data), nil); err != nil || in.Hits() != 1 {
						t.Errorf("%s, %d bytes of %s: %v, %d hits", how, size, name, err, in.Hits())
						continue
					}
					obj, _ := srv.Object("b", "k")
					wantBytes(t, obj.Bytes(), data)
					for _, e := range srv.Log().Only("PutObject", "UploadPart") {
						part := data
						if e.PartNumber > 0 {
							part = inParts(data, P)[e.PartNumber-1]
						}
						sum := sha256.Sum256(part)
						if e.Status == 200 && e.BodySHA256 != hex.EncodeToString(sum[:]) {
							t.Errorf("%s: %v: a body of %d bytes that is not the source's", how, e, e.BodyLen)
						}
					}
				}
			}
		}
	}
}

// A kept connection that the server has dropped costs nothing but another one.
func TestDroppedIdleConnectionsDoNoHarm(t *testing.T) {
	srv := fake(t, fakes3.Options{MinPartSize: -1})
	srv.PutObject("b", "k", [][]byte{content(10)}, nil)
	st := openSmall(t, srv)
	for range 50 {
		if err := everything(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		srv.CloseIdleConns()
	}
}

// fickle is a source that is honest on the first read of each byte and then ends, claims to have read nothing, or changes.
type fickle struct {
	data  []byte
	how   string
	reads atomic.Int64
}

func (f *fickle) ReadAt(p []byte, off int64) (int, error) {
	if f.reads.Add(int64(len(p))) <= int64(len(f.data)) {
		return bytes.NewReader(f.data).ReadAt(p, off)
	}
	switch f.how {
	case "ends":
		return 0, io.EOF
	case "nothing":
		return 0, nil
	case "half":
		n, _ := bytes.NewReader(f.data).ReadAt(p[:len(p)/2], off)
		return n, nil
	case "more than asked":
		return len(p) + 1, nil
	}
	clear(p)
	return len(p), nil
}

// A source that gives something else the second time never leads to a shorter object. (One that gives other bytes, as many, from some
// attempt on cannot be told from one that always had them.)
func TestSourceThatLiesNeverStoresLess(t *testing.T) {
	for _, how := range []string{"ends", "nothing", "half", "more than asked", "changes"} {
		for _, size := range []int{P - 1, 3 * P} {
			for _, unsigned := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/unsigned %t", how, size, unsigned), func(t *testing.T) {
					srv := fake(t, fakes3.Options{MinPartSize: -1})
					st := open(t, srv, func(o *s3blob.Options) { small(o); o.UnsignedPayload = unsigned })
					srv.Inject(fakes3.Fault{Op: "PutObject", Replies: fakes3.Statuses(503)})
					srv.Inject(fakes3.Fault{Op: "UploadPart", Replies: fakes3.Statuses(503)})
					_, err := st.Set(t.Context(), "k", blob.ReaderAt(&fickle{data: content(size), how: how}, int64(size)), nil)
					obj, there := srv.Object("b", "k")
					switch {
					case err == nil && (!there || int(obj.Size) != size || how != "changes"):
						t.Errorf("success, there: %t", there)
					case err != nil && there:
						t.Errorf("%v, and an object of %d bytes", err, obj.Size)
					}
					if se := (*blob.SourceError)(nil); err != nil && how != "changes" && !errors.As(err, &se) {
						t.Errorf("%v, want a SourceError", err)
					}
					if err := st.Close(t.Context()); err != nil || len(srv.Uploads("b")) > 0 {
						t.Errorf("close: %v, uploads %v", err, srv.Uploads("b"))
					}
				})
			}
		}
	}
}
