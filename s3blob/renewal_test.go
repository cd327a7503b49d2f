package s3blob_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// rotating hands out one session token after the other.
type rotating struct {
	mu     sync.Mutex
	tokens []string
	calls  atomic.Int64
}

func (r *rotating) Retrieve(context.Context) (aws.Credentials, error) {
	r.calls.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	token := r.tokens[0]
	if len(r.tokens) > 1 {
		r.tokens = r.tokens[1:]
	}
	c := fakes3.DefaultCredentials()
	return aws.Credentials{AccessKeyID: c.AccessKey, SecretAccessKey: c.SecretKey, SessionToken: token}, nil
}

// A token that expires is renewed once, however many requests find out together; one that cannot be renewed is an error after two tries
// (s3fs-fuse/s3fs-fuse #1042).
func TestExpiredCredentialsAreRenewedOnce(t *testing.T) {
	c := fakes3.DefaultCredentials()
	expire := func(r *fakes3.Request) bool { return r.Header.Get("X-Amz-Security-Token") == "old" }
	start := func(t *testing.T, tokens ...string) (*fakes3.Server, *rotating, *s3blob.Store) {
		srv := fake(t, fakes3.Options{MinPartSize: -1, Credentials: []fakes3.Credentials{
			{AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: "old"}, {AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: "new"},
		}})
		srv.PutObject("b", "k", [][]byte{content(10)}, nil)
		p := &rotating{tokens: tokens}
		st := open(t, srv, func(o *s3blob.Options) { small(o); o.AccessKey, o.SecretKey, o.Credentials = "", "", p })
		mustGet(t, st, "k", nil)
		srv.Inject(fakes3.Fault{Match: expire, Times: -1, Reply: &fakes3.Reply{Status: 400, Code: "ExpiredToken"}})
		return srv, p, st
	}
	t.Run("renewed", func(t *testing.T) {
		_, p, st := start(t, "old", "new")
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := st.Get(t.Context(), "k", nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if _, err := st.Set(t.Context(), "k2", blob.Bytes(content(5*P)), nil); err != nil {
			t.Error(err)
		}
		if n := p.calls.Load(); n != 2 {
			t.Errorf("%d calls of the provider, want one at the start and one renewal", n)
		}
	})
	t.Run("not renewed", func(t *testing.T) {
		srv, _, st := start(t, "old")
		srv.ResetLog()
		wantKind(t, getError(st, "k", nil), blob.ErrPermission)
		if n := len(srv.Log()); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

// The reply to a HEAD has no document that could say why. What a 400 may mean is tried once; the provider is not asked for each of many.
func TestStatRenewsWhatMayHaveExpired(t *testing.T) {
	c := fakes3.DefaultCredentials()
	for _, tokens := range [][]string{{"old", "new"}, {"old"}} {
		srv := fake(t, fakes3.Options{Credentials: []fakes3.Credentials{
			{AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: "old"}, {AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: "new"},
		}})
		srv.PutObject("b", "k", [][]byte{content(10)}, nil)
		p := &rotating{tokens: tokens}
		st := open(t, srv, func(o *s3blob.Options) { o.AccessKey, o.SecretKey, o.Credentials = "", "", p })
		srv.Inject(fakes3.Fault{
			Match: func(r *fakes3.Request) bool { return r.Header.Get("X-Amz-Security-Token") == "old" },
			Times: -1, Reply: &fakes3.Reply{Status: 400, Code: "ExpiredToken"},
		})
		for range 5 {
			if _, err := st.Stat(t.Context(), "k"); (err == nil) != (len(tokens) == 2) {
				t.Errorf("%v: %v", tokens, err)
			}
		}
		if n, calls := len(srv.Log()), p.calls.Load(); n != 6 || calls > 3 {
			t.Errorf("%v: %d requests and %d calls of the provider", tokens, n, calls)
		}
	}
	srv := fake(t, fakes3.Options{}) // keys that do not expire have not expired
	srv.Inject(fakes3.Fault{Times: -1, Reply: &fakes3.Reply{Status: 400, Code: "ExpiredToken"}})
	_, err := open(t, srv, nil).Stat(t.Context(), "k")
	wantKind(t, err, blob.ErrInvalidOption)
	if n := len(srv.Log()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestStatCorrectsAWrongClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		srv := fake(t, fakes3.Options{Now: func() time.Time { return time.Now().Add(off) }})
		srv.PutObject("b", "k", [][]byte{content(10)}, nil)
		st := open(t, srv, nil)
		for range 3 {
			if _, err := st.Stat(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		}
		if n := len(srv.Log()); n != 4 {
			t.Errorf("%d requests for 3 Stats, want one refusal", n)
		}
	}
	srv := fake(t, fakes3.Options{}) // a refusal for another reason
	srv.Inject(fakes3.Fault{Times: -1, Reply: &fakes3.Reply{Status: 403, Code: "AccessDenied"}})
	_, err := open(t, srv, nil).Stat(t.Context(), "k")
	wantKind(t, err, blob.ErrPermission)
	if n := len(srv.Log()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// A wrong local clock is corrected by the service's after one refusal; a service that refuses all the same is not asked for ever.
func TestWrongClockIsCorrectedOnce(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		srv := fake(t, fakes3.Options{Now: func() time.Time { return time.Now().Add(off) }})
		srv.PutObject("b", "k", [][]byte{content(10)}, nil)
		st := open(t, srv, nil)
		for range 3 {
			mustGet(t, st, "k", nil)
		}
		if n := len(srv.Log()); n != 4 {
			t.Errorf("%d requests for 3 reads, want one refusal", n)
		}
	}
	srv := fake(t, fakes3.Options{})
	srv.Inject(fakes3.Fault{Times: -1, Reply: &fakes3.Reply{Status: 403, Code: "RequestTimeTooSkewed", Header: map[string]string{"Date": time.Now().Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")}}})
	err := getError(open(t, srv, nil), "k", nil)
	wantKind(t, err, blob.ErrPermission)
	if n := len(srv.Log()); n > 2 || !strings.Contains(err.Error(), "date") {
		t.Errorf("%d requests, %v", n, err)
	}
}

// Credentials are renewed through whatever cache the caller, or the SDK's own chain, has put around them; and one renewal that brings
// the old ones is not the last.
func TestRenewalReachesBehindCaches(t *testing.T) {
	c := fakes3.DefaultCredentials()
	for name, tokens := range map[string][]string{"cached": {"old", "new"}, "late": {"old", "old", "new"}} {
		t.Run(name, func(t *testing.T) {
			srv := fake(t, fakes3.Options{Credentials: []fakes3.Credentials{
				{AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: "old"}, {AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: "new"},
			}})
			srv.PutObject("b", "k", [][]byte{content(10)}, nil)
			p := &rotating{tokens: tokens}
			st := open(t, srv, func(o *s3blob.Options) {
				o.AccessKey, o.SecretKey, o.Credentials = "", "", aws.NewCredentialsCache(p)
			})
			mustGet(t, st, "k", nil)
			srv.Inject(fakes3.Fault{
				Match: func(r *fakes3.Request) bool { return r.Header.Get("X-Amz-Security-Token") == "old" },
				Times: -1, Reply: &fakes3.Reply{Status: 400, Code: "ExpiredToken"},
			})
			if name == "late" {
				wantKind(t, getError(st, "k", nil), blob.ErrPermission)
			}
			mustGet(t, st, "k", nil)
		})
	}
}

// A clock that is put right after it had been corrected costs one more attempt, not an error.
func TestClockThatIsPutRightLater(t *testing.T) {
	var mu sync.Mutex
	off := time.Hour
	srv := fake(t, fakes3.Options{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(off)
	}})
	srv.PutObject("b", "k", [][]byte{content(10)}, nil)
	st := open(t, srv, nil)
	mustGet(t, st, "k", nil)
	mu.Lock()
	off = 0 // as if the local clock had gone to the server's, and the SDK still corrects it
	mu.Unlock()
	if _, err := st.Get(context.Background(), "k", nil); err != nil {
		wantKind(t, err, blob.ErrPermission) // within minutes of the first correction one refusal is final
	}
	mustGet(t, st, "k", nil)
}

// Every attempt is signed as it is sent: the last parts of an upload that takes hours carry the date and the token of that
// moment (s3fs-fuse/s3fs-fuse #1042).
func TestLongUploadIsSignedPartByPart(t *testing.T) {
	c := fakes3.DefaultCredentials()
	var known []fakes3.Credentials
	for i := range 8 {
		known = append(known, fakes3.Credentials{AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: fmt.Sprint("token", i)})
	}
	p := &expiring{}
	edit := func(o *s3blob.Options) {
		o.AccessKey, o.SecretKey, o.Credentials, o.Concurrency = "", "", p, 1
		o.Retry.Attempt, o.Retry.Total = 15*time.Minute, 5*time.Hour
	}
	bubble(t, fakes3.Options{MinPartSize: -1, Credentials: known}, edit, func(t *testing.T, srv *fakes3.Server, st *s3blob.Store) {
		p.start = time.Now()
		srv.Inject(fakes3.Fault{Op: "UploadPart", Times: -1, Delay: 10 * time.Minute})
		srv.Inject(fakes3.Fault{Op: "UploadPart", Nth: 4, Reply: &fakes3.Reply{Status: 503}})
		parts := 0
		srv.Inject(fakes3.Fault{Times: -1, Match: func(r *fakes3.Request) bool {
			sent, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			if off := time.Since(sent); err != nil || off < -time.Second || off > 2*time.Second {
				t.Errorf("%s is dated %v ago, %v", r.Op, off, err)
			}
			if token := r.Header.Get("X-Amz-Security-Token"); token != p.token() {
				t.Errorf("%s carries %s, %v after the start", r.Op, token, time.Since(p.start))
			}
			if r.Op == "UploadPart" {
				parts++
			}
			return false
		}})
		data := content(6 * P)
		if _, err := st.Set(t.Context(), "k", blob.Bytes(data), nil); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, mustGet(t, st, "k", nil).Data, data)
		if d := time.Since(p.start); parts != 7 || d < time.Hour {
			t.Errorf("%d parts were sent within %v of fake time", parts, d)
		}
	})
}

// expiring hands out tokens that hold for a quarter of an hour.
type expiring struct{ start time.Time }

const tokenLife = 15 * time.Minute

func (e *expiring) token() string { return fmt.Sprint("token", int(time.Since(e.start)/tokenLife)) }

func (e *expiring) Retrieve(context.Context) (aws.Credentials, error) {
	c := fakes3.DefaultCredentials()
	return aws.Credentials{
		AccessKeyID: c.AccessKey, SecretAccessKey: c.SecretKey, SessionToken: e.token(),
		CanExpire: true, Expires: e.start.Add(time.Since(e.start).Truncate(tokenLife) + tokenLife),
	}, nil
}
