package faultsweep

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// Changes shows that an object which is replaced while it is read is never mixed from both (duckdb/duckdb-httpfs #111), that who asks for a
// version gets that one or an error, and that a read of an object which never stands still comes to an end.
func Changes(t *testing.T, target *Target) {
	t.Run("never mixed", func(t *testing.T) { target.neverMixed(t) })
	t.Run("of a version", func(t *testing.T) { target.ofAVersion(t) })
	t.Run("that goes on", func(t *testing.T) { target.keepsChanging(t) })
}

// neverMixed replaces an object by another of the same length after any of the requests of a read: with an intact body or one
// that is resumed, in every way to read, on every server that the target names.
func (target *Target) neverMixed(t *testing.T) {
	shapes := target.Shapes
	if shapes == nil {
		shapes = map[string]fakehttp.Shape{"as documented": {}}
	}
	swaps, ways := 0, 0
	for server, shape := range shapes {
		for how, read := range target.wholeReads() {
			for _, byRange := range []bool{false, true} {
				if !byRange && !target.PartReads {
					continue
				}
				for _, cut := range []bool{false, true} {
					ways++
					what := fmt.Sprintf("%s, %s, ranges %t, cut %t", server, how, byRange, cut)
					swaps += target.swapDuring(t, what, shape, byRange, cut, read)
				}
			}
		}
	}
	t.Logf("%d swaps in %d ways", swaps, ways)
	if swaps < 2*ways {
		t.Errorf("only %d swaps in %d ways", swaps, ways)
	}
}

type wholeRead func(context.Context, blob.Blob) ([]byte, error)

// wholeReads are ways to read an object of four parts.
func (target *Target) wholeReads() map[string]wholeRead {
	p := int64(target.PartSize)
	get := func(o *blob.GetOptions) wholeRead {
		return func(ctx context.Context, st blob.Blob) ([]byte, error) {
			obj, err := st.Get(ctx, theKey, o)
			return obj.Data, err
		}
	}
	return map[string]wholeRead{
		"get":                 get(nil),
		"get of a known size": get(&blob.GetOptions{Want: blob.Want{Size: 4 * p, HasSize: true}}),
		"getranges": func(ctx context.Context, st blob.Blob) ([]byte, error) {
			objs, err := st.GetRanges(ctx, theKey, []blob.Range{blob.Span(0, p), blob.Span(p, p), blob.Span(2*p, 2*p)}, nil)
			var data []byte
			for _, o := range objs {
				data = append(data, o.Data...)
			}
			return data, err
		},
	}
}

// swapDuring replaces the object after request 1, 2, 3 ... until the read comes to its end before, and returns how often.
func (target *Target) swapDuring(t *testing.T, what string, shape fakehttp.Shape, byRange, cut bool, read wholeRead) int {
	for nth := 1; ; nth++ {
		c := target.newChange(t, shape, byRange)
		f := fakehttp.Fault{Match: target.match(Read), Nth: nth, Then: c.swap}
		if cut {
			f.Cut = &fakehttp.Cut{At: 100}
		}
		in := c.s.HTTP().Inject(f)
		data, err := read(t.Context(), c.st)
		switch {
		case err != nil:
			t.Errorf("%s, after request %d: %v\n%s", what, nth, err, c.s.HTTP().Log())
		case string(data) != string(c.v1) && string(data) != string(c.v2):
			t.Errorf("%s, after request %d: neither the one nor the other version\n%s", what, nth, c.s.HTTP().Log())
		}
		if in.Hits() == 0 {
			return nth - 1
		}
	}
}

// change is an object v1 of four parts that swap replaces by v2, a minute later by the server's clock.
type change struct {
	s      Service
	st     blob.Blob
	v1, v2 []byte
	swap   func()
}

func (target *Target) newChange(t *testing.T, shape fakehttp.Shape, byRange bool) *change {
	t.Helper()
	var late atomic.Int64
	p := target.PartSize
	c := &change{v1: content(4 * p), v2: content(4*p + 256)[256:]}
	c.s = target.start(t, Setup{
		Shape: shape,
		Now:   func() time.Time { return time.Now().Add(time.Duration(late.Load())) },
	})
	c.s.Put(theKey, inParts(c.v1, p), nil)
	c.st = target.open(t, c.s, Config{ReadRanges: byRange, Gap: -1})
	c.swap = func() {
		late.Add(int64(time.Minute))
		c.s.Put(theKey, inParts(c.v2, p), nil)
	}
	return c
}

func (target *Target) ofAVersion(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		for nth := 1; ; nth++ {
			c := target.newChange(t, fakehttp.Shape{IgnoreIfMatch: ignore}, false)
			version, _ := c.s.Object(theKey)
			in := c.s.HTTP().Inject(fakehttp.Fault{Match: target.match(Read), Nth: nth, Then: c.swap})
			obj, err := c.st.Get(t.Context(), theKey, &blob.GetOptions{If: blob.IfVersion(version.Version)})
			switch {
			case err == nil && string(obj.Data) != string(c.v1):
				t.Errorf("replaced after request %d: something else than the version", nth)
			case err != nil && !errors.Is(err, blob.ErrPrecondition):
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

// keepsChanging: ErrChanged after a bounded number of requests. Each read has a server of its own: what a read gives up may arrive when the
// next one has begun.
func (target *Target) keepsChanging(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		for restarts, want := range map[int]int{0: 4 * 4, -1: 4, 1: 2 * 4} {
			s := target.start(t, Setup{Shape: fakehttp.Shape{IgnoreIfMatch: ignore}})
			var n atomic.Int64
			put := func() {
				data := content(4 * target.PartSize)
				copy(data, fmt.Sprint(n.Add(1)))
				s.Put(theKey, inParts(data, target.PartSize), nil)
			}
			put()
			s.HTTP().Inject(fakehttp.Fault{Match: target.match(Read), Times: -1, Then: put})
			if _, err := target.open(t, s, Config{Restarts: restarts}).Get(t.Context(), theKey, nil); !errors.Is(err, blob.ErrChanged) {
				t.Errorf("Restarts %d: %v", restarts, err)
			}
			if n := len(s.HTTP().Log()); n > want {
				t.Errorf("%d requests with Restarts %d, want at most %d:\n%s", n, restarts, want, s.HTTP().Log())
			}
		}
	}
}
