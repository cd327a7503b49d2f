package s3blob_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// Failures, cancels and abandoned listings, a hundred times each, leave no goroutine and no connection behind; and where the
// reply was read, or had no body, the connection is used again (minio/minio-go #1508).
func TestFailuresAndCancelsLeaveNothingBehind(t *testing.T) {
	const rounds = 100
	type env struct {
		srv    *fakes3.Server
		st     *s3blob.Store
		ctx    context.Context
		cancel context.CancelFunc
		key    string // of this round alone: a request that is handled late must not meet the next round's fault
	}
	for _, c := range []struct {
		name  string
		do    func(env) error
		conns int  // most connections in all rounds together; 0: any
		fails bool // an error is expected
	}{
		{name: "normal use", conns: 8, do: func(e env) error {
			if _, err := e.st.Set(e.ctx, "new", blob.Bytes(content(3*P)), nil); err != nil {
				return err
			}
			return everything(e.ctx, e.st)
		}},
		{name: "batches of deletes", conns: 4, do: func(e env) error {
			keys := make([]string, 1000)
			for i := range keys {
				keys[i] = fmt.Sprintf("key %04d", i)
			}
			return e.st.DeleteAll(e.ctx, keys)
		}},
		{name: "get, then cancel", fails: true, do: func(e env) error {
			defer e.srv.Inject(fakes3.Fault{Op: "GetObject", Then: e.cancel, HoldAfter: true}).Remove()
			_, err := e.st.Get(e.ctx, "k", nil)
			return err
		}},
		{name: "get, cancelled in the body", fails: true, do: func(e env) error {
			in := e.srv.Inject(fakes3.Fault{Op: "GetObject", Then: e.cancel, Cut: &fakes3.Cut{At: 100, How: fakes3.Silence}})
			defer in.Remove()
			_, err := e.st.Get(e.ctx, "k", nil)
			return err
		}},
		{name: "set, cancelled in part 2", fails: true, do: func(e env) error {
			defer e.srv.Inject(fakes3.Fault{Op: "UploadPart", Key: e.key, Nth: 2, Then: e.cancel, HoldAfter: true}).Remove()
			_, err := e.st.Set(e.ctx, e.key, blob.Bytes(content(5*P)), nil)
			return err
		}},
		{name: "list abandoned after one item", conns: 5, do: func(e env) error {
			for _, err := range e.st.List(e.ctx, "", nil) {
				return err
			}
			return nil
		}},
		{name: "500 with a body", conns: 5, fails: true, do: func(e env) error {
			body := string(content(20 << 10))
			defer e.srv.Inject(fakes3.Fault{Op: "GetObject", Times: -1, Reply: &fakes3.Reply{Status: 500, Body: body}}).Remove()
			_, err := e.st.Get(e.ctx, "k", nil)
			return err
		}},
		{name: "404 to HEAD", conns: 5, fails: true, do: func(e env) error { _, err := e.st.Stat(e.ctx, "missing"); return err }},
		{name: "404 to GET", conns: 5, fails: true, do: func(e env) error { _, err := e.st.Get(e.ctx, "missing", nil); return err }},
		{name: "body cut", fails: true, do: func(e env) error {
			defer e.srv.Inject(fakes3.Fault{Op: "GetObject", Times: -1, Cut: &fakes3.Cut{At: 0, How: fakes3.Reset}}).Remove()
			_, err := e.st.Get(e.ctx, "k", nil)
			return err
		}},
		{name: "refused before the body was read", fails: true, do: func(e env) error {
			defer e.srv.Inject(fakes3.Fault{Op: "UploadPart", Times: -1, Reply: &fakes3.Reply{Status: 403, Unread: true}}).Remove()
			_, err := e.st.Set(e.ctx, "new", blob.Bytes(content(5*P)), nil)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := runtime.NumGoroutine()
			srv := fakes3.New(fakes3.Options{Buckets: []string{"b"}, MinPartSize: -1, Knobs: fakes3.Knobs{PageSize: 2}})
			srv.PutObject("b", "k", inParts(content(3*P), P), nil)
			for i := range 5 {
				srv.PutObject("b", fmt.Sprint("l", i), nil, nil)
			}
			o := options(srv)
			small(o)
			st, err := s3blob.New(t.Context(), "b", o)
			if err != nil {
				t.Fatal(err)
			}
			for round := range rounds {
				ctx, cancel := context.WithCancel(t.Context())
				if err := c.do(env{srv, st, ctx, cancel, fmt.Sprint("round ", round)}); (err != nil) != c.fails {
					t.Fatal(err)
				}
				cancel()
			}
			conns := make(map[int]bool)
			for _, e := range srv.Log() {
				conns[e.Conn] = true
			}
			t.Logf("%d connections", len(conns))
			if c.conns > 0 && len(conns) > c.conns {
				t.Errorf("%d connections for %d requests, want at most %d", len(conns), len(srv.Log()), c.conns)
			}
			if err := st.Close(t.Context()); err != nil {
				t.Error(err)
			}
			eventually(t, func() bool { return srv.OpenConns() == 0 && srv.InFlight() == 0 })
			if up := srv.Uploads("b"); len(up) > 0 {
				t.Errorf("uploads left: %v", up)
			}
			srv.Close()
			eventually(t, func() bool { return runtime.NumGoroutine() <= base })
		})
	}
}
