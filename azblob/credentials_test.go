package azblob_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
	"github.com/wholeblob/wholeblob/retry"
)

// giver is a credential made of a function, which is told how often it was asked before.
type giver struct {
	asked atomic.Int64
	give  func(ctx context.Context, n int64) (azcore.AccessToken, error)
}

func (g *giver) GetToken(ctx context.Context, _ policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return g.give(ctx, g.asked.Add(1)-1)
}

func fresh(token string) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: token, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// openTokens returns a store that sends the tokens of g to a server over TLS.
func openTokens(t testing.TB, g *giver, tokens ...string) (*fakeaz.Server, *azblob.Store) {
	srv := fake(t, fakeaz.Options{TLS: true, Tokens: tokens})
	srv.PutBlob("box", "k", content(10), nil)
	tr := srv.Transport()
	t.Cleanup(tr.CloseIdleConnections)
	return srv, open(t, srv, func(o *azblob.Options) {
		small(o)
		o.AccountKey, o.Credential, o.Transport = "", g, tr
	})
}

// A token that the service refuses is renewed once, and each request afterwards, a batch and the parts of one included, has the new one
// (s3fs-fuse/s3fs-fuse #1042).
func TestRefusedTokenIsRenewedOnce(t *testing.T) {
	g := &giver{give: func(_ context.Context, n int64) (azcore.AccessToken, error) { return fresh(fmt.Sprintf("token%d", n)) }}
	srv, st := openTokens(t, g, "token0")
	get(t, st, "k")
	srv.SetTokens("token1")
	srv.ResetLog()
	set(t, st, "k", content(3*smallPart), nil)
	if err := st.DeleteAll(t.Context(), []string{"k", "nothing"}); err != nil {
		t.Error(err)
	}
	if _, ok := srv.Blob("box", "k"); ok {
		t.Error("the key is still there")
	}
	if n := g.asked.Load(); n != 2 {
		t.Errorf("asked for %d tokens, want 2", n)
	}
	refused := 0
	for _, e := range srv.Log() {
		if e.Status == http.StatusUnauthorized {
			refused++
		}
	}
	if n := len(srv.Log()); n != 5+refused || refused == 0 || refused > 3 {
		t.Errorf("%d requests, %d of them refused:\n%s", n, refused, srv.Log())
	}
}

// A credential that has no better token fails as permission denied, after one more try.
func TestTokenThatStaysRefused(t *testing.T) {
	g := &giver{give: func(context.Context, int64) (azcore.AccessToken, error) { return fresh("stale") }}
	srv, st := openTokens(t, g, "other")
	_, err := st.Stat(t.Context(), "k")
	wantKind(t, err, blob.ErrPermission)
	if n := srv.Log().Count("GetBlobProperties"); n != 2 {
		t.Errorf("%d requests", n)
	}
	if strings.Contains(err.Error(), "stale") {
		t.Errorf("the error shows the token: %v", err)
	}
}

// Without a token nothing is sent, and the outcome of a write is certain.
func TestNoTokenIsNoUnknownOutcome(t *testing.T) {
	g := &giver{give: func(context.Context, int64) (azcore.AccessToken, error) {
		return azcore.AccessToken{}, errors.New("no identity here")
	}}
	srv, st := openTokens(t, g, "token")
	for _, err := range []error{
		errOf(st.Set(t.Context(), "k", blob.Bytes(nil), nil)), st.Delete(t.Context(), "k", nil), errOf(st.Get(t.Context(), "k", nil)),
		st.DeleteAll(t.Context(), []string{"k"}),
	} {
		if !errors.Is(err, blob.ErrPermission) || blob.OutcomeOf(err) != blob.NotApplied || !strings.Contains(err.Error(), "no identity here") {
			t.Errorf("%v, outcome %v", err, blob.OutcomeOf(err))
		}
	}
	if n := len(srv.Log()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// Of many requests that need a token one asks for it, and none waits longer than its own context.
func TestOneAsksForTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		g := &giver{give: func(context.Context, int64) (azcore.AccessToken, error) {
			<-answer
			return fresh("token")
		}}
		srv := fake(t, fakeaz.Options{TLS: true, InMemory: true, Tokens: []string{"token"}})
		srv.PutBlob("box", "k", nil, nil)
		tr := srv.Transport()
		defer tr.CloseIdleConnections()
		o := options(srv)
		o.AccountKey, o.Credential, o.Transport, o.Retry.Attempt = "", g, tr, retry.NoLimit
		st, err := azblob.New(t.Context(), "box", o)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := st.Stat(t.Context(), "k"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // one asks, the others wait for it
		ctx, cancel := context.WithCancel(t.Context())
		impatient := make(chan error)
		go func() { impatient <- errOf(st.Stat(ctx, "k")) }()
		synctest.Wait()
		cancel()
		if err := <-impatient; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(answer)
		all.Wait()
		if n := g.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		closeStore(t, st)
	})
}

// Who asks for the token and gives up fails only itself.
func TestLeaderOfTokensGivesUpAlone(t *testing.T) {
	asked := make(chan struct{})
	g := &giver{give: func(ctx context.Context, n int64) (azcore.AccessToken, error) {
		if n == 0 {
			close(asked)
			<-ctx.Done()
			return azcore.AccessToken{}, ctx.Err()
		}
		return fresh("token")
	}}
	_, st := openTokens(t, g, "token")
	ctx, cancel := context.WithCancel(t.Context())
	leader, follower := make(chan error, 1), make(chan error, 1)
	go func() { leader <- errOf(st.Stat(ctx, "k")) }()
	<-asked
	go func() { follower <- errOf(st.Stat(t.Context(), "k")) }()
	cancel()
	if err := <-leader; !errors.Is(err, context.Canceled) {
		t.Errorf("leader: %v", err)
	}
	if err := <-follower; err != nil {
		t.Errorf("follower: %v", err)
	}
}

// A token is renewed before it ends, and used until then if it cannot be.
func TestTokenIsRenewedEarly(t *testing.T) {
	fail := errors.New("the directory is down")
	g := &giver{give: func(_ context.Context, n int64) (azcore.AccessToken, error) {
		switch n {
		case 0:
			return azcore.AccessToken{Token: "first", ExpiresOn: time.Now().Add(time.Minute)}, nil // ends soon
		case 1:
			return azcore.AccessToken{}, fail
		}
		return fresh("second")
	}}
	_, st := openTokens(t, g, "first", "second")
	for range 4 {
		get(t, st, "k")
	}
	if n := g.asked.Load(); n != 3 {
		t.Errorf("asked %d times", n)
	}
}

// Each attempt has a date of its own: a block that is sent again after twenty minutes is accepted by a service that takes a quarter of an hour
// (s3fs-fuse/s3fs-fuse #1042).
func TestEachAttemptIsSignedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := fake(t, fakeaz.Options{InMemory: true})
		for _, op := range []string{"PutBlock", "PutBlockList"} {
			srv.Inject(fakehttp.Fault{Op: op, Reply: &fakehttp.Reply{Status: 503, Code: "ServerBusy"}})
		}
		tr := srv.Transport()
		defer tr.CloseIdleConnections()
		o := options(srv)
		small(o)
		o.Transport = tr
		o.Retry = retry.Policy{FirstDelay: 20 * time.Minute, MaxDelay: 20 * time.Minute, Jitter: retry.NoJitter, Total: retry.NoLimit, Attempts: 3}
		st, err := azblob.New(t.Context(), "box", o)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		set(t, st, "k", content(3*smallPart), nil)
		if d := time.Since(begun); d < 40*time.Minute {
			t.Errorf("no block was sent again: %v", d)
		}
		closeStore(t, st)
	})
}

// A SAS works for every operation, a batch too, and one that has ended is a refusal.
func TestSAS(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	srv.PutBlob("box", "k", content(10), nil)
	token := signature(t, srv, time.Now().Add(time.Hour))
	st := open(t, srv, func(o *azblob.Options) { small(o); o.AccountKey, o.SAS = "", "?"+token })
	set(t, st, "a", content(3*smallPart), &blob.SetOptions{If: blob.IfAbsent()})
	get(t, st, "a")
	if err := list(st, t, ""); err != nil {
		t.Error(err)
	}
	if err := st.DeleteAll(t.Context(), []string{"a", "k"}); err != nil || len(srv.Objects("box")) > 0 {
		t.Errorf("%v, left %d", err, len(srv.Objects("box")))
	}
	old := open(t, srv, func(o *azblob.Options) { o.AccountKey, o.SAS = "", signature(t, srv, time.Now().Add(-time.Hour)) })
	wantKind(t, errOf(old.Get(t.Context(), "k", nil)), blob.ErrPermission)
}

// signature returns a SAS for all of the container.
func signature(t testing.TB, srv *fakeaz.Server, end time.Time) string {
	t.Helper()
	key, err := container.NewSharedKeyCredential(srv.Account(), fakeaz.DefaultKey())
	if err != nil {
		t.Fatal(err)
	}
	q, err := sas.BlobSignatureValues{
		Protocol: sas.ProtocolHTTPSandHTTP, ContainerName: "box", ExpiryTime: end.UTC(),
		Permissions: (&sas.ContainerPermissions{Read: true, Add: true, Create: true, Write: true, Delete: true, List: true}).String(),
	}.SignWithSharedKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return q.Encode()
}
