package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// Ranges come back in the caller's order, overlaps and repetitions too, all of one version.
func TestGetRangesKeepsTheOrder(t *testing.T) {
	rs := []blob.Range{blob.Span(200, 20), blob.From(240), blob.Span(0, 250), blob.Span(200, 20), blob.Last(3), blob.Span(5, 0), blob.From(250), {}}
	for name, p := range personalities() {
		s := serve(t, p)
		data := content(250)
		s.put("k", data, 100, 100, 50)
		objs, err := open(t, s).GetRanges(t.Context(), "k", rs, nil)
		if err != nil || len(objs) != len(rs) {
			t.Fatal(name, len(objs), err)
		}
		for i, r := range rs {
			lo, n, _ := r.Resolve(250)
			wantBytes(t, objs[i].Data, data[lo:lo+n])
			if objs[i].Offset != lo || objs[i].Size != 250 || objs[i].Version != "v1" {
				t.Errorf("%s: %v: %+v", name, r, objs[i].Info)
			}
		}
	}
}

// No ranges: no request. One short range: one.
func TestRequestsOfGetRanges(t *testing.T) {
	s := serve(t, s3Like())
	s.put("k", content(250))
	st := open(t, s)
	for _, c := range []struct {
		rs   []blob.Range
		want []string
	}{
		{nil, nil},
		{[]blob.Range{blob.Span(3, 4)}, []string{"read 3+4"}},
		{[]blob.Range{blob.From(240)}, []string{"read 240+100"}},
		{[]blob.Range{blob.Span(3, 4), blob.Span(9, 2)}, []string{"read 3+4", "read 9+2 of v1"}},
		{[]blob.Range{blob.From(240), blob.Last(2)}, []string{"head", "read 240+10"}},
	} {
		if _, err := st.GetRanges(t.Context(), "k", c.rs, nil); err != nil {
			t.Fatal(err)
		}
		wantLog(t, s, c.want...)
	}
}

// All ranges are of one version: a change in between begins the whole anew, a bounded number of times, or is
// ErrPrecondition if the caller asked for a version. Also where the service has no versions.
func TestGetRangesAreOfOneVersion(t *testing.T) {
	for _, versions := range []bool{true, false} {
		for _, ignore := range []bool{true, false} {
			for changes := range 5 {
				s := serve(t, azureLike())
				s.noVersions, s.ignoreVersion = !versions, ignore
				var left atomic.Int32
				left.Store(int32(changes))
				version := s.put("k", bytes.Repeat([]byte{byte(changes)}, 250))
				s.edit = func(r ReadRequest, _ *ReadReply) {
					if n := left.Load(); r.Off == 0 && n > 0 {
						left.Add(-1)
						s.put("k", bytes.Repeat([]byte{byte(n - 1)}, 250))
					}
				}
				rs := []blob.Range{blob.Span(0, 10), blob.Span(200, 10), blob.Span(100, 10)}
				what := fmt.Sprintf("versions %v, ignored %v, %d changes", versions, ignore, changes)
				st := open(t, s)
				objs, err := st.GetRanges(t.Context(), "k", rs, nil)
				if changes > 2 {
					wantKind(t, err, blob.ErrChanged)
				} else if err != nil {
					t.Fatal(what, err)
				} else {
					for _, o := range objs {
						wantBytes(t, o.Data, make([]byte, 10)) // the last version is of zeros
					}
				}
				if versions && changes > 0 {
					_, err = st.GetRanges(t.Context(), "k", rs, &blob.GetOptions{If: blob.IfVersion(version)})
					wantKind(t, err, blob.ErrPrecondition)
				}
			}
		}
	}
}

// An object that is gone after the first range has changed; one that was never there is not found.
func TestGetRangesOfADeletedObject(t *testing.T) {
	s := serve(t, azureLike())
	s.put("k", content(250))
	s.edit = func(ReadRequest, *ReadReply) { _ = s.Delete(context.Background(), "k", blob.Condition{}) }
	st := open(t, s)
	_, err := st.GetRanges(t.Context(), "k", []blob.Range{blob.Span(0, 1), blob.Span(3, 1)}, nil)
	wantKind(t, err, blob.ErrNotFound)
	s.takeLog()
	_, err = st.GetRanges(t.Context(), "k", []blob.Range{blob.Span(0, 1), blob.From(3)}, nil)
	wantKind(t, err, blob.ErrNotFound)
	wantLog(t, s, "head")
}

// MaxGet bounds the sum. Ranges that say their length cost no request to check, the others a Stat.
func TestMaxGetBoundsTheSum(t *testing.T) {
	s := serve(t, s3Like())
	s.put("k", content(250))
	st := open(t, s, func(o *Options) { o.MaxGet = 100 })
	for _, c := range []struct {
		rs   []blob.Range
		head bool
		kind error
	}{
		{[]blob.Range{blob.Span(0, 50), blob.Span(0, 50)}, false, nil},
		{[]blob.Range{blob.Span(0, 50), blob.Span(0, 51)}, true, blob.ErrTooLarge},
		{[]blob.Range{blob.Span(0, 50), blob.Span(240, 51)}, true, nil}, // ten bytes
		{[]blob.Range{blob.Last(50), blob.Last(50)}, false, nil},
		{[]blob.Range{blob.Last(50), blob.From(200)}, true, nil},
		{[]blob.Range{blob.Last(50), blob.From(199)}, true, blob.ErrTooLarge},
		{[]blob.Range{blob.Span(0, 1<<62), blob.Span(0, 1<<62), blob.Span(0, 1<<62)}, true, blob.ErrTooLarge},
		{[]blob.Range{blob.From(149)}, false, blob.ErrTooLarge},
	} {
		_, err := st.GetRanges(t.Context(), "k", c.rs, nil)
		if c.kind != nil {
			wantKind(t, err, c.kind)
		} else if err != nil {
			t.Error(c.rs, err)
		}
		if got := s.takeLog()[0] == "head"; got != c.head {
			t.Errorf("%v: a Stat: %v", c.rs, got)
		}
	}
}

// One bad range fails all, and the others are ended.
func TestOneBadRangeFailsAll(t *testing.T) {
	s := serve(t, s3Like())
	s.put("k", content(250))
	st := open(t, s)
	for _, bad := range []blob.Range{blob.Span(251, 1), blob.From(251)} {
		for _, rs := range [][]blob.Range{{bad, blob.Span(1, 2)}, {blob.Span(1, 2), bad}, {bad}} {
			objs, err := st.GetRanges(t.Context(), "k", rs, nil)
			if e := wantKind(t, err, blob.ErrInvalidRange); objs != nil || e.Op != blob.OpGetRanges || e.Outcome != blob.NotApplied {
				t.Errorf("%v %#v", objs, e)
			}
		}
	}
	s.takeLog()
	for _, rs := range [][]blob.Range{{blob.Span(-1, 1)}, {blob.Span(1, 2), blob.Last(-1)}} {
		_, err := st.GetRanges(t.Context(), "k", rs, nil)
		wantKind(t, err, blob.ErrInvalidOption)
	}
	wantLog(t, s)

	s.stuck = func(r ReadRequest) bool { return r.Off == 100 }
	s.before = func(_ context.Context, r request) error {
		if r.read.Off == 200 {
			<-s.reached
			return refusal(blob.ErrPermission)
		}
		return nil
	}
	_, err := st.GetRanges(t.Context(), "k", []blob.Range{blob.Span(0, 9), blob.Span(100, 9), blob.Span(200, 9)}, nil)
	wantKind(t, err, blob.ErrPermission)
}

// A change of time alone tells versions apart where there are none.
func TestModTimeStandsInForVersions(t *testing.T) {
	t0 := time.Unix(1, 0)
	for _, c := range []struct {
		a, b Head
		same bool
	}{
		{Head{Version: "1"}, Head{Version: "1"}, true},
		{Head{Version: "1"}, Head{Version: "2"}, false},
		{Head{Version: "1", ModTime: t0}, Head{Version: "1", ModTime: t0.Add(1)}, true},
		{Head{Version: "1", ModTime: t0}, Head{ModTime: t0.Add(1)}, false},
		{Head{Version: "1", ModTime: t0}, Head{ModTime: t0}, true},
		{Head{ModTime: t0}, Head{ModTime: t0.UTC()}, true},
		{Head{ModTime: t0}, Head{}, true},
		{Head{}, Head{}, true},
	} {
		if got := sameVersion(c.a, c.b); got != c.same {
			t.Errorf("%+v and %+v: %v", c.a, c.b, got)
		}
	}
}

// An object that is gone for a moment after the first range has changed, and is read again.
func TestGetRangesOfAReplacedObject(t *testing.T) {
	s := serve(t, azureLike())
	s.put("k", content(250))
	s.before = func(_ context.Context, r request) error {
		if r.nth == 2 {
			return refusal(blob.ErrNotFound)
		}
		return nil
	}
	objs, err := open(t, s).GetRanges(t.Context(), "k", []blob.Range{blob.Span(0, 1), blob.Span(30, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantBytes(t, objs[1].Data, content(250)[30:31])
	wantLog(t, s, "read 0+1", "read 30+1 of v1", "read 0+1", "read 30+1 of v1")
}

// Without versions and times a changed size still tells two objects apart.
func TestGetRangesNoticeAChangedSize(t *testing.T) {
	s := serve(t, azureLike())
	s.noVersions = true
	s.put("k", content(250))
	now := content(260)
	s.edit = func(r ReadRequest, rep *ReadReply) {
		rep.ModTime = time.Time{}
		if r.Off == 0 {
			s.put("k", now)
		}
	}
	objs, err := open(t, s).GetRanges(t.Context(), "k", []blob.Range{blob.Span(0, 1), blob.Span(30, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objs {
		if o.Size != 260 {
			t.Errorf("%+v", o.Info)
		}
	}
}

// With a condition a change ends a GetRanges; it is not begun again.
func TestGetRangesUnderAConditionAreNotBegunAgain(t *testing.T) {
	s := serve(t, azureLike())
	v1 := s.put("k", content(250))
	s.edit = func(ReadRequest, *ReadReply) { s.put("k", content(250)) }
	_, err := open(t, s).GetRanges(t.Context(), "k", []blob.Range{blob.Span(0, 1), blob.Span(30, 1)}, &blob.GetOptions{If: blob.IfVersion(v1)})
	wantKind(t, err, blob.ErrPrecondition)
	wantLog(t, s, "read 0+1 of v1", "read 30+1 of v1")
}

// A key that the service cannot hold is not found, without a request.
func TestUnaddressableKeyIsNotFound(t *testing.T) {
	p := s3Like()
	p.traits.Addressable = func(string) bool { return false }
	s := serve(t, p)
	st := open(t, s)
	_, ranges := st.GetRanges(t.Context(), "k", []blob.Range{{}}, nil)
	_, more := st.GetRanges(t.Context(), "k", []blob.Range{{}, {}}, nil)
	_, stat := st.Stat(t.Context(), "k")
	for _, err := range []error{getError(st, nil), getError(st, &blob.GetOptions{Range: blob.Last(0)}), ranges, more, stat} {
		wantKind(t, err, blob.ErrNotFound)
	}
	wantLog(t, s)
}

// With a condition the version is the caller's: another is ErrPrecondition, found at once or between two reads, and nothing starts over.
func TestRangesOfAVersionThatIsGone(t *testing.T) {
	for _, ignored := range []bool{true, false} {
		for _, changes := range []int{1, 2} { // before this read
			s := serve(t, s3Like())
			s.ignoreVersion = ignored
			v := s.put("k", content(1000))
			s.before = func(_ context.Context, r request) error {
				if r.verb == "read" && r.nth == changes {
					s.put("k", content(1000))
				}
				return nil
			}
			_, err := open(t, s, concurrency(1)).GetRanges(t.Context(), "k", []blob.Range{blob.Span(0, 10), blob.Span(900, 10)}, &blob.GetOptions{If: blob.IfVersion(v)})
			wantKind(t, err, blob.ErrPrecondition)
			if errors.Is(err, blob.ErrChanged) || s.requests("read") != changes {
				t.Errorf("ignored %v: %v, %q", ignored, err, s.takeLog())
			}
		}
	}
	s := serve(t, s3Like()) // where replies tell no versions, the time of the change does
	s.ignoreVersion, s.noVersions = true, true
	s.put("k", content(1000))
	s.before = func(_ context.Context, r request) error {
		if r.nth == 2 {
			s.put("k", content(1000))
		}
		return nil
	}
	_, err := open(t, s).GetRanges(t.Context(), "k", []blob.Range{blob.Span(0, 10), blob.Span(900, 10)}, &blob.GetOptions{If: blob.IfVersion("v1")})
	wantKind(t, err, blob.ErrPrecondition)
	wantLog(t, s, "read 0+10 of v1", "read 900+10 of v1")
}

// Options.Restarts bounds all of a GetRanges: a range that has started over that often by itself is not begun again with the others.
func TestRestartsOfRangesAreNotMultiplied(t *testing.T) {
	s := serve(t, azureLike())
	s.ignoreVersion = true
	s.put("k", content(250))
	s.edit = func(ReadRequest, *ReadReply) { s.put("k", content(250)) }
	_, err := open(t, s, concurrency(1)).GetRanges(t.Context(), "k", []blob.Range{blob.Span(0, 250)}, nil)
	wantKind(t, err, blob.ErrChanged)
	if n := s.requests("read"); n != 2*(1+2) {
		t.Errorf("%d reads: %q", n, s.takeLog())
	}
}
