package s3blob_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// Headers and then silence is a stall, ended after Stall; a first byte that is late, but not that late, is none.
func TestSilenceBehindTheHeadersIsAStall(t *testing.T) {
	edit := func(o *s3blob.Options) { o.Stall, o.Retry.Attempt = 2*time.Second, time.Minute }
	bubble(t, fakes3.Options{}, edit, func(t *testing.T, srv *fakes3.Server, st *s3blob.Store) {
		srv.PutObject("b", "k", [][]byte{content(10)}, nil)
		srv.Inject(fakes3.Fault{Op: "GetObject", Cut: &fakes3.Cut{At: 0, How: fakes3.Silence}})
		start := time.Now()
		wantBytes(t, mustGet(t, st, "k", nil).Data, content(10))
		if d := time.Since(start); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("took %v of fake time, want the stall of 2s", d)
		}
	})
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

// Restores of one key at the same time all succeed.
func TestRestoresAtTheSameTime(t *testing.T) {
	srv := fake(t, fakes3.Options{Versioned: true, NoLog: true})
	st := open(t, srv, func(o *s3blob.Options) { o.Restore = true })
	for range 20 {
		if _, err := st.Set(t.Context(), "k", blob.Bytes(content(10)), nil); err != nil {
			t.Fatal(err)
		}
		if err := st.Delete(t.Context(), "k", nil); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := st.Restore(t.Context(), "k"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// A service that lists other uploads than those asked for makes Sweep fail before it aborts one.
func TestSweepAbortsNothingUnderAnotherPrefix(t *testing.T) {
	srv := fake(t, fakes3.Options{Anonymous: true, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	reply, err := srv.Client().Post(srv.URL()+"/b/theirs/x?uploads", "", http.NoBody) //nolint:noctx // a server in this process
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	st := through(t, srv, func(o *s3blob.Options) { o.Prefix = "mine" }, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "prefix=mine%2F", "prefix=")
		return next.RoundTrip(r)
	})
	res, err := st.Sweep(t.Context(), time.Minute)
	wantKind(t, err, blob.ErrCorrupt)
	if len(res.Aborted) > 0 || len(srv.Uploads("b")) != 1 {
		t.Errorf("%+v, left: %v", res, srv.Uploads("b"))
	}
	srv.CloseIdleConns()
}

// A success that was answered before the body had been read is no success.
func TestSuccessBeforeTheBodyIsNone(t *testing.T) {
	for _, size := range []int{P - 1, 3 * P} {
		srv := fake(t, fakes3.Options{MinPartSize: -1})
		st := through(t, srv, nil, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPut {
				return next.RoundTrip(r)
			}
			_, _ = io.CopyN(io.Discard, r.Body, 10)
			_ = r.Body.Close()
			return &http.Response{
				Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
				Header: http.Header{"Etag": {`"x"`}}, Body: http.NoBody,
			}, nil
		})
		_, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), &blob.SetOptions{AtMostOnce: true})
		if !errors.Is(err, blob.ErrUnavailable) || size < P && blob.OutcomeOf(err) != blob.Unknown {
			t.Errorf("%d bytes: %v, outcome %v", size, err, blob.OutcomeOf(err))
		}
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
