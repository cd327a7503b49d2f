package s3blob_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

// bubble runs f in a bubble of fake time, with a store on a server in memory.
func bubble(t *testing.T, so fakes3.Options, edit func(*s3blob.Options), f func(t *testing.T, srv *fakes3.Server, st *s3blob.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		so.InMemory, so.Buckets = true, []string{"b"}
		srv := fakes3.New(so)
		tr := srv.Transport()
		o := options(srv)
		small(o)
		o.Transport = tr
		if edit != nil {
			edit(o)
		}
		st, err := s3blob.New(t.Context(), "b", o)
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		defer tr.CloseIdleConnections()
		defer closeStore(t, st)
		f(t, srv, st)
	})
}

// Half a body and then silence with the connection open: the attempt is ended after Stall and the read goes on where it
// stood, on a new connection (restic/restic #4193).
func TestSilentBodyIsResumedAfterStall(t *testing.T) {
	bubble(t, fakes3.Options{}, func(o *s3blob.Options) { o.Stall = 5 * time.Second }, func(t *testing.T, srv *fakes3.Server, st *s3blob.Store) {
		data := content(3 * P)
		srv.PutObject("b", "k", inParts(data, P), nil)
		srv.Inject(fakes3.Fault{Op: "GetObject", Match: func(r *fakes3.Request) bool { return r.PartNumber == 2 }, Cut: &fakes3.Cut{At: 100, How: fakes3.Silence}})
		start := time.Now()
		wantBytes(t, mustGet(t, st, "k", nil).Data, data)
		if d := time.Since(start); d < 5*time.Second || d > 6*time.Second {
			t.Errorf("took %v of fake time, want the stall of 5s and a delay", d)
		}
		wantLog(t, srv, `
GetObject k bytes=4196-8191 If-Match=etag -> 206
GetObject k partNumber=1 -> 206
GetObject k partNumber=2 If-Match=etag -> 206 cut
GetObject k partNumber=3 If-Match=etag -> 206
`)
	})
}

// Headers that never come end the attempt after Retry.Attempt, for reads and writes; the next one succeeds.
func TestSilentServerIsTriedAgain(t *testing.T) {
	for _, op := range []string{"GetObject", "PutObject", "HeadObject", "DeleteObject", "ListObjectsV2", "UploadPart", "CreateMultipartUpload"} {
		t.Run(op, func(t *testing.T) {
			edit := func(o *s3blob.Options) { o.Retry.Attempt = 7 * time.Second }
			bubble(t, fakes3.Options{MinPartSize: -1}, edit, func(t *testing.T, srv *fakes3.Server, st *s3blob.Store) {
				srv.PutObject("b", "k", [][]byte{content(10)}, nil)
				in := srv.Inject(fakes3.Fault{Op: op, HoldBefore: true})
				start := time.Now()
				if err := everything(t.Context(), st); err != nil {
					t.Error(err)
				}
				if d := time.Since(start); d < 7*time.Second || d > 8*time.Second {
					t.Errorf("took %v of fake time, want 7s", d)
				}
				in.Release()
			})
		})
	}
}

// everything does one of each operation on the existing object k.
func everything(ctx context.Context, st blob.Blob) error {
	if _, err := st.Get(ctx, "k", nil); err != nil {
		return err
	}
	if _, err := st.Stat(ctx, "k"); err != nil {
		return err
	}
	for _, size := range []int{10, 2 * P} {
		if _, err := st.Set(ctx, "k2", blob.Bytes(content(size)), nil); err != nil {
			return err
		}
	}
	for _, err := range st.List(ctx, "", nil) {
		if err != nil {
			return err
		}
	}
	return st.Delete(ctx, "k2", nil)
}

// A slow body that goes on is left alone however long it takes, read or written: here 25 times Stall.
func TestSlowHealthyTransfersAreLeftAlone(t *testing.T) {
	so := fakes3.Options{MinPartSize: -1, Knobs: fakes3.Knobs{Bandwidth: 100 << 10}}
	edit := func(o *s3blob.Options) {
		o.PartSize, o.Segment, o.Threshold = 16<<20, 16<<20, 16<<20
		o.Stall, o.Retry.Attempt, o.Retry.Total = 4*time.Second, 5*time.Second, time.Hour
	}
	bubble(t, so, edit, func(t *testing.T, srv *fakes3.Server, st *s3blob.Store) {
		data := content(10 << 20)
		if _, err := st.Set(t.Context(), "k", blob.Bytes(data), nil); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		wantBytes(t, mustGet(t, st, "k", nil).Data, data)
		if d := time.Since(start); d < 100*time.Second {
			t.Errorf("took %v of fake time: the body was not slow", d)
		}
		if n := len(srv.Log()); n != 2 {
			t.Errorf("%d requests, want 2:\n%s", n, srv.Log())
		}
	})
}

// A byte now and then makes progress, but Total ends it all the same.
func TestTotalBoundsABodyThatCreeps(t *testing.T) {
	edit := func(o *s3blob.Options) { o.Retry.Total, o.Retry.Attempt = time.Minute, time.Second }
	bubble(t, fakes3.Options{}, edit, func(t *testing.T, srv *fakes3.Server, st *s3blob.Store) {
		srv.PutObject("b", "k", [][]byte{content(P)}, nil)
		srv.Inject(fakes3.Fault{Op: "GetObject", Times: -1, Delay: 900 * time.Millisecond, Cut: &fakes3.Cut{At: 1}})
		start := time.Now()
		wantKind(t, getError(st, "k", nil), blob.ErrUnavailable) // the attempt that Total cut off
		if d := time.Since(start); d > 2*time.Minute {
			t.Errorf("took %v of fake time, want a minute", d)
		}
	})
}

// A throttled endpoint is left alone by all workers: together they send few requests while it refuses, obey
// Retry-After, and do not come back all at once (grafana/loki #23754).
func TestThrottledEndpointIsLeftAlone(t *testing.T) {
	const workers, refusals = 64, 20
	edit := func(o *s3blob.Options) {
		o.Retry = retry.Policy{Attempts: 10, FirstDelay: 100 * time.Millisecond}
	}
	bubble(t, fakes3.Options{}, edit, func(t *testing.T, srv *fakes3.Server, st *s3blob.Store) {
		srv.PutObject("b", "k", [][]byte{content(10)}, nil)
		srv.Inject(fakes3.Fault{Op: "GetObject", Times: refusals, Reply: &fakes3.Reply{Status: http.StatusServiceUnavailable, Code: "SlowDown", RetryAfter: time.Second}})
		start := time.Now()
		var failed atomic.Int64
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				if _, err := st.Get(t.Context(), "k", nil); err != nil {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		log := srv.Log()
		if failed.Load() > 0 || len(log) != workers+refusals {
			t.Errorf("%d failed, %d requests, want none and %d", failed.Load(), len(log), workers+refusals)
		}
		instants := make(map[time.Time]int)
		for _, e := range log[workers:] {
			instants[e.Time]++
			if e.Time.Sub(start) < time.Second {
				t.Errorf("a request %v after the refusal, before Retry-After", e.Time.Sub(start))
			}
		}
		for at, n := range instants {
			if n > 4 {
				t.Errorf("%d requests at the same instant, %v after the start", n, at.Sub(start))
			}
		}
	})
}

// A caller who gives up is let go at once, whatever the endpoint asked for.
func TestCancelEndsTheWaitForAThrottledEndpoint(t *testing.T) {
	bubble(t, fakes3.Options{}, nil, func(t *testing.T, srv *fakes3.Server, st *s3blob.Store) {
		srv.Inject(fakes3.Fault{Op: "GetObject", Times: -1, Reply: &fakes3.Reply{Status: 429, RetryAfter: 20 * time.Second}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := st.Get(ctx, "k", nil)
		wantKind(t, err, context.Canceled)
		if d := time.Since(start); d != time.Second {
			t.Errorf("ended %v after the start, want the cancel at 1s", d)
		}
	})
}

// No more requests are in flight than the Store allows, whatever the operations ask for together.
func TestRequestsInFlightAreBounded(t *testing.T) {
	srv := fake(t, fakes3.Options{})
	srv.PutObject("b", "k", inParts(content(20*P), P), nil)
	st := open(t, srv, func(o *s3blob.Options) { small(o); o.InFlight = 3 })
	var calls, most atomic.Int64
	second := make(chan struct{})
	srv.Inject(fakes3.Fault{Op: "GetObject", Times: -1, Then: func() {
		switch calls.Add(1) {
		case 1:
			<-second // so some requests certainly overlap
		case 2:
			close(second)
		}
		for n := int64(srv.InFlight()); ; {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				return
			}
		}
	}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { mustGet(t, st, "k", nil) })
	}
	wg.Wait()
	if n := most.Load(); n > 3 || n < 2 {
		t.Errorf("up to %d requests in flight, want at most 3", n)
	}
}

// One reply that asks for hours stops nobody else for hours, and a caller without the time to wait is told why.
func TestAbsurdRetryAfterStopsNobodyForLong(t *testing.T) {
	edit := func(o *s3blob.Options) { o.Retry.Total, o.Retry.Attempt = 10*time.Minute, time.Second }
	bubble(t, fakes3.Options{}, edit, func(t *testing.T, srv *fakes3.Server, st *s3blob.Store) {
		srv.PutObject("b", "k", [][]byte{content(10)}, nil)
		srv.Inject(fakes3.Fault{Op: "GetObject", Reply: &fakes3.Reply{Status: 503, Code: "SlowDown", RetryAfter: 5 * time.Hour}})
		start := time.Now()
		wantKind(t, getError(st, "k", nil), blob.ErrThrottled)
		if d := time.Since(start); d > time.Second {
			t.Errorf("the call that cannot wait for 5h waited %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := st.Get(ctx, "k", nil)
		wantKind(t, err, blob.ErrThrottled)
		mustGet(t, st, "k", nil)
		if d := time.Since(start); d > 2*time.Minute {
			t.Errorf("the next call succeeded after %v", d)
		}
	})
}

// Headers and then silence is a stall, ended after Stall; a first byte that is late, but not that late, is none.
func TestSilenceBehindTheHeadersIsAStall(t *testing.T) {
	edit := func(o *s3blob.Options) { o.Stall, o.Retry.Attempt = 2*time.Second, time.Minute }
	bubble(t, fakes3.Options{}, edit, func(t *testing.T, srv *fakes3.Server, st *s3blob.Store) {
		srv.PutObject("b", "k", [][]byte{content(10)}, nil)
		srv.Inject(fakes3.Fault{Op: "GetObject", Cut: &fakes3.Cut{At: 0, How: fakes3.Silence}})
		start := time.Now()
		wantBytes(t, mustGet(t, st, "k", nil).Data, content(10))
		if d := time.Since(start); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("took %v of fake time, want the stall of 2s", d)
		}
	})
}
