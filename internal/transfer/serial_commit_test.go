package transfer

import (
	"context"
	"errors"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// A lost reply of the last chunk is made good by asking, whatever the conditions: the session is the proof. It is not sent again.
func TestLostReplyOfTheLastChunk(t *testing.T) {
	for _, o := range []blob.SetOptions{{}, {If: blob.IfAbsent()}, {If: blob.IfVersion("v1")}, {AtMostOnce: true}} {
		s := serve(t, gcsLike())
		if _, pinned := o.If.Version(); pinned {
			s.put("k", []byte("old"))
		}
		s.after = lose("commit", 1)
		info, err := set(open(t, s), blob.Bytes(content(300)), &o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if s.requests("commit") != 1 || s.requests("progress") != 1 || s.requests("begin") != 1 || s.requests("abort") != 0 {
			t.Errorf("%+v: %q", o, s.takeLog())
		}
		wantBytes(t, s.object().data, content(300))
		if info.Version != s.object().version {
			t.Errorf("version %q, stored %q", info.Version, s.object().version)
		}
	}
}

// A commit that did not arrive, or only in part, is sent again from where the session ends.
func TestLastChunkIsSentAgainFromWhereTheSessionEnds(t *testing.T) {
	for keep, want := range map[int]string{0: "commit 2: 128+100 of 228", 64: "commit 2: 192+36 of 228", 7: "commit 2: 135+93 of 228"} {
		for _, reply := range []func(*service){
			func(*service) {}, // "kept some of it"
			func(s *service) { s.after = lose("commit", 1) },        // nothing
			func(s *service) { s.cut = cutFirst("commit", keep+1) }, // the connection, half-way
		} {
			s := serve(t, gcsLike())
			reply(s)
			s.keep = func(r request, n int) int {
				if r.verb == "commit" && r.nth == 1 {
					return keep
				}
				return n
			}
			if _, err := set(open(t, s), blob.Bytes(content(228)), nil); err != nil {
				t.Fatal(err)
			}
			wantRequests(t, s, "begin 228", "part 1: 0+128 of 228", "commit 2: 128+100 of 228", "progress of 228", want)
			wantBytes(t, s.object().data, content(228))
		}
	}
}

func cutFirst(verb string, n int) func(request) int64 {
	return func(r request) int64 {
		if r.verb == verb && r.nth == 1 {
			return int64(n)
		}
		return 1 << 40
	}
}

// A session that is gone after a commit in doubt may have made the object: only a write that may happen twice is sent again.
func TestSessionGoneAfterACommitInDoubt(t *testing.T) {
	for _, c := range []struct {
		o     blob.SetOptions
		works bool
	}{{blob.SetOptions{}, true}, {blob.SetOptions{If: blob.IfAbsent()}, false}, {blob.SetOptions{AtMostOnce: true}, false}} {
		s := serve(t, gcsLike())
		s.after = lose("commit", 1)
		s.before = func(_ context.Context, r request) error {
			if r.verb == "progress" {
				return refusal(blob.ErrNotFound)
			}
			return nil
		}
		_, err := set(open(t, s), blob.Bytes(content(300)), &c.o)
		if (err == nil) != c.works {
			t.Errorf("%+v: %v", c.o, err)
		}
		if err != nil {
			wantOutcome(t, err, blob.Unknown)
			if errors.Is(err, blob.ErrExists) || s.requests("begin") != 1 || s.requests("abort") != 0 {
				t.Errorf("%+v: %v, %q", c.o, err, s.takeLog())
			}
		}
	}
}

// When nothing tells what became of the last chunk, the outcome is Unknown, and the session is left alone.
func TestCommitInDoubt(t *testing.T) {
	for what, c := range map[string]struct {
		edit          func(*service)
		commits, asks int
	}{
		"no reply at all":           {func(s *service) { s.before = lose("commit", 0) }, 3, 2},
		"no answer to the question": {func(s *service) { s.after, s.before = lose("commit", 0), lose("progress", 0) }, 1, 2},
		"never committed":           {func(s *service) { s.slow = true }, 1, 1 + 3}, // the first question shows that it has all
		"refused, and then the question, which may commit": {func(s *service) {
			s.after = func(_ context.Context, r request) error {
				switch r.verb {
				case "commit":
					return refusal(blob.ErrThrottled)
				case "progress":
					return lost()
				}
				return nil
			}
		}, 1, 2},
	} {
		for _, o := range []blob.SetOptions{{}, {If: blob.IfAbsent()}} {
			s := serve(t, gcsLike())
			c.edit(s)
			st := open(t, s)
			_, err := set(st, blob.Bytes(content(300)), &o)
			e := wantKind(t, err, blob.ErrUnavailable)
			if e.Outcome != blob.Unknown || !e.Exhausted {
				t.Errorf("%s: %#v", what, e)
			}
			if err := st.Close(t.Context()); err != nil || s.requests("abort") > 0 {
				t.Errorf("%s: %v, %d aborts", what, err, s.requests("abort"))
			}
			if s.requests("commit") != c.commits || s.requests("progress") != c.asks || s.requests("begin") != 1 {
				t.Errorf("%s: %q", what, s.takeLog())
			}
		}
	}
}

// A last chunk that was never handed over whole cannot have been committed, and its session is aborted.
func TestCommitThatWasNotSentWholeIsNotApplied(t *testing.T) {
	s := serve(t, gcsLike())
	s.cut = func(r request) int64 {
		if r.verb == "commit" {
			return 10
		}
		return 1 << 40
	}
	s.before = lose("progress", 0)
	st := open(t, s)
	_, err := set(st, blob.Bytes(content(300)), &blob.SetOptions{If: blob.IfAbsent()})
	wantKind(t, err, blob.ErrUnavailable)
	wantOutcome(t, err, blob.NotApplied)
	if err := st.Close(t.Context()); err != nil || s.openUploads() != 0 {
		t.Error(err, s.takeLog())
	}
}

// A refusal of the condition after a commit in doubt may be the work of that commit: the session is asked once more.
func TestNoWriteMeetsItself(t *testing.T) {
	for _, own := range []bool{true, false} {
		s := serve(t, gcsLike())
		s.before = func(_ context.Context, r request) error {
			if r.verb != "commit" {
				return nil
			}
			if r.nth == 1 {
				return lost() // and on its way
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if own { // it lands now
				for _, u := range s.mu.uploads {
					u.data = content(300)
					u.version = s.store("k", u.data, nil, u.begin.Meta)
				}
			} else {
				s.store("k", []byte("somebody else's"), nil, Meta{})
			}
			return refusal(blob.ErrExists)
		}
		_, err := set(open(t, s), blob.Bytes(content(300)), &blob.SetOptions{If: blob.IfAbsent()})
		if own {
			if err != nil {
				t.Error(err)
			}
		} else {
			wantKind(t, err, blob.ErrExists)
			wantOutcome(t, err, blob.Unknown) // the first may yet land, if the other's goes
		}
		if s.requests("commit") != 2 || s.requests("progress") != 2 {
			t.Errorf("%q", s.takeLog())
		}
	}
}

// While nobody can tell whose object it is, the error does not say that it is another's.
func TestDoubtIsNoConflict(t *testing.T) {
	s := serve(t, gcsLike())
	s.before = func(_ context.Context, r request) error {
		switch {
		case r.verb == "commit" && r.nth > 1:
			return refusal(blob.ErrExists)
		case r.verb == "commit", r.verb == "progress" && r.nth > 1:
			return lost()
		}
		return nil
	}
	_, err := set(open(t, s), blob.Bytes(content(300)), &blob.SetOptions{If: blob.IfAbsent()})
	wantKind(t, err, blob.ErrUnavailable)
	wantOutcome(t, err, blob.Unknown)
	if errors.Is(err, blob.ErrExists) {
		t.Error(err)
	}
}

// A question that would have committed can be refused for the write's condition.
func TestQuestionThatIsRefused(t *testing.T) {
	for cond, kind := range map[blob.Condition]error{blob.IfAbsent(): blob.ErrExists, blob.IfVersion("v1"): blob.ErrPrecondition} {
		s := serve(t, gcsLike())
		if !cond.Absent() {
			s.put("k", nil)
		}
		s.before = func(_ context.Context, r request) error {
			switch r.verb {
			case "commit":
				return lost()
			case "progress":
				return refusal(blob.ErrPrecondition)
			}
			return nil
		}
		_, err := set(open(t, s), blob.Bytes(content(300)), &blob.SetOptions{If: cond})
		wantKind(t, err, kind)
		wantOutcome(t, err, blob.Unknown)
	}
}

// A service that commits before it has the last chunk has made an object of less: the loudest error there is.
func TestSessionCommittedEarly(t *testing.T) {
	s := serve(t, gcsLike())
	s.after = lose("part", 1)
	s.progress = func(p *Progress) { p.Done = true }
	_, err := set(open(t, s), blob.Bytes(content(300)), nil)
	wantKind(t, err, blob.ErrCorrupt)
	wantOutcome(t, err, blob.Unknown)
	if s.requests("abort") > 0 || s.requests("begin") != 1 || s.requests("progress") != 1 {
		t.Errorf("%q", s.takeLog())
	}
}

// The barrier before the last chunk.
func TestLastChunk(t *testing.T) {
	for _, c := range []struct {
		received, total int64
		ok              bool
	}{
		{0, 0, true}, {0, 1, true}, {0, 128, true}, {128, 129, true}, {128, 256, true}, {100, 300, true},
		{128, 128, false}, {129, 128, false}, {-1, 100, false}, {0, 256, false}, {0, 1000, false},
	} {
		if err := lastChunk(c.received, c.total, 128); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
