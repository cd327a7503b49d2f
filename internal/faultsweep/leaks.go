package faultsweep

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// Leaks shows that failures, cancels and abandoned listings, a hundred times each, leave no goroutine, no connection and no upload
// behind; and where the reply was read, or had no body, the connection is used again (minio/minio-go #1508).
func Leaks(t *testing.T, target *Target) {
	for _, c := range target.leaks() {
		t.Run(c.name, func(t *testing.T) { target.leak(t, c) })
	}
}

// round is one of the hundred.
type round struct {
	*Target
	srv    *fakehttp.Server
	st     blob.Blob
	ctx    context.Context
	cancel context.CancelFunc
	key    string // of this round alone: a request that is handled late must not meet the next round's fault
}

// with puts a fault in force for what do does.
func (r round) with(f fakehttp.Fault, do func() error, kinds ...Kind) error {
	f.Match = r.match(kinds...)
	defer r.srv.Inject(f).Remove()
	return do()
}

func (r round) get() error {
	_, err := r.st.Get(r.ctx, theKey, nil)
	return err
}

func (r round) set(key string, parts int) error {
	_, err := r.st.Set(r.ctx, key, blob.Bytes(content(parts*r.PartSize)), nil)
	return err
}

type leak struct {
	name  string
	do    func(round) error
	conns int  // most connections in all rounds together; 0: any
	fails bool // an error is expected
}

func (target *Target) leaks() []leak {
	failed := target.Failures[0]
	failed.Body = string(content(20 << 10))
	refused := target.Refusals[0]
	refused.Unread = true
	leaks := []leak{
		{name: "normal use", conns: 8, do: func(r round) error {
			if err := r.set("new", 3); err != nil {
				return err
			}
			return r.everything(r.ctx, r.st)
		}},
		{name: "get, then cancel", fails: true, do: func(r round) error {
			return r.with(fakehttp.Fault{Then: r.cancel, HoldAfter: true}, r.get, Read)
		}},
		{name: "get, cancelled in the body", fails: true, do: func(r round) error {
			return r.with(fakehttp.Fault{Then: r.cancel, Cut: &fakehttp.Cut{At: 100, How: fakehttp.Silence}}, r.get, Read)
		}},
		{name: "set, cancelled in part 2", fails: true, do: func(r round) error {
			f := fakehttp.Fault{Key: r.key, Nth: 2, Then: r.cancel, HoldAfter: true}
			return r.with(f, func() error { return r.set(r.key, 5) }, Part)
		}},
		{name: "list abandoned after one item", conns: 5, do: func(r round) error {
			for _, err := range r.st.List(r.ctx, "", nil) {
				return err
			}
			return nil
		}},
		{name: "failure with a body", conns: 5, fails: true, do: func(r round) error {
			return r.with(fakehttp.Fault{Times: -1, Reply: &failed}, r.get, Read)
		}},
		{name: "stat of nothing", conns: 5, fails: true, do: func(r round) error { _, err := r.st.Stat(r.ctx, "missing"); return err }},
		{name: "get of nothing", conns: 5, fails: true, do: func(r round) error { _, err := r.st.Get(r.ctx, "missing", nil); return err }},
		{name: "body cut", fails: true, do: func(r round) error {
			return r.with(fakehttp.Fault{Times: -1, Cut: &fakehttp.Cut{At: 0, How: fakehttp.Reset}}, r.get, Read)
		}},
		{name: "refused before the body was read", fails: true, do: func(r round) error {
			return r.with(fakehttp.Fault{Times: -1, Reply: &refused}, func() error { return r.set(r.key, 5) }, Part)
		}},
	}
	if target.Batch > 0 {
		leaks = append(leaks, leak{name: "batches of deletes", conns: 4, do: func(r round) error {
			keys := make([]string, r.Batch)
			for i := range keys {
				keys[i] = fmt.Sprintf("key %04d", i)
			}
			return r.st.DeleteAll(r.ctx, keys)
		}})
	}
	return leaks
}

func (target *Target) leak(t *testing.T, c leak) {
	const rounds = 100
	base := runtime.NumGoroutine()
	s := target.Start(Setup{PageSize: 2})
	srv := s.HTTP()
	defer srv.Close()
	s.Put(theKey, inParts(content(3*target.PartSize), target.PartSize), nil)
	for i := range 5 {
		s.Put(fmt.Sprint("l", i), nil, nil)
	}
	_, st, err := target.openOver(t.Context(), s, Config{Policy: quick(3)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		if err := c.do(round{target, srv, st, ctx, cancel, fmt.Sprint("round ", i)}); (err != nil) != c.fails {
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
	eventually(t, "connections to close", func() bool { return srv.OpenConns() == 0 && srv.InFlight() == 0 })
	if up := s.Uploads(); len(up) > 0 {
		t.Errorf("uploads left: %v", up)
	}
	srv.Close()
	eventually(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= base })
}
