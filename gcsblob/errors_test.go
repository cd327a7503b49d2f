package gcsblob_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// Each refusal of the service has one kind, and says whether a write may have happened, on both protocols
// (apache/arrow-rs-object-store #852: a conflict that passed for a refusal).
func TestRefusalsHaveAKindAndAnOutcome(t *testing.T) {
	const no, perhaps = blob.NotApplied, blob.Unknown
	for _, c := range []struct {
		status  int
		code    string // "": what the fake says by itself
		kind    error
		outcome blob.Outcome
	}{
		{400, "", blob.ErrInvalidOption, no},
		{401, "", blob.ErrUnavailable, no}, // another attempt would have another token
		{403, "forbidden", blob.ErrPermission, no},
		{403, "insufficientPermissions", blob.ErrPermission, no},
		{403, "rateLimitExceeded", blob.ErrThrottled, no},
		{403, "retentionPolicyNotMet", blob.ErrPermission, no},
		{408, "", blob.ErrUnavailable, perhaps},
		{409, "conflict", blob.ErrConflict, no},
		{412, "", blob.ErrPrecondition, no},
		{413, "", blob.ErrTooLarge, no},
		{429, "rateLimitExceeded", blob.ErrThrottled, no},
		{429, "", blob.ErrThrottled, no},
		{500, "", blob.ErrUnavailable, perhaps},
		{502, "", blob.ErrUnavailable, perhaps},
		{503, "", blob.ErrUnavailable, perhaps},
		{503, "SlowDown", blob.ErrThrottled, no},
		{504, "", blob.ErrUnavailable, perhaps},
		{501, "", blob.ErrUnsupported, no},
		{302, "", blob.ErrInvalidOption, no},
	} {
		t.Run(fmt.Sprintf("%d %s", c.status, c.code), func(t *testing.T) {
			srv := fake(t, fakegcs.Options{})
			srv.Inject(fakehttp.Fault{Times: -1, Reply: &fakehttp.Reply{Status: c.status, Code: c.code, RetryAfter: 7 * time.Second,
				Header: map[string]string{"X-Guploader-Uploadid": "the-id", "Location": srv.URL() + "/elsewhere"}}})
			for name, do := range operations {
				st := open(t, srv, small, func(o *gcsblob.Options) { o.Retry.Attempts = 1 }) // a fresh one: none waits for another's Retry-After
				err := do(t.Context(), st)
				var d *blob.DeleteError
				if errors.As(err, &d) {
					err = d.Failed[0].Err
				}
				kind, outcome := c.kind, c.outcome
				if strings.HasSuffix(name, "if absent") && kind == blob.ErrPrecondition {
					kind = blob.ErrExists
				}
				if strings.HasPrefix(name, "set chunks") || !strings.HasPrefix(name, "set") && !strings.HasPrefix(name, "delete") {
					outcome = no // the first request of a session makes nothing visible; reads never do
				}
				e := mustKind(t, err, kind)
				if e.Outcome != outcome || e.Status != c.status || e.RequestID != "the-id" || e.RetryAfter != 7*time.Second {
					t.Errorf("%s: %v: outcome %v, want %v; %+v", name, e, e.Outcome, outcome, e)
				}
				var g *googleapi.Error
				if !errors.As(err, &g) || g.Code != c.status {
					t.Errorf("%s: errors.As finds no *googleapi.Error in %v", name, err)
				}
			}
		})
	}
}

// A conflict in flight is tried again and is not taken for the settled refusal of a condition, in one request and in a session
// (apache/arrow-rs-object-store #852).
func TestAConflictInFlightIsNoRefusedCondition(t *testing.T) {
	conflict, throttled, unmet := fakehttp.Reply{Status: 409, Code: "conflict"}, fakehttp.Reply{Status: 429}, fakehttp.Reply{Status: 412, Code: "conditionNotMet"}
	for _, size := range []int{10, 5 << 10} { // a session of one chunk, which is its commit
		for _, op := range []string{"objects.insert", "uploads.start", "uploads.put"} {
			if (size == 10) != (op == "objects.insert") {
				continue
			}
			for _, c := range []struct {
				cond    blob.Condition
				replies []fakehttp.Reply
				kind    error
			}{
				{blob.IfAbsent(), []fakehttp.Reply{conflict, conflict, {}}, nil},
				{blob.IfAbsent(), []fakehttp.Reply{throttled, {}}, nil},
				{blob.IfAbsent(), []fakehttp.Reply{conflict, unmet}, blob.ErrExists},
				{blob.IfAbsent(), []fakehttp.Reply{conflict, conflict, conflict, conflict, conflict, conflict}, blob.ErrConflict},
				{blob.IfVersion("7"), []fakehttp.Reply{conflict, unmet}, blob.ErrPrecondition},
				{blob.IfVersion("7"), []fakehttp.Reply{throttled, {}}, blob.ErrPrecondition},
			} {
				srv := fake(t, fakegcs.Options{})
				st := open(t, srv, small, func(o *gcsblob.Options) { o.Retry.Attempts = 3 })
				srv.Inject(fakehttp.Fault{Op: op, Replies: c.replies})
				err := setN(t.Context(), st, size, c.cond)
				if blob.KindOf(err) != c.kind || err != nil && blob.OutcomeOf(err) != blob.NotApplied {
					t.Errorf("%s, %v: %v, outcome %v, want %v\n%s", op, c.cond, err, blob.OutcomeOf(err), c.kind, srv.Log())
				}
				if _, ok := srv.Object("b", "new"); ok != (c.kind == nil) {
					t.Errorf("%s, %v, %v: stored: %t", op, c.cond, err, ok)
				}
			}
		}
	}
}

// A page of a proxy is no reply of the service, and its text stays short.
func TestPagesOfProxiesAreUnavailable(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, small)
	for _, reply := range []fakehttp.Reply{
		{Status: 502, Body: fakehttp.HTMLPage + strings.Repeat("x", 100<<10)},
		{Status: 200, Body: fakehttp.HTMLPage},
		{Status: 200, NoBody: true},
		{Status: 200, Body: "{}"},
		{Status: 200, Body: `{"kind":"storage#objects"`},
	} {
		in := srv.Inject(fakehttp.Fault{Times: -1, Reply: &reply})
		for name, do := range operations {
			err := do(t.Context(), st)
			if strings.HasPrefix(name, "delete") && reply.Status == 200 {
				continue // any success is one
			}
			if err == nil {
				t.Errorf("%s: %d %.20q passed for an answer", name, reply.Status, reply.Body)
				continue
			}
			if len(err.Error()) > 2000 {
				t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
			}
			if strings.HasPrefix(name, "set") && !strings.HasPrefix(name, "set chunks") && blob.OutcomeOf(err) != blob.Unknown {
				t.Errorf("%s: %v is not in doubt", name, err)
			}
		}
		in.Remove()
	}
}

// A page is no proof that an object is absent, nor that it has been deleted, even if it has the status of one: it is of a proxy, or of
// another server.
func TestAPageWithStatus404IsNoAbsence(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, small)
	srv.PutObject("b", "k", content(10), nil)
	srv.Inject(fakehttp.Fault{Times: -1, Reply: &fakehttp.Reply{Status: 404, Body: fakehttp.HTMLPage, Header: map[string]string{"Content-Type": "text/html; charset=utf-8"}}})
	for name, do := range operations {
		err := do(t.Context(), st)
		var d *blob.DeleteError
		if errors.As(err, &d) {
			err = d.Failed[0].Err
		}
		if e := mustKind(t, err, blob.ErrUnavailable); e.Outcome != blob.NotApplied {
			t.Errorf("%s: %v, outcome %v", name, e, e.Outcome)
		}
	}
}

// A checksum that the service does not find is corruption, and nothing is stored.
func TestAWrongChecksumIsCorruption(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, small, func(o *gcsblob.Options) { o.Retry.Attempts = 1 })
	for _, op := range []string{"objects.insert", "uploads.put"} {
		in := srv.Inject(fakehttp.Fault{Op: op, Reply: &fakehttp.Reply{Status: 400, Code: "invalid",
			Message: `Provided CRC32C "AAAAAA==" doesn't match calculated CRC32C "yZRlqg==".`}})
		n := 10
		if op == "uploads.put" {
			n = 5 << 10
		}
		if err := setN(t.Context(), st, n, blob.Condition{}); !errors.Is(err, blob.ErrCorrupt) || blob.OutcomeOf(err) != blob.NotApplied {
			t.Errorf("%s: %v", op, err)
		}
		in.Remove()
	}
}

// A reply that says another object was written than was sent is never a success.
func TestAReplyOfAnotherObjectIsNoSuccess(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, small, func(o *gcsblob.Options) { o.Retry.Attempts = 1 })
	for name, body := range map[string]string{
		"size":     `{"name":"new","generation":"5","size":"9"}`,
		"checksum": `{"name":"new","generation":"5","size":"10","crc32c":"AAAAAA=="}`,
		"name":     `{"name":"old","generation":"5","size":"10"}`,
	} {
		in := srv.Inject(fakehttp.Fault{Op: "objects.insert", Reply: &fakehttp.Reply{Status: 200, Body: body}})
		err := setN(t.Context(), st, 10, blob.Condition{})
		if e := mustKind(t, err, blob.ErrCorrupt); e.Outcome != blob.Unknown {
			t.Errorf("%s: %v", name, e)
		}
		in.Remove()
	}
}

// Nor is one that says what another object is.
func TestAStatOfAnotherObjectIsNone(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	srv.Inject(fakehttp.Fault{Op: "objects.get", Times: -1, Reply: &fakehttp.Reply{Status: 200,
		Body: `{"kind":"storage#object","name":"other","generation":"5","size":"3","updated":"2024-01-01T00:00:00Z"}`}})
	_, err := open(t, srv).Stat(t.Context(), "k")
	wantKind(t, err, blob.ErrCorrupt)
}

// A success before the whole body was read is no success.
func TestAnEarlySuccessIsNone(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, func(o *gcsblob.Options) { o.Retry.Attempts, o.Threshold = 1, 64<<20 })
	srv.Inject(fakehttp.Fault{Op: "objects.insert", Times: -1, Reply: &fakehttp.Reply{Status: 200, Unread: true,
		Body: `{"name":"new","generation":"5","size":"33554432"}`}})
	err := setN(t.Context(), st, 32<<20, blob.Condition{})
	if err == nil || blob.OutcomeOf(err) != blob.Unknown && !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// A delete whose reply was lost, and which then finds nothing, has done what was asked for; one with a version that moved on has
// not (thanos-io/objstore #261).
func TestARetriedDeleteIsNoError(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv)
	for _, pinned := range []bool{false, true} {
		for _, f := range []fakehttp.Fault{{After: fakehttp.Reset}, {Reply: &fakehttp.Reply{Status: 503, Commit: true}}, {Reply: &fakehttp.Reply{Status: 503}}} {
			if f.After != 0 && pinned || f.Reply != nil && f.Reply.Commit && pinned {
				continue // a conditional delete in doubt is not repeated
			}
			info := mustSet(t, st, "k", []byte("x"), nil)
			f.Op = "objects.delete"
			in := srv.Inject(f)
			var o blob.DeleteOptions
			if pinned {
				o.If = blob.IfVersion(info.Version)
			}
			err := st.Delete(t.Context(), "k", &o)
			if pinned != (err != nil) || in.Hits() != 1 {
				t.Errorf("pinned %t: %v", pinned, err)
			}
		}
	}
	old := mustSet(t, st, "k", []byte("old"), nil)
	mustSet(t, st, "k", []byte("new"), nil)
	wantKind(t, st.Delete(t.Context(), "k", &blob.DeleteOptions{If: blob.IfVersion(old.Version)}), blob.ErrPrecondition)
	if err := st.Delete(t.Context(), "never", &blob.DeleteOptions{If: blob.IfVersion(old.Version)}); err != nil {
		t.Errorf("of a key that is not there: %v", err)
	}
	if err := st.DeleteAll(t.Context(), []string{"k", "never"}); err != nil {
		t.Error(err)
	}
}
