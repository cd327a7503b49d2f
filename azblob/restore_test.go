package azblob_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// client is the SDK's own, for what the Store does not do.
func client(t testing.TB, srv *fakeaz.Server) *container.Client {
	t.Helper()
	key, err := container.NewSharedKeyCredential(srv.Account(), fakeaz.DefaultKey())
	if err != nil {
		t.Fatal(err)
	}
	tr := srv.Client()
	t.Cleanup(tr.CloseIdleConnections)
	c, err := container.NewClientWithSharedKeyCredential(srv.Endpoint()+"/box", key, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: tr, Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func snapshot(t testing.TB, srv *fakeaz.Server, key string) {
	t.Helper()
	if _, err := client(t, srv).NewBlobClient(key).CreateSnapshot(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// Restore brings back the newest state of a deleted key, and nothing of the keys that begin with its name; again and again, and after a
// reply was lost.
func TestRestore(t *testing.T) {
	for keeps, knobs := range map[azblob.Keeps]fakeaz.Knobs{
		azblob.KeepsDeleted:  {Retention: time.Hour},
		azblob.KeepsVersions: {Versioning: true},
	} {
		for _, pages := range []fakeaz.Knobs{{}, {PageSize: 1, EmptyPages: true}} {
			knobs.PageSize, knobs.EmptyPages = pages.PageSize, pages.EmptyPages
			t.Run(string(keeps), func(t *testing.T) {
				srv := fake(t, fakeaz.Options{Knobs: knobs})
				st := open(t, srv, func(o *azblob.Options) { small(o); o.Restore = keeps; o.Prefix = "team" })
				set(t, st, "key2", content(3), nil)
				if err := st.Delete(t.Context(), "key2", nil); err != nil {
					t.Fatal(err)
				}
				for _, data := range [][]byte{content(10), content(3 * smallPart)} {
					set(t, st, "key", content(1), nil)
					set(t, st, "key", data, &blob.SetOptions{Metadata: map[string]string{"m": "v"}})
					if err := st.Delete(t.Context(), "key", nil); err != nil {
						t.Fatal(err)
					}
					lost := srv.Inject(fakehttp.Fault{Op: map[azblob.Keeps]string{azblob.KeepsDeleted: "UndeleteBlob", azblob.KeepsVersions: "CopyBlob"}[keeps], After: fakehttp.Reset})
					for range 2 {
						info, err := st.Restore(t.Context(), "key")
						if err != nil || info.Size != int64(len(data)) || info.Metadata["m"] != "v" {
							t.Fatalf("Restore: %+v, %v", info, err)
						}
					}
					if lost.Hits() != 1 {
						t.Error("no reply was lost")
					}
					if got := get(t, st, "key"); string(got.Data) != string(data) {
						t.Errorf("restored %d bytes, want %d", len(got.Data), len(data))
					}
				}
				_, err := st.Stat(t.Context(), "key2")
				wantKind(t, err, blob.ErrNotFound)
				_, err = st.Restore(t.Context(), "never")
				wantKind(t, err, blob.ErrNotFound)
			})
		}
	}
}

// Restore never overwrites what somebody has written meanwhile.
func TestRestoreBesideASet(t *testing.T) {
	for keeps, knobs := range map[azblob.Keeps]fakeaz.Knobs{
		azblob.KeepsDeleted:  {Retention: time.Hour},
		azblob.KeepsVersions: {Versioning: true},
	} {
		srv := fake(t, fakeaz.Options{Knobs: knobs})
		st := open(t, srv, func(o *azblob.Options) { o.Restore = keeps })
		set(t, st, "k", []byte("old"), nil)
		if err := st.Delete(t.Context(), "k", nil); err != nil {
			t.Fatal(err)
		}
		srv.Inject(fakehttp.Fault{Op: "ListBlobs", Then: func() { srv.PutBlob("box", "k", []byte("new one"), nil) }})
		info, err := st.Restore(t.Context(), "k")
		if err != nil || info.Size != 7 {
			t.Errorf("%s: %+v, %v", keeps, info, err)
		}
		if got := get(t, st, "k"); string(got.Data) != "new one" {
			t.Errorf("%s: %q", keeps, got.Data)
		}
	}
}

// Restore looks no further than the key's own entries.
func TestRestoreListsOneKey(t *testing.T) {
	srv := fake(t, fakeaz.Options{Knobs: fakeaz.Knobs{Versioning: true, PageSize: 2}})
	st := open(t, srv, func(o *azblob.Options) { o.Restore = azblob.KeepsVersions })
	for i := range 30 {
		srv.PutBlob("box", fmt.Sprintf("k-%d", i), nil, nil)
	}
	set(t, st, "k", nil, nil)
	if err := st.Delete(t.Context(), "k", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Restore(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	if n := srv.Log().Count("ListBlobs"); n != 1 {
		t.Errorf("%d listings", n)
	}
}

// The source of a copy is an address with the signature in it, and an error of the copy keeps it out of the request that it shows.
func TestRestoreShowsNoSignature(t *testing.T) {
	srv := fake(t, fakeaz.Options{Knobs: fakeaz.Knobs{Versioning: true}})
	token := signature(t, srv, time.Now().Add(time.Hour))
	st := open(t, srv, func(o *azblob.Options) { o.AccountKey, o.SAS, o.Restore = "", token, azblob.KeepsVersions })
	set(t, st, "k", nil, nil)
	if err := st.Delete(t.Context(), "k", nil); err != nil {
		t.Fatal(err)
	}
	srv.Inject(fakehttp.Fault{Op: "CopyBlob", Times: -1, Reply: &fakehttp.Reply{Status: 403, Code: "AuthorizationFailure"}})
	_, err := st.Restore(t.Context(), "k")
	var reply *azcore.ResponseError
	if !errors.As(err, &reply) {
		t.Fatal(err)
	}
	q, err := url.ParseQuery(token)
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v", reply, reply.RawResponse.Request)
	for _, sig := range []string{q.Get("sig"), url.QueryEscape(q.Get("sig"))} {
		if strings.Contains(shown, sig) {
			t.Errorf("the signature %s is shown: %s", sig, shown)
		}
	}
}
