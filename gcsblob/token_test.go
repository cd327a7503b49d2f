package gcsblob_test

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// numbered gives the tokens t1, t2 and so on.
type numbered struct {
	n   atomic.Int64
	ttl time.Duration // 0: for ever
	err error
}

func (s *numbered) Token() (*oauth2.Token, error) {
	if s.err != nil {
		return nil, s.err
	}
	t := &oauth2.Token{AccessToken: "t" + text(s.n.Add(1))}
	if s.ttl != 0 {
		t.Expiry = time.Now().Add(s.ttl)
	}
	return t, nil
}

func withTokens(s oauth2.TokenSource) func(*gcsblob.Options) {
	return func(o *gcsblob.Options) { o.TokenSource = s }
}

// A token is fetched once, for however many requests, and once more when the service refuses it before its time.
func TestATokenIsFetchedOnceUntilItIsRefused(t *testing.T) {
	srv := fake(t, fakegcs.Options{Tokens: []fakegcs.Token{{Value: "t1"}}})
	src := &numbered{}
	st := open(t, srv, withTokens(src))
	srv.PutObject("b", "k", content(10), nil)
	all := func() {
		t.Helper()
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for name, do := range map[string]func() error{
					"get":  func() error { _, err := st.Get(t.Context(), "k", nil); return err },
					"stat": func() error { _, err := st.Stat(t.Context(), "k"); return err },
				} {
					if err := do(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
		wg.Wait()
	}
	all()
	if n := src.n.Load(); n != 1 {
		t.Errorf("%d tokens fetched, want 1", n)
	}
	srv.SetTokens(fakegcs.Token{Value: "t2"})
	all()
	if n := src.n.Load(); n != 2 {
		t.Errorf("%d tokens fetched, want 2", n)
	}
}

// A token that is refused anew is not tried for ever, and the error says what it is; a later request asks anew.
func TestARefusedTokenIsRenewedOnce(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	src := &numbered{}
	st := open(t, srv, withTokens(src), func(o *gcsblob.Options) { o.Retry.Attempts = 10 })
	srv.PutObject("b", "k", content(10), nil)
	same := open(t, srv, withTokens(oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "wrong"})), func(o *gcsblob.Options) { o.Retry.Attempts = 10 })
	_, err := same.Get(t.Context(), "k", nil)
	if e := mustKind(t, err, blob.ErrPermission); e.Status != http.StatusUnauthorized || e.Attempts != 2 {
		t.Errorf("%v after %d attempts, want 2", err, e.Attempts)
	}
	srv.SetTokens(fakegcs.Token{Value: "t3"})
	mustGet(t, st, "k", nil)
	if n := src.n.Load(); n != 3 {
		t.Errorf("%d tokens fetched, want 3", n)
	}
}

// Each request of an upload that takes long carries the token of its own time (s3fs-fuse/s3fs-fuse #1042: parts with the
// credentials of the first).
func TestEachRequestOfALongUploadHasTheTokenOfItsTime(t *testing.T) {
	srv := fake(t, fakegcs.Options{Tokens: []fakegcs.Token{{Value: "t1"}}})
	src := &numbered{}
	st := open(t, srv, small, withTokens(src))
	n := int64(1)
	srv.Inject(fakehttp.Fault{Op: "uploads.put", Times: -1, Then: func() { n++; srv.SetTokens(fakegcs.Token{Value: "t" + text(n)}) }})
	data := content(3*chunk + 1)
	mustSet(t, st, "k", data, &blob.SetOptions{If: blob.IfAbsent()})
	obj, _ := srv.Object("b", "k")
	wantBytes(t, obj.Bytes(), data)
	if starts := srv.Log().Count("uploads.start"); starts != 1 {
		t.Errorf("%d sessions:\n%s", starts, srv.Log())
	}
	if src.n.Load() != 4 {
		t.Errorf("%d tokens, want 4", src.n.Load())
	}
}

// A token is replaced before its end, but a short-lived one is not fetched for each request.
func TestATokenIsReplacedBeforeItsEnd(t *testing.T) {
	srv := fake(t, fakegcs.Options{Tokens: []fakegcs.Token{{Value: "t1"}, {Value: "t2"}, {Value: "t3"}}})
	srv.PutObject("b", "k", content(10), nil)
	for _, c := range []struct {
		ttl  time.Duration
		want int64
	}{{time.Minute, 1}, {time.Hour, 1}, {-time.Second, 3}} {
		src := &numbered{ttl: c.ttl}
		st := open(t, srv, withTokens(src))
		for range 3 {
			mustGet(t, st, "k", nil)
		}
		if n := src.n.Load(); n != c.want {
			t.Errorf("%v: %d tokens for 3 requests, want %d", c.ttl, n, c.want)
		}
	}
}

// Without a token nothing is sent: the write certainly did not happen.
func TestWithoutATokenNothingIsSent(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	cause := errors.New("the token server says no")
	st := open(t, srv, withTokens(&numbered{err: cause}))
	_, err := st.Set(t.Context(), "k", blob.Bytes(nil), nil)
	if e := mustKind(t, err, blob.ErrPermission); e.Outcome != blob.NotApplied || !errors.Is(err, cause) {
		t.Errorf("%v", e)
	}
	if err := st.Delete(t.Context(), "k", nil); !errors.Is(err, blob.ErrPermission) || blob.OutcomeOf(err) != blob.NotApplied {
		t.Error(err)
	}
	wantLog(t, srv, "\n")
}

// What is not allowed is no missing key, and is not tried again.
func TestForbiddenIsNotNotFound(t *testing.T) {
	srv := fake(t, fakegcs.Options{Tokens: []fakegcs.Token{{Value: fakegcs.DefaultToken, Forbidden: true}}})
	st := open(t, srv, small)
	for name, do := range operations {
		srv.ResetLog()
		err := do(t.Context(), st)
		if blob.KindOf(err) != blob.ErrPermission {
			t.Errorf("%s: %v", name, err)
		}
		if log := srv.Log(); name != "getranges" && len(log) != 1 {
			t.Errorf("%s: %d requests:\n%s", name, len(log), log)
		}
	}
}

// An anonymous store, and one on somebody's server, send no token, whatever the environment has.
func TestAnonymousStoresSendNoToken(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/credentials.json")
	srv := fake(t, fakegcs.Options{Anonymous: true})
	for _, anonymous := range []bool{true, false} {
		st := openWith(t, "b", &gcsblob.Options{Endpoint: srv.URL(), Anonymous: anonymous, QuotaProject: "payer"})
		mustSet(t, st, "k", nil, nil)
		_, _ = st.Stat(t.Context(), "k")
	}
	for _, e := range srv.Log() {
		if e.Header.Get("Authorization") != "" || e.Header.Get("X-Goog-User-Project") != "payer" {
			t.Errorf("%v has %q, %q", e, e.Header.Get("Authorization"), e.Header.Get("X-Goog-User-Project"))
		}
	}
}
