package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// Absence is success, whatever the service says about it; a condition on an absent key too.
func TestDelete(t *testing.T) {
	for name, p := range personalities() {
		s := serve(t, p)
		st := open(t, s)
		v1 := s.put("k", content(3))
		v2 := s.put("k", content(3))
		del := func(c blob.Condition) error { return st.Delete(t.Context(), "k", &blob.DeleteOptions{If: c}) }
		e := wantKind(t, del(blob.IfVersion(v1)), blob.ErrPrecondition)
		if e.Outcome != blob.NotApplied || s.object() == nil {
			t.Errorf("%s: %#v", name, e)
		}
		if err := del(blob.IfVersion(v2)); err != nil || s.object() != nil {
			t.Error(name, err)
		}
		for _, c := range []blob.Condition{{}, blob.IfVersion(v2)} {
			if err := del(c); err != nil {
				t.Error(name, err)
			}
		}
	}
}

// A Delete that nobody may repeat is not repeated after a lost reply; others are, and what then is gone was deleted.
func TestDeleteAfterALostReply(t *testing.T) {
	for _, c := range []struct {
		o    blob.DeleteOptions
		once bool
	}{{blob.DeleteOptions{}, false}, {blob.DeleteOptions{AtMostOnce: true}, true}, {blob.DeleteOptions{If: blob.IfVersion("v1")}, true}} {
		s := serve(t, azureLike())
		s.put("k", content(3))
		s.after = func(_ context.Context, r request) error {
			if r.nth == 1 {
				return lost()
			}
			return nil
		}
		err := open(t, s).Delete(t.Context(), "k", &c.o)
		if c.once {
			wantOutcome(t, err, blob.Unknown)
			wantKind(t, err, blob.ErrUnavailable)
		} else if err != nil {
			t.Error(err)
		}
		if got, want := s.requests("delete"), map[bool]int{true: 1, false: 2}[c.once]; got != want {
			t.Errorf("%+v: %d requests", c.o, got)
		}
	}
}

func deleteAll(t testing.TB, st *Store, keys ...string) map[string]*blob.Error {
	t.Helper()
	failed := map[string]*blob.Error{}
	err := st.DeleteAll(t.Context(), keys)
	if err == nil {
		return failed
	}
	var d *blob.DeleteError
	if !errors.As(err, &d) {
		t.Fatal(err)
	}
	for _, f := range d.Failed {
		if failed[f.Key] != nil || !slices.Contains(keys, f.Key) {
			t.Errorf("%q is named twice, or was not asked for", f.Key)
		}
		e := wantKind(t, f.Err, nil)
		if e.Key != f.Key || e.Op != blob.OpDeleteAll {
			t.Errorf("%#v", e)
		}
		failed[f.Key] = &e
	}
	return failed
}

// Each key once, in as few requests as the service allows, alone where a batch cannot name it, and none for
// a key that the service cannot hold.
func TestRequestsOfDeleteAll(t *testing.T) {
	p := s3Like()
	p.traits.Batchable = func(key string) bool { return !strings.Contains(key, "!") }
	p.traits.Addressable = func(key string) bool { return !strings.Contains(key, "?") }
	s := serve(t, p)
	st := open(t, s)
	for _, c := range []struct{ keys, want string }{
		{"", ""},
		{"a", "batch a"},
		{"a b a a b", "batch a b"},
		{"a b c", "batch a b c"},
		{"a b c d", "batch a b c|batch d"},
		{"a b c d e f g", "batch a b c|batch d e f|batch g"},
		{"a x! b y!", "batch a b|delete x!|delete y!"},
		{"x!", "delete x!"},
		{"a b? c", "batch a c"},
		{"b?", ""},
	} {
		if failed := deleteAll(t, st, strings.Fields(c.keys)...); len(failed) > 0 {
			t.Error(failed)
		}
		var want []string
		if c.want != "" {
			want = strings.Split(c.want, "|")
		}
		wantLog(t, s, want...)
	}
	if err := st.Delete(t.Context(), "b?", nil); err != nil {
		t.Error(err)
	}
	wantLog(t, s)
	for _, c := range []struct {
		p    personality
		want []string
	}{{azureLike(), []string{"delete p/a", "delete p/b"}}, {s3Like(), []string{"batch p/a p/b"}}} {
		s := serve(t, c.p)
		s.put("p/a", nil)
		if failed := deleteAll(t, open(t, s, func(o *Options) { o.Prefix = "p/" }), "a", "b", "a"); len(failed) > 0 {
			t.Error(failed)
		}
		wantLog(t, s, c.want...)
		wantKeys(t, s.keys(), nil)
	}
}

// Of a batch only the keys that failed for the moment are tried again; each of the others that failed is named with its
// error (Opndrive/opndrive #73).
func TestErrorsByKey(t *testing.T) {
	s := serve(t, s3Like())
	var asked [][]string
	s.batch = func(nth int, keys []string) ([]error, error) {
		asked = append(asked, keys)
		errs := make([]error, len(keys))
		for i, k := range keys {
			switch {
			case k == "denied":
				errs[i] = refusal(blob.ErrPermission)
			case k == "gone":
				errs[i] = refusal(blob.ErrNotFound)
			case k == "slow" && nth < 3:
				errs[i] = refusal(blob.ErrThrottled)
			}
		}
		return errs, nil
	}
	failed := deleteAll(t, open(t, s), "denied", "gone", "slow")
	if e := failed["denied"]; len(failed) != 1 || !errors.Is(e, blob.ErrPermission) || e.Outcome != blob.NotApplied {
		t.Error(failed)
	}
	if want := "[[denied gone slow] [slow] [slow]]"; fmt.Sprint(asked) != want {
		t.Errorf("%v, want %s", asked, want)
	}
}

// Progress begins the count of attempts anew; without any it ends, and what is left is named.
func TestThrottledKeysEndInAnError(t *testing.T) {
	for _, kind := range []error{blob.ErrThrottled, blob.ErrUnavailable, blob.ErrConflict} {
		s := serve(t, s3Like())
		s.batch = func(nth int, keys []string) ([]error, error) {
			errs := make([]error, len(keys))
			for i, k := range keys {
				if k == "b" || nth == 1 && k == "c" {
					errs[i] = refusal(kind)
				}
			}
			return errs, nil
		}
		failed := deleteAll(t, open(t, s), "a", "b", "c")
		if e := failed["b"]; len(failed) != 1 || !errors.Is(e, kind) || e.Outcome != blob.NotApplied || !e.Exhausted {
			t.Error(failed)
		}
		if got := s.requests("batch"); got != 2+3 {
			t.Errorf("%v: %d requests", kind, got)
		}
	}
}

// A reply that cannot be read leaves every key of its batch Unknown, and no other batch's.
func TestUnreadableReplyIsUnknownForAll(t *testing.T) {
	s := serve(t, s3Like())
	s.batch = func(_ int, keys []string) ([]error, error) {
		if keys[0] == "a" {
			return nil, lost()
		}
		return make([]error, len(keys)), nil
	}
	failed := deleteAll(t, open(t, s), "a", "b", "c", "d")
	if len(failed) != 3 || failed["d"] != nil {
		t.Error(failed)
	}
	for _, e := range failed {
		if e.Outcome != blob.Unknown || !errors.Is(e, blob.ErrUnavailable) {
			t.Errorf("%#v", e)
		}
	}
	if got := s.requests("batch"); got != 3+1 {
		t.Errorf("%d requests", got)
	}
}

// A key that is refused after an attempt with a lost reply may have been deleted by that one.
func TestRefusedKeyAfterALostReplyIsUnknown(t *testing.T) {
	for name, first := range map[string]func([]error) ([]error, error){
		"the whole reply": func([]error) ([]error, error) { return nil, lost() },
		"the key's":       func(errs []error) ([]error, error) { errs[0] = lost(); return errs, nil },
	} {
		s := serve(t, s3Like())
		s.batch = func(nth int, keys []string) ([]error, error) {
			errs := make([]error, len(keys))
			if nth == 1 {
				return first(errs)
			}
			errs[0] = refusal(blob.ErrPermission)
			return errs, nil
		}
		failed := deleteAll(t, open(t, s), "a", "b")
		if e := failed["a"]; len(failed) != 1 || e.Outcome != blob.Unknown || !errors.Is(e, blob.ErrPermission) {
			t.Errorf("%s: %v", name, failed)
		}
	}
}

// An unknown outcome of one key is not hidden by what another's last error says.
func TestUnknownKeyBesideAThrottledOne(t *testing.T) {
	s := serve(t, s3Like())
	s.batch = func(_ int, keys []string) ([]error, error) {
		return []error{refusal(blob.ErrThrottled), lost(), refusal(blob.ErrThrottled)}[:len(keys)], nil
	}
	failed := deleteAll(t, open(t, s), "a", "b", "c")
	if e := failed["b"]; len(failed) != 3 || e.Outcome != blob.Unknown {
		t.Error(failed)
	}
}

// A service that turns out to have no batches is sent single requests, for this batch and all that follow.
func TestNoBatchesAfterAll(t *testing.T) {
	s := serve(t, s3Like())
	keys := []string{"a", "b", "c", "d", "e", "f", "g"}
	for _, k := range keys[1:] {
		s.put(k, nil)
	}
	s.batch = func(int, []string) ([]error, error) { return nil, refusal(blob.ErrUnsupported) }
	s.before = func(_ context.Context, r request) error {
		if r.key == "d" {
			return refusal(blob.ErrPermission)
		}
		return nil
	}
	failed := deleteAll(t, open(t, s), keys...)
	if e := failed["d"]; len(failed) != 1 || !errors.Is(e, blob.ErrPermission) {
		t.Error(failed)
	}
	if s.requests("batch") != 1 || s.requests("delete") != 7 {
		t.Errorf("%d batches, %d single", s.requests("batch"), s.requests("delete"))
	}
	wantKeys(t, s.keys(), []string{"d"})
}

// What a batch left open before the service turned out to have none stays open: a key that is refused alone may have been deleted, and
// one that the batch has refused is not asked for again. Each is named once.
func TestDoubtOutlivesTheBatch(t *testing.T) {
	for name, first := range map[string]func(keys []string) ([]error, error){
		"the whole reply": func([]string) ([]error, error) { return nil, lost() },
		"one key's": func([]string) ([]error, error) {
			return []error{lost(), refusal(blob.ErrPermission), refusal(blob.ErrThrottled)}, nil
		},
		"none's": func([]string) ([]error, error) {
			return []error{refusal(blob.ErrThrottled), refusal(blob.ErrPermission), refusal(blob.ErrThrottled)}, nil
		},
	} {
		s := serve(t, s3Like())
		s.batch = func(nth int, keys []string) ([]error, error) {
			if nth == 1 {
				return first(keys)
			}
			return nil, refusal(blob.ErrUnsupported)
		}
		s.before = func(_ context.Context, r request) error {
			if r.verb == "delete" && r.key != "c" {
				return refusal(blob.ErrPermission)
			}
			return nil
		}
		failed := deleteAll(t, open(t, s), "a", "b", "c", "d")
		want := map[string]map[string]blob.Outcome{
			"the whole reply": {"a": blob.Unknown, "b": blob.Unknown, "d": blob.NotApplied},
			"one key's":       {"a": blob.Unknown, "b": blob.NotApplied, "d": blob.NotApplied},
			"none's":          {"a": blob.NotApplied, "b": blob.NotApplied, "d": blob.NotApplied},
		}[name]
		if len(failed) != len(want) {
			t.Errorf("%s: %v", name, failed)
		}
		for k, outcome := range want {
			if e := failed[k]; e == nil || e.Outcome != outcome || !errors.Is(e, blob.ErrPermission) {
				t.Errorf("%s: %s: %v", name, k, e)
			}
		}
		if got, want := s.requests("delete"), map[bool]int{true: 4, false: 3}[name == "the whole reply"]; got != want || s.requests("batch") != 2 {
			t.Errorf("%s: %q", name, s.takeLog())
		}
	}
}

// A refusal that is not for the moment ends a batch at once: nothing was deleted, nothing is tried again.
func TestRefusedBatch(t *testing.T) {
	s := serve(t, s3Like())
	s.batch = func(int, []string) ([]error, error) { return nil, refusal(blob.ErrPermission) }
	failed := deleteAll(t, open(t, s), "a", "b")
	for _, k := range []string{"a", "b"} {
		if e := failed[k]; e == nil || e.Outcome != blob.NotApplied || !errors.Is(e, blob.ErrPermission) {
			t.Error(failed)
		}
	}
	if got := s.requests("batch"); got != 1 {
		t.Errorf("%d requests", got)
	}
}

// After a cancel no further request is made, and each key that was not tried is NotApplied.
func TestCancelledDeleteAll(t *testing.T) {
	for _, p := range []personality{s3Like(), azureLike()} {
		s := serve(t, p)
		s.put("a", nil)
		ctx, cancel := contextOf(t)
		s.after = func(context.Context, request) error { cancel(); return nil }
		err := open(t, s, concurrency(1)).DeleteAll(ctx, []string{"a", "b", "c", "d", "e"})
		var d *blob.DeleteError
		if !errors.As(err, &d) || !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if done := max(1, p.traits.BatchDelete); len(d.Failed) != 5-done {
			t.Errorf("%d keys failed", len(d.Failed))
		}
		wantOutcome(t, err, blob.NotApplied)
		if n := len(s.takeLog()); n != 1 {
			t.Errorf("%d requests", n)
		}
	}
}

// Single deletes run in parallel within bounds.
func TestSingleDeletesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, azureLike())
		s.before = func(context.Context, request) error {
			<-time.After(time.Second)
			return nil
		}
		deleteAll(t, open(t, s, concurrency(3)), "a", "b", "c", "d", "e", "f", "g")
		if got := s.takePeak(); got != 3 {
			t.Errorf("%d requests in flight", got)
		}
	})
}

// Where nobody vouches for conditions they are refused before any request.
func TestUntrustedConditions(t *testing.T) {
	p := s3Like()
	p.traits.SetConditions, p.traits.DeleteConditions = false, false
	s := serve(t, p)
	st := open(t, s)
	_, set := st.Set(t.Context(), "k", blob.Bytes(nil), &blob.SetOptions{If: blob.IfAbsent()})
	for _, err := range []error{set, st.Delete(t.Context(), "k", &blob.DeleteOptions{If: blob.IfVersion("v")})} {
		if e := wantKind(t, err, blob.ErrUnsupported); e.Outcome != blob.NotApplied {
			t.Errorf("%#v", e)
		}
	}
	wantLog(t, s)
	if st.Capabilities().Conditions {
		t.Error("conditions claimed")
	}
}
