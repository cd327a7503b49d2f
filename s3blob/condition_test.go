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

// 409 means that nothing was decided: it is tried again, by a new upload where a commit got it, and never reported as "exists"; 412 and
// 404 are decisions (apache/arrow-rs-object-store #852).
func TestConflictInFlightIsTriedAgain(t *testing.T) {
	conflict := fakes3.Reply{Status: 409, Code: "ConditionalRequestConflict"}
	for _, size := range []int{10, 3 * P} {
		op := map[bool]string{true: "PutObject", false: "CompleteMultipartUpload"}[size < P]
		set := func(t *testing.T, c blob.Condition, replies ...fakes3.Reply) (*fakes3.Server, error) {
			srv := fake(t, fakes3.Options{MinPartSize: -1})
			times := len(replies)
			if times == 1 {
				times = -1
			}
			f := fakes3.Fault{Op: op, Times: times, Replies: replies}
			if times < 0 {
				f.Replies, f.Reply = nil, &replies[0]
			}
			srv.Inject(f)
			st := openSmall(t, srv)
			_, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), &blob.SetOptions{If: c})
			if err == nil {
				wantBytes(t, mustGet(t, st, "k", nil).Data, content(size))
			}
			closed := st.Close(t.Context())
			if unknown := err != nil && blob.OutcomeOf(err) == blob.Unknown; !unknown && (closed != nil || len(srv.Uploads("b")) > 0) {
				t.Errorf("Close: %v, uploads left: %v", closed, srv.Uploads("b"))
			}
			return srv, err
		}
		t.Run(fmt.Sprintf("twice, then free/%d", size), func(t *testing.T) {
			srv, err := set(t, blob.IfAbsent(), conflict, conflict)
			if err != nil {
				t.Error(err)
			}
			if n := srv.Log().Count("CreateMultipartUpload"); size >= P && n != 3 {
				t.Errorf("%d uploads begun, want a new one for each commit", n)
			}
		})
		t.Run(fmt.Sprintf("once, then exists/%d", size), func(t *testing.T) {
			_, err := set(t, blob.IfAbsent(), conflict, fakes3.Reply{Status: 412})
			wantKind(t, err, blob.ErrExists)
		})
		t.Run(fmt.Sprintf("without end/%d", size), func(t *testing.T) {
			srv, err := set(t, blob.IfAbsent(), conflict)
			wantKind(t, err, blob.ErrConflict)
			if n := srv.Log().Count(op); n > 4 || blob.OutcomeOf(err) != blob.NotApplied {
				t.Errorf("%d attempts, outcome %v", n, blob.OutcomeOf(err))
			}
		})
		t.Run(fmt.Sprintf("version of a missing key/%d", size), func(t *testing.T) {
			_, err := set(t, blob.IfVersion("v"), fakes3.Reply{})
			wantKind(t, err, blob.ErrPrecondition)
		})
		t.Run(fmt.Sprintf("5xx is no decision/%d", size), func(t *testing.T) {
			_, err := set(t, blob.IfAbsent(), fakes3.Reply{Status: 500})
			wantKind(t, err, blob.ErrUnavailable)
			if blob.OutcomeOf(err) != blob.Unknown {
				t.Errorf("outcome %v, want unknown", blob.OutcomeOf(err))
			}
		})
	}
}

// An upload that somebody else aborted is begun again.
func TestUploadThatIsGoneIsBegunAgain(t *testing.T) {
	for _, op := range []string{"UploadPart", "CompleteMultipartUpload"} {
		srv := fake(t, fakes3.Options{MinPartSize: -1})
		srv.Inject(fakes3.Fault{Op: op, Reply: &fakes3.Reply{Status: 404, Code: "NoSuchUpload"}})
		if _, err := openSmall(t, srv).Set(t.Context(), "k", blob.Bytes(content(3*P)), nil); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
}

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

// Absence hidden behind 403 is no absence; a bucket that is missing is no key that is missing; a bucket in another region is named with
// its region (aws/aws-cli #2041).
func TestRefusalsAreToldApart(t *testing.T) {
	srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{HidesMissing: true}})
	st := open(t, srv, nil)
	wantKind(t, getError(st, "missing", nil), blob.ErrPermission)
	if _, err := st.Stat(t.Context(), "missing"); err != nil {
		wantKind(t, err, blob.ErrPermission)
	}
	if n := len(srv.Log()); n != 2 {
		t.Errorf("%d requests, want no retries", n)
	}
	if _, err := st.Set(t.Context(), "missing", blob.Bytes(nil), &blob.SetOptions{If: blob.IfAbsent()}); err != nil {
		t.Errorf("create if absent: %v", err)
	}
	no, err := s3blob.New(t.Context(), "no-such-bucket", options(srv))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, no) })
	wantKind(t, getError(no, "k", nil), blob.ErrNoContainer)
	_, err = no.Set(t.Context(), "k", blob.Bytes(nil), nil)
	wantKind(t, err, blob.ErrNoContainer)

	srv.ResetLog()
	srv.Inject(fakes3.Fault{Times: -1, Reply: fakes3.WrongRegion("eu-west-7")})
	if err := getError(st, "k", nil); !strings.Contains(err.Error(), "eu-west-7") || len(srv.Log()) != 1 {
		t.Errorf("wrong region: %v after %d requests", err, len(srv.Log()))
	}
}
