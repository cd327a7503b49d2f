package s3blob_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// An object that is replaced by another of the same length after any of the requests of a read is never mixed from both: with
// an intact body or one that is resumed, by parts, by ranges or plain, on a server that honours If-Match, one that ignores it, and one
// without ETags, where the time of the change stands in (duckdb/duckdb-httpfs #111).
func TestObjectReplacedDuringAReadIsNeverMixed(t *testing.T) {
	v1, v2 := content(4*P), content(4*P + 256)[256:]
	servers := map[string]fakes3.Shape{
		"honours If-Match": {},
		"ignores If-Match": {IgnoreIfMatch: true},
		"no ETag":          {ETag: fakes3.NoETag},
		"plain":            {IgnoreIfMatch: true, IgnoreRange: true, IgnorePartNumber: true},
	}
	reads := map[string]func(context.Context, *s3blob.Store) ([]byte, error){
		"get": func(ctx context.Context, st *s3blob.Store) ([]byte, error) {
			obj, err := st.Get(ctx, "k", nil)
			return obj.Data, err
		},
		"get of a known size": func(ctx context.Context, st *s3blob.Store) ([]byte, error) {
			obj, err := st.Get(ctx, "k", &blob.GetOptions{Want: blob.Want{Size: 4 * P, HasSize: true}})
			return obj.Data, err
		},
		"getranges": func(ctx context.Context, st *s3blob.Store) ([]byte, error) {
			objs, err := st.GetRanges(ctx, "k", []blob.Range{blob.Span(0, P), blob.Span(P, P), blob.Span(2*P, 2*P)}, nil)
			var data []byte
			for _, o := range objs {
				data = append(data, o.Data...)
			}
			return data, err
		},
	}
	swaps := 0
	for server, shape := range servers {
		for how, read := range reads {
			for _, byRange := range []bool{false, true} {
				for _, cut := range []bool{false, true} {
					for nth := 1; ; nth++ {
						c := newChange(t, shape, byRange, v1, v2)
						f := fakes3.Fault{Op: "GetObject", Nth: nth, Then: c.swap}
						if cut {
							f.Cut = &fakes3.Cut{At: 100}
						}
						in := c.srv.Inject(f)
						data, err := read(t.Context(), c.st)
						what := fmt.Sprintf("%s, %s, ranges %t, cut %t, after request %d", server, how, byRange, cut, nth)
						switch {
						case err != nil:
							t.Errorf("%s: %v\n%s", what, err, c.srv.Log())
						case string(data) != string(v1) && string(data) != string(v2):
							t.Errorf("%s: neither the one nor the other version: %d bytes of the first, then others\n%s", what, equalPrefix(data, v1), c.srv.Log())
						}
						if in.Hits() == 0 {
							break
						}
						swaps++
					}
				}
			}
		}
	}
	t.Logf("%d swaps", swaps)
	if swaps < 100 {
		t.Errorf("only %d swaps", swaps)
	}
}

// change is an object that can be replaced.
type change struct {
	srv     *fakes3.Server
	st      *s3blob.Store
	version string
	swap    func()
}

// newChange returns an object v1 that swap replaces by v2, a minute later by the server's clock.
func newChange(t *testing.T, shape fakes3.Shape, byRange bool, v1, v2 []byte) *change {
	t.Helper()
	var late atomic.Int64
	srv := fake(t, fakes3.Options{
		Knobs: fakes3.Knobs{Shape: shape},
		Now:   func() time.Time { return time.Now().Add(time.Duration(late.Load())) },
	})
	etag := srv.PutObject("b", "k", inParts(v1, P), nil)
	return &change{
		srv: srv, version: strings.Trim(etag, `"`),
		st: open(t, srv, func(o *s3blob.Options) { small(o); o.ReadRanges = byRange; o.Gap = -1 }),
		swap: func() {
			late.Add(int64(time.Minute))
			srv.PutObject("b", "k", inParts(v2, P), nil)
		},
	}
}

// Who asks for a version gets that one or ErrPrecondition, whenever the object is replaced.
func TestObjectReplacedDuringAReadOfAVersion(t *testing.T) {
	v1, v2 := content(4*P), content(4*P + 256)[256:]
	for _, ignore := range []bool{false, true} {
		for nth := 1; ; nth++ {
			c := newChange(t, fakes3.Shape{IgnoreIfMatch: ignore}, false, v1, v2)
			in := c.srv.Inject(fakes3.Fault{Op: "GetObject", Nth: nth, Then: c.swap})
			obj, err := c.st.Get(t.Context(), "k", &blob.GetOptions{If: blob.IfVersion(c.version)})
			switch {
			case err == nil:
				wantBytes(t, obj.Data, v1)
			case !errors.Is(err, blob.ErrPrecondition):
				t.Errorf("replaced after request %d: %v", nth, err)
			}
			if in.Hits() == 0 {
				break
			}
			if nth == 1 && err == nil && !ignore {
				t.Error("replaced after the first of four requests, and still read")
			}
		}
	}
}

// An object that never stands still is ErrChanged after a bounded number of requests.
func TestObjectThatKeepsChanging(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{Shape: fakes3.Shape{IgnoreIfMatch: ignore}}})
		var n atomic.Int64
		put := func() {
			data := content(4 * P)
			copy(data, fmt.Sprint(n.Add(1)))
			srv.PutObject("b", "k", inParts(data, P), nil)
		}
		put()
		srv.Inject(fakes3.Fault{Op: "GetObject", Times: -1, Then: put})
		for restarts, want := range map[int]int{0: 4 * 4, -1: 4, 1: 2 * 4} {
			st := open(t, srv, func(o *s3blob.Options) { small(o); o.Restarts = restarts })
			srv.ResetLog()
			wantKind(t, getError(st, "k", nil), blob.ErrChanged)
			if n := len(srv.Log()); n > want {
				t.Errorf("%d requests with Restarts %d, want at most %d", n, restarts, want)
			}
		}
	}
}
