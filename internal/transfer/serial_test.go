package transfer

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wholeblob/wholeblob/blob"
)

// Chunks of the tests have 128 bytes: P, rounded to the multiple of gcsLike.

// lose loses the reply of the nth request of a verb; nth 0: of all.
func lose(verb string, nth int) func(context.Context, request) error {
	return func(_ context.Context, r request) error {
		if r.verb == verb && (nth == 0 || r.nth == nth) {
			return lost()
		}
		return nil
	}
}

// wantRequests compares the requests since the last look, in their order.
func wantRequests(t testing.TB, s *service, want ...string) {
	t.Helper()
	if got := s.takeLog(); !slices.Equal(got, want) {
		t.Errorf("requests:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// The last chunk commits: no request more, and it is never empty but for an empty object.
func TestRequestsOfSerialSets(t *testing.T) {
	for size, want := range map[int][]string{
		0:   {"begin 0", "commit 1: 0+0 of 0"},
		1:   {"begin 1", "commit 1: 0+1 of 1"},
		128: {"begin 128", "commit 1: 0+128 of 128"},
		129: {"begin 129", "part 1: 0+128 of 129", "commit 2: 128+1 of 129"},
		256: {"begin 256", "part 1: 0+128 of 256", "commit 2: 128+128 of 256"},
		300: {"begin 300", "part 1: 0+128 of 300", "part 2: 128+128 of 300", "commit 3: 256+44 of 300"},
	} {
		s := serve(t, gcsLike())
		if _, err := set(open(t, s, func(o *Options) { o.Threshold = 0 }), blob.Bytes(content(size)), nil); err != nil {
			t.Fatal(err)
		}
		wantRequests(t, s, want...)
		wantBytes(t, s.object().data, content(size))
	}
}

// After a lost reply of a chunk the service is asked, and what it holds is not sent again, also where that is less than the chunk.
func TestLostReplyOfAChunk(t *testing.T) {
	for _, c := range []struct {
		keep int
		then []string
	}{
		{128, []string{"commit 3: 256+44 of 300"}},
		{64, []string{"part 2: 192+64 of 300", "commit 3: 256+44 of 300"}},
		{0, []string{"part 2: 128+128 of 300", "commit 3: 256+44 of 300"}},
		{10, []string{"part 3: 138+128 of 300", "commit 4: 266+34 of 300"}}, // an odd number: the length is still one that is allowed
	} {
		for _, o := range []blob.SetOptions{{}, {If: blob.IfAbsent()}, {AtMostOnce: true}} {
			s := serve(t, gcsLike())
			s.after = lose("part", 2)
			s.keep = func(r request, n int) int {
				if r.verb == "part" && r.nth == 2 {
					return c.keep
				}
				return n
			}
			if _, err := set(open(t, s), blob.Bytes(content(300)), &o); err != nil {
				t.Fatal(err)
			}
			log := s.takeLog()
			if want := append([]string{"part 2: 128+128 of 300", "progress of 300"}, c.then...); len(log) < 2 || !equalVerbs(log[2:], want) {
				t.Errorf("%d kept: %q", c.keep, log)
			}
			wantBytes(t, s.object().data, content(300))
		}
	}
}

// equalVerbs compares requests but for their conditions.
func equalVerbs(got, want []string) bool {
	return slices.EqualFunc(got, want, func(a, b string) bool { return a == b || strings.HasPrefix(a, b+" If") })
}

// A service may keep less than it was sent and say so: the rest is sent at once, in chunks of a size that is allowed.
func TestPartialPersistence(t *testing.T) {
	for _, keep := range []int{64, 100, 1} {
		s := serve(t, gcsLike())
		s.keep = func(r request, n int) int {
			if r.verb == "part" {
				return keep
			}
			return n
		}
		if _, err := set(open(t, s), blob.Bytes(content(500)), nil); err != nil {
			t.Fatal(keep, err)
		}
		wantBytes(t, s.object().data, content(500))
		if keep == 64 { // the borders stay where they are
			wantRequests(t, s, "begin 500", "part 1: 0+128 of 500", "part 1: 64+64 of 500", "part 2: 128+128 of 500", "part 2: 192+64 of 500",
				"part 3: 256+128 of 500", "part 3: 320+64 of 500", "commit 4: 384+116 of 500")
		}
		if s.requests("progress") > 0 || s.requests("commit") != 1 {
			t.Errorf("%d of each chunk kept: %q", keep, s.takeLog())
		}
	}
}

// A chunk is sent as often as the policy says, and asked about no more often; progress begins the count anew.
func TestAttemptsOfAChunkAreBounded(t *testing.T) {
	for _, c := range []struct {
		what        string
		edit        func(*service)
		parts, asks int
	}{
		{"every reply lost", func(s *service) {
			s.keep = func(request, int) int { return 0 }
			s.after = lose("part", 0)
		}, 3, 2},
		{"nothing is kept", func(s *service) { s.keep = func(request, int) int { return 0 } }, 3, 0},
		{"no answer to the question", func(s *service) {
			s.after = lose("part", 0)
			s.before = lose("progress", 0)
		}, 1, 2},
		{"progress at first", func(s *service) {
			s.after = lose("part", 0)
			s.keep = func(r request, _ int) int {
				if r.nth <= 1 {
					return 64
				}
				return 0
			}
		}, 1 + 3, 3},
	} {
		for _, o := range []blob.SetOptions{{}, {If: blob.IfAbsent()}} {
			s := serve(t, gcsLike())
			c.edit(s)
			st := open(t, s)
			_, err := set(st, blob.Bytes(content(500)), &o)
			e := wantKind(t, err, blob.ErrUnavailable)
			if !e.Exhausted || e.Outcome != blob.NotApplied {
				t.Errorf("%s: %#v", c.what, e)
			}
			if err := st.Close(t.Context()); err != nil || s.openUploads() != 0 {
				t.Errorf("%s: %v, %d sessions left", c.what, err, s.openUploads())
			}
			if s.requests("part") != c.parts || s.requests("progress") != c.asks {
				t.Errorf("%s: %d chunks and %d questions, want %d and %d", c.what, s.requests("part"), s.requests("progress"), c.parts, c.asks)
			}
		}
	}
}

// A question whose reply is lost is put again.
func TestQuestionIsPutAgain(t *testing.T) {
	s := serve(t, gcsLike())
	s.after = func(ctx context.Context, r request) error {
		return errors.Join(lose("part", 1)(ctx, r), lose("progress", 1)(ctx, r))
	}
	if _, err := set(open(t, s), blob.Bytes(content(300)), nil); err != nil {
		t.Fatal(err)
	}
	wantRequests(t, s, "begin 300", "part 1: 0+128 of 300", "progress of 300", "progress of 300", "part 2: 128+128 of 300", "commit 3: 256+44 of 300")
}

// A session that is gone, or says what cannot be, is used up: the whole is sent again in another one, a bounded number of times, and
// what was the matter is no secret.
func TestSpentSessions(t *testing.T) {
	for what, edit := range map[string]func(s *service, broken func(request) bool){
		"gone for a chunk": func(s *service, broken func(request) bool) {
			s.before = func(_ context.Context, r request) error {
				if r.part == 2 && broken(r) {
					return refusal(blob.ErrNotFound)
				}
				return nil
			}
		},
		"gone for the commit": func(s *service, broken func(request) bool) {
			s.before = func(_ context.Context, r request) error {
				if r.verb == "commit" && broken(r) {
					return refusal(blob.ErrNotFound)
				}
				return nil
			}
		},
		"gone for a question": func(s *service, broken func(request) bool) {
			s.before = func(_ context.Context, r request) error {
				if r.verb == "progress" && broken(r) {
					return refusal(blob.ErrNotFound)
				}
				return nil
			}
			s.after = lose("part", 0)
		},
		"backwards": func(s *service, broken func(request) bool) {
			s.received = func(n int64) int64 {
				if n == 256 && broken(request{}) {
					return 64
				}
				return n
			}
		},
		"beyond what was sent": func(s *service, broken func(request) bool) {
			s.received = func(n int64) int64 {
				if broken(request{}) {
					return n + 1
				}
				return n
			}
		},
		"backwards in an answer": func(s *service, broken func(request) bool) {
			s.after = func(_ context.Context, r request) error {
				if r.part == 2 && r.verb == "part" && broken(r) {
					return lost()
				}
				return nil
			}
			s.progress = func(p *Progress) { p.Received = 0 }
		},
	} {
		for _, times := range []int{1, 2, 9} {
			for _, o := range []blob.SetOptions{{}, {If: blob.IfAbsent()}} {
				s := serve(t, gcsLike())
				n := 0
				edit(s, func(request) bool { n++; return n <= times })
				st := open(t, s)
				_, err := set(st, blob.Bytes(content(300)), &o)
				if times <= 2 {
					if err != nil {
						t.Fatalf("%s, %d times: %v", what, times, err)
					}
					wantBytes(t, s.object().data, content(300))
				} else {
					wantKind(t, err, blob.ErrConflict)
					wantOutcome(t, err, blob.NotApplied)
					if !errors.Is(err, errSpent) || s.object() != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				if got, want := s.requests("begin"), 1+min(times, 2); got != want {
					t.Errorf("%s, %d times: %d sessions, want %d", what, times, got, want)
				}
				if err := st.Close(t.Context()); err != nil || s.openUploads() != 0 {
					t.Errorf("%s: %v, %d sessions left", what, err, s.openUploads())
				}
			}
		}
	}
}

// A source that fails, ends early or panics never makes an object, wherever that happens, and its session is aborted. A service that
// compares sums never even gets the last chunk.
func TestFailingSourceNeverFinalises(t *testing.T) {
	broken := errors.New("broken")
	for _, at := range []int64{0, 60, 180, 299} {
		for _, bad := range []badSource{{at, broken}, {at, nil}, {at, io.EOF}, {at, io.ErrUnexpectedEOF}} {
			for _, sums := range []bool{true, false} {
				p := gcsLike()
				p.traits.Sums = sums
				s := serve(t, p)
				old := s.put("k", []byte("old"))
				st := open(t, s)
				_, err := set(st, blob.ReaderAt(bad, 300), nil)
				var src *blob.SourceError
				if !errors.As(err, &src) {
					t.Error(err)
				}
				wantOutcome(t, err, blob.NotApplied)
				if err := st.Close(t.Context()); err != nil || s.openUploads() != 0 || s.requests("abort") != 1 {
					t.Errorf("%v, %d sessions left", err, s.openUploads())
				}
				if s.object().version != old || s.requests("progress") > 0 || sums && s.requests("commit") > 0 || at < 256 && s.requests("commit") > 0 {
					t.Errorf("at %d: %q", at, s.takeLog())
				}
			}
		}
	}
}

// A cancel in the middle of a chunk aborts the session, on a context that has not ended.
func TestCancelledChunk(t *testing.T) {
	for _, c := range []struct {
		verb    string
		whole   bool
		outcome blob.Outcome
		aborts  int
	}{{"part", true, blob.NotApplied, 1}, {"part", false, blob.NotApplied, 1}, {"commit", false, blob.NotApplied, 1}, {"commit", true, blob.Unknown, 0}} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, gcsLike())
			ctx, cancel := contextOf(t)
			s.cut = func(r request) int64 {
				if r.verb == c.verb && r.nth == 1 && !c.whole {
					cancel()
					return 10
				}
				return 1 << 40
			}
			s.before = func(ctx context.Context, r request) error {
				if r.verb == c.verb && c.whole {
					cancel()
					return &blob.Error{Err: ctx.Err()}
				}
				return nil
			}
			st := open(t, s)
			_, err := st.Set(ctx, "k", blob.Bytes(content(300)), nil)
			wantKind(t, err, context.Canceled)
			wantOutcome(t, err, c.outcome)
			synctest.Wait()
			if s.requests("abort") != c.aborts || s.requests("progress") > 0 || s.requests(c.verb) != 1 {
				t.Errorf("%+v: %q", c, s.takeLog())
			}
		})
	}
}
