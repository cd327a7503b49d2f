package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// A cut body costs one more request for the bytes that are missing, at their place in the object
// (pingcap/tidb #59694), and leaves no hole of what was in the buffer before (pingcap/tidb #59752).
func TestCutBodyIsResumedWhereItEnded(t *testing.T) {
	for _, c := range []struct {
		what  string
		p     personality
		parts []int
		r     blob.Range
		cut   string // the request whose body is cut
		at    int64
		then  string
	}{
		{"part 1", s3Like(), []int{100, 100, 50}, blob.Range{}, "part 1", 30, "30+70 of v1"},
		{"part 2", s3Like(), []int{100, 100, 50}, blob.Range{}, "part 2 of v1", 30, "130+70 of v1"},
		{"part 2 before its first byte", s3Like(), []int{100, 100, 50}, blob.Range{}, "part 2 of v1", 0, "part 2 of v1"},
		{"the first range", azureLike(), nil, blob.From(10), "10+100", 1, "11+99 of v1"},
		{"a later range", azureLike(), nil, blob.From(10), "110+100 of v1", 99, "209+1 of v1"},
		{"a suffix", s3Like(), nil, blob.Last(120), "last 100", 10, "160+90 of v1"},
		{"a huge part", s3Like(), nil, blob.Range{}, "part 1", 60, "60+40 of v1"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := serve(t, c.p)
			data := content(250)
			s.put("k", data, c.parts...)
			var cuts atomic.Int32
			s.edit = func(r ReadRequest, rep *ReadReply) {
				if describe(r) == c.cut && cuts.Add(1) == 1 {
					rep.replace(cutAfter(c.at))
				}
			}
			lo, n, _ := c.r.Resolve(250)
			dst := bytes.Repeat([]byte{0xAA}, int(n))
			plain := open(t, s)
			obj := get(t, plain, &blob.GetOptions{Range: c.r, Dst: dst})
			wantBytes(t, obj.Data, data[lo:lo+n])
			log := s.takeLog()
			again := 0
			for _, l := range log {
				if l == "read "+c.then {
					again++
				}
			}
			if want := map[bool]int{true: 2, false: 1}[c.cut == c.then]; again != want || cuts.Load() == 0 {
				t.Errorf("%d requests for %s, want %d: %q", again, c.then, want, log)
			}
		})
	}
}

// A body that always ends early is ErrTruncated after as many attempts as the policy has, and progress begins the
// count anew.
func TestBodyThatAlwaysEndsEarlyIsTruncated(t *testing.T) {
	s := serve(t, s3Like())
	s.put("k", content(90))
	s.edit = func(r ReadRequest, rep *ReadReply) {
		rep.replace(func(b io.Reader) io.Reader { return io.LimitReader(b, min(10, max(0, 50-r.Off))) })
	}
	err := getError(open(t, s), nil)
	e := wantKind(t, err, blob.ErrTruncated)
	if !e.Exhausted || e.Outcome != blob.NotApplied || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%#v", e)
	}
	if got := s.requests("read"); got != 5+3 { // five that bring ten bytes, then three that bring none
		t.Errorf("%d requests", got)
	}
}

// An object that changes is read again from its start, a bounded number of times: then ErrChanged. Never are
// bytes of two versions mixed (duckdb/duckdb-httpfs #111), also where the service ignores the precondition or has no
// versions to compare.
func TestChangedObject(t *testing.T) {
	for name, prepare := range map[string]func(*service){
		"precondition":         func(*service) {},
		"ignored precondition": func(s *service) { s.ignoreVersion = true },
		"no versions":          func(s *service) { s.noVersions = true },
		"removed, then back": func(s *service) {
			s.before = func(_ context.Context, r request) error {
				if r.read.Version == "v1" {
					return refusal(blob.ErrNotFound)
				}
				return nil
			}
		},
	} {
		for _, p := range []personality{s3Like(), azureLike()} {
			for _, changes := range []int{1, 2, 3} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, p.traits.Store, changes), func(t *testing.T) {
					s := serve(t, p)
					prepare(s)
					st := open(t, s, concurrency(2))
					old, last := bytes.Repeat([]byte{1}, 250), bytes.Repeat([]byte{2}, 250)
					parts := []int{100, 100, 50}
					s.put("k", old, parts...)
					var left atomic.Int32
					left.Store(int32(changes))
					s.edit = func(r ReadRequest, _ *ReadReply) {
						if n := left.Load(); (r.Part == 1 || r.N > 0 && r.Off == 0) && n > 0 {
							left.Add(-1)
							if n == 1 {
								s.put("k", last, parts...)
							} else {
								s.put("k", old, parts...)
							}
						}
					}
					obj, err := st.Get(t.Context(), "k", nil)
					if changes <= 2 {
						if err != nil {
							t.Fatal(err)
						}
						wantBytes(t, obj.Data, last)
						return
					}
					if e := wantKind(t, err, blob.ErrChanged); e.Exhausted || obj.Data != nil {
						t.Errorf("%#v", e)
					}
				})
			}
		}
	}
}

// A changed size gives it away where neither versions nor times are told.
func TestChangedTotalIsNoticed(t *testing.T) {
	s := serve(t, azureLike())
	s.put("k", content(250))
	s.noVersions = true
	grown := content(260)
	s.edit = func(r ReadRequest, rep *ReadReply) {
		rep.ModTime = time.Time{}
		if r.Off == 0 {
			s.put("k", grown)
		}
	}
	wantBytes(t, get(t, open(t, s), nil).Data, grown)
}

// With If a change is ErrPrecondition, at the start and in the middle, and the read is not begun again.
func TestChangeUnderAConditionIsErrPrecondition(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		for _, r := range []blob.Range{{}, blob.From(10), blob.Last(150), blob.Span(3, 0), blob.From(250)} {
			for _, p := range []personality{s3Like(), azureLike()} {
				s := serve(t, p)
				s.ignoreVersion = ignore
				v1 := s.put("k", content(250), 100, 100, 50)
				st := open(t, s)
				o := &blob.GetOptions{Range: r, If: blob.IfVersion(v1)}
				wantBytes(t, get(t, st, o).Data, get(t, st, &blob.GetOptions{Range: r}).Data)
				if lo, n, _ := r.Resolve(250); n > P {
					byHead := lo == 100 && !p.traits.SuffixReads
					s.edit = func(req ReadRequest, _ *ReadReply) {
						if req.Part == 1 || req.Off == lo && !byHead || req.Suffix > 0 {
							s.put("k", content(250), 100, 100, 50)
						}
					}
					s.head = func(*Head) { s.store("k", content(250), nil, Meta{}) }
					before := s.requests("read")
					wantKind(t, getError(st, o), blob.ErrPrecondition)
					if n := s.requests("read") - before; n > 3 {
						t.Errorf("%v: %d requests", r, n)
					}
					s.edit, s.head = nil, nil
				}
				s.put("k", content(250), 100, 100, 50)
				wantKind(t, getError(st, o), blob.ErrPrecondition)
			}
		}
	}
}
