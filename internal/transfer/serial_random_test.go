package transfer

import (
	"context"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/blob"
)

// Whatever becomes of requests and replies: nil means that the object is there, whole, with the version that was returned; NotApplied
// that it is not, and that no session is left.
func TestSerialUploadsUnderRandomFaults(t *testing.T) {
	outcomes := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		s := serve(t, gcsLike())
		size := rapid.IntRange(100, 700).Draw(rt, "size")
		faults := rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "before", "after", "throttled", "cut", "kept", "gone", "nothing"}), 0, 14).Draw(rt, "faults")
		amount := rapid.IntRange(0, 130).Draw(rt, "amount")
		var mu sync.Mutex
		n, fault := 0, ""
		next := func(r request) string {
			mu.Lock()
			defer mu.Unlock()
			fault = ""
			if n < len(faults) && r.verb != "abort" && r.verb != "begin" {
				fault = faults[n]
				n++
			}
			return fault
		}
		now := func() string { mu.Lock(); defer mu.Unlock(); return fault }
		s.cut = func(r request) int64 { // the first hook of a chunk
			if next(r) == "cut" {
				return int64(amount)
			}
			return 1 << 40
		}
		s.before = func(_ context.Context, r request) error {
			if r.verb == "progress" {
				next(r)
			}
			switch f := now(); {
			case r.verb == "abort" || r.verb == "begin":
			case f == "before":
				return lost()
			case f == "throttled":
				return refusal(blob.ErrThrottled)
			case f == "gone":
				return refusal(blob.ErrNotFound)
			}
			return nil
		}
		s.after = func(_ context.Context, r request) error {
			if now() == "after" && r.verb != "abort" && r.verb != "begin" {
				return lost()
			}
			return nil
		}
		s.keep = func(_ request, n int) int {
			switch now() {
			case "kept":
				return min(n, amount)
			case "nothing":
				return 0
			}
			return n
		}
		o := rapid.SampledFrom([]blob.SetOptions{{}, {If: blob.IfAbsent()}, {AtMostOnce: true}}).Draw(rt, "options")
		st := open(t, s)
		info, err := set(st, blob.Bytes(content(size)), &o)
		if e := st.Close(context.Background()); e != nil {
			rt.Fatal(e)
		}
		switch got := s.object(); {
		case err == nil && (got == nil || string(got.data) != string(content(size)) || got.version != info.Version):
			rt.Fatalf("success without the object: %q", s.takeLog())
		case err != nil && blob.OutcomeOf(err) == blob.NotApplied && (got != nil || s.openUploads() > 0):
			rt.Fatalf("not applied, but there, or a session is left: %v", err)
		case got != nil && string(got.data) != string(content(size)):
			rt.Fatal("an object of other bytes")
		}
		if err == nil {
			outcomes["nil"]++
		} else {
			outcomes[blob.OutcomeOf(err).String()]++
		}
	})
	t.Log(outcomes)
}
