package fakeaz_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/wholeblob/wholeblob/internal/fakeaz"
)

// The official client was written by others: what it makes of the server's answers is evidence that this package's own
// tests are not.

// start runs a server that ends with the test.
func start(t *testing.T, opts fakeaz.Options) *fakeaz.Server {
	t.Helper()
	if opts.Containers == nil {
		opts.Containers = []string{"cont"}
	}
	s := fakeaz.New(opts)
	t.Cleanup(s.Close)
	return s
}

func sdkOptions(t *testing.T, hc *http.Client) azcore.ClientOptions {
	t.Helper()
	t.Cleanup(hc.CloseIdleConnections)
	return azcore.ClientOptions{Transport: hc, Retry: policy.RetryOptions{MaxRetries: -1}}
}

// sdkKey is a client with the account's key, for one container under an address of the account.
func sdkKey(t *testing.T, hc *http.Client, endpoint, account, key, cont string) *container.Client {
	t.Helper()
	cred, err := container.NewSharedKeyCredential(account, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+cont, cred, &container.ClientOptions{ClientOptions: sdkOptions(t, hc)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sdkClient(t *testing.T, s *fakeaz.Server) *container.Client {
	t.Helper()
	return sdkKey(t, s.Client(), s.Endpoint(), s.Account(), fakeaz.DefaultKey(), "cont")
}

func body(b string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(b)) }

func refusedBy(t *testing.T, what string, err error, status int, code string) {
	t.Helper()
	var re *azcore.ResponseError
	if !errors.As(err, &re) || re.StatusCode != status || re.ErrorCode != code {
		t.Errorf("%s: %v, want %d %s", what, err, status, code)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sdkRead(t *testing.T, b *blockblob.Client) string {
	t.Helper()
	resp, err := b.DownloadStream(t.Context(), nil)
	must(t, err)
	data, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	return string(data)
}

func TestTheOfficialClientPutsAndReads(t *testing.T) {
	s := start(t, fakeaz.Options{})
	c := sdkClient(t, s)
	name := "dir/a b+c%2F%25~=ü☃.txt"
	b := c.NewBlockBlobClient(name)
	value := "value"
	up, err := b.Upload(t.Context(), body("hello"), &blockblob.UploadOptions{
		Metadata:    map[string]*string{"key1": &value},
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &value},
	})
	must(t, err)
	if got := sdkRead(t, b); got != "hello" {
		t.Errorf("content %q", got)
	}
	props, err := b.GetProperties(t.Context(), nil)
	must(t, err)
	if *props.ETag != *up.ETag || *props.ContentLength != 5 || *props.ContentType != "value" || *props.Metadata["Key1"] != "value" || *props.BlobType != "BlockBlob" {
		t.Errorf("properties %+v", props)
	}
	part, err := b.DownloadStream(t.Context(), &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 1, Count: 3}})
	must(t, err)
	data, err := io.ReadAll(part.Body)
	must(t, err)
	must(t, part.Body.Close())
	if string(data) != "ell" || *part.ContentRange != "bytes 1-3/5" {
		t.Errorf("range %q, %s", data, *part.ContentRange)
	}
	if _, ok := s.Blob("cont", name); !ok {
		t.Error("the name did not survive")
	}
}

func TestTheOfficialClientUploadsInBlocks(t *testing.T) {
	s := start(t, fakeaz.Options{})
	c := sdkClient(t, s)
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	b := c.NewBlockBlobClient("big")
	_, err := b.UploadStream(t.Context(), bytes.NewReader(want), &blockblob.UploadStreamOptions{
		BlockSize: 1 << 20, Concurrency: 2, TransactionalValidation: blob.TransferValidationTypeComputeCRC64(),
	})
	must(t, err)
	if got := sdkRead(t, b); got != string(want) {
		t.Error("the content differs")
	}
	list, err := b.GetBlockList(t.Context(), blockblob.BlockListTypeAll, nil)
	must(t, err)
	if len(list.CommittedBlocks) != 4 || len(list.UncommittedBlocks) != 0 || *list.BlobContentLength != int64(len(want)) {
		t.Errorf("block list %+v", list)
	}
	into := make([]byte, len(want))
	n, err := b.DownloadBuffer(t.Context(), into, &blob.DownloadBufferOptions{BlockSize: 1_000_000, Concurrency: 2})
	must(t, err)
	if n != int64(len(want)) || !bytes.Equal(into, want) {
		t.Error("the download differs")
	}
}

func TestTheOfficialClientMeetsConditions(t *testing.T) {
	s := start(t, fakeaz.Options{})
	b := sdkClient(t, s).NewBlockBlobClient("k")
	absent := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}}
	first, err := b.Upload(t.Context(), body("1"), &blockblob.UploadOptions{AccessConditions: absent})
	must(t, err)
	_, err = b.Upload(t.Context(), body("2"), &blockblob.UploadOptions{AccessConditions: absent})
	refusedBy(t, "create again", err, 409, "BlobAlreadyExists")
	match := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: first.ETag}}
	_, err = b.Upload(t.Context(), body("3"), &blockblob.UploadOptions{AccessConditions: match})
	must(t, err)
	_, err = b.Upload(t.Context(), body("4"), &blockblob.UploadOptions{AccessConditions: match})
	refusedBy(t, "replace what has changed", err, 412, "ConditionNotMet")
	_, err = b.Delete(t.Context(), &blob.DeleteOptions{AccessConditions: match})
	refusedBy(t, "delete what has changed", err, 412, "ConditionNotMet")
	_, err = b.GetProperties(t.Context(), &blob.GetPropertiesOptions{AccessConditions: match})
	refusedBy(t, "head what has changed", err, 412, "ConditionNotMet")
	if got := sdkRead(t, b); got != "3" {
		t.Errorf("content %q", got)
	}
}

func TestTheOfficialClientLists(t *testing.T) {
	s := start(t, fakeaz.Options{Knobs: fakeaz.Knobs{PageSize: 2, EmptyPages: true}})
	c := sdkClient(t, s)
	names := []string{"a", "a/", "a/b", "a//c", "a<&>\"'", "d/e/f", "d/e/g", "x\ufffe", "ü", "～", "😀"}
	for _, n := range names {
		s.PutBlob("cont", n, []byte(n), &fakeaz.PutOptions{Metadata: map[string]string{"Mixed": "v"}})
	}
	var got []string
	for pager := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}}); pager.More(); {
		page, err := pager.NextPage(t.Context())
		must(t, err)
		for _, it := range page.Segment.BlobItems {
			got = append(got, *it.Name)
			if *it.Properties.ContentLength != int64(len(*it.Name)) || *it.Metadata["mixed"] != "v" {
				t.Errorf("%q: %+v", *it.Name, it.Properties)
			}
		}
	}
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("have %q, want %q", got, names)
	}
	got = nil
	for pager := c.NewListBlobsHierarchyPager("/", nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		must(t, err)
		for _, it := range page.Segment.BlobItems {
			got = append(got, *it.Name)
		}
		for _, it := range page.Segment.BlobPrefixes {
			got = append(got, *it.Name)
		}
	}
	if want := []string{"a", "a/", "a<&>\"'", "d/", "x\ufffe", "ü", "～", "😀"}; !slices.Equal(got, want) {
		t.Errorf("have %q, want %q", got, want)
	}
}

func TestTheOfficialClientDeletesAndUndeletes(t *testing.T) {
	s := start(t, fakeaz.Options{Knobs: fakeaz.Knobs{Retention: 24 * time.Hour}})
	c := sdkClient(t, s)
	b := c.NewBlockBlobClient("k")
	_, err := b.Upload(t.Context(), body("1"), nil)
	must(t, err)
	_, err = b.Delete(t.Context(), nil)
	must(t, err)
	_, err = b.GetProperties(t.Context(), nil)
	refusedBy(t, "head of a deleted blob", err, 404, "BlobNotFound")
	pager := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Deleted: true}})
	page, err := pager.NextPage(t.Context())
	must(t, err)
	if its := page.Segment.BlobItems; len(its) != 1 || !*its[0].Deleted || *its[0].Properties.RemainingRetentionDays != 1 {
		t.Errorf("listing of the deleted: %+v", its)
	}
	_, err = b.Undelete(t.Context(), nil)
	must(t, err)
	if got := sdkRead(t, b); got != "1" {
		t.Errorf("content %q", got)
	}
	_, err = c.NewBlockBlobClient("none").Undelete(t.Context(), nil)
	refusedBy(t, "undelete nothing", err, 404, "BlobNotFound")
}

func TestTheOfficialClientPromotesAVersion(t *testing.T) {
	s := start(t, fakeaz.Options{Knobs: fakeaz.Knobs{Versioning: true}})
	c := sdkClient(t, s)
	b := c.NewBlockBlobClient("k/ü")
	first, err := b.Upload(t.Context(), body("1"), nil)
	must(t, err)
	_, err = b.Upload(t.Context(), body("2"), nil)
	must(t, err)
	_, err = b.Delete(t.Context(), nil)
	must(t, err)
	old, err := b.WithVersionID(*first.VersionID)
	must(t, err)
	if got := sdkRead(t, old); got != "1" {
		t.Errorf("old version %q", got)
	}
	_, err = b.StartCopyFromURL(t.Context(), old.URL(), nil)
	must(t, err)
	if got := sdkRead(t, b); got != "1" {
		t.Errorf("promoted %q", got)
	}
	page, err := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Versions: true}}).NextPage(t.Context())
	must(t, err)
	if its := page.Segment.BlobItems; len(its) != 3 || *its[0].VersionID != *first.VersionID || its[1].IsCurrentVersion != nil || !*its[2].IsCurrentVersion {
		t.Errorf("versions %+v", its)
	}
	_, err = b.CopyFromURL(t.Context(), old.URL(), nil)
	refusedBy(t, "Copy Blob From URL of a private source without a SAS", err, 404, "CannotVerifyCopySource")
}

func TestTheOfficialClientDeletesInBatches(t *testing.T) {
	s := start(t, fakeaz.Options{})
	c := sdkClient(t, s)
	names := []string{"a", "b/c", "d e+f%2F", "missing", "ü"}
	bb, err := c.NewBatchBuilder()
	must(t, err)
	for _, n := range names {
		if n != "missing" {
			s.PutBlob("cont", n, nil, nil)
		}
		must(t, bb.Delete(n, nil))
	}
	resp, err := c.SubmitBatch(t.Context(), bb, nil)
	must(t, err)
	for i, r := range resp.Responses {
		if names[i] == "missing" {
			refusedBy(t, "the missing one", r.Error, 404, "BlobNotFound")
		} else if r.Error != nil || *r.ContentID != i {
			t.Errorf("%q: %v", names[i], r.Error)
		}
	}
	if len(s.Objects("cont")) != 0 || s.Log()[0].Keys != len(names) {
		t.Error("something is left, or the log does not count")
	}
}

func TestTheOfficialClientUsesASAS(t *testing.T) {
	s := start(t, fakeaz.Options{})
	s.PutBlob("cont", "k", []byte("1"), nil)
	key := sdkClient(t, s)
	with := func(perm sas.ContainerPermissions, until time.Duration) *container.Client {
		u, err := key.GetSASURL(perm, time.Now().Add(until), nil)
		must(t, err)
		c, err := container.NewClientWithNoCredential(u, &container.ClientOptions{ClientOptions: sdkOptions(t, s.Client())})
		must(t, err)
		return c
	}
	all := with(sas.ContainerPermissions{Read: true, Write: true, List: true, Delete: true}, time.Hour)
	_, err := all.NewBlockBlobClient("ü b").Upload(t.Context(), body("2"), nil)
	must(t, err)
	if got := sdkRead(t, all.NewBlockBlobClient("k")); got != "1" {
		t.Errorf("content %q", got)
	}
	_, err = all.NewListBlobsFlatPager(nil).NextPage(t.Context())
	must(t, err)
	bb, err := all.NewBatchBuilder()
	must(t, err)
	must(t, bb.Delete("ü b", nil))
	resp, err := all.SubmitBatch(t.Context(), bb, nil)
	must(t, err)
	must(t, resp.Responses[0].Error)

	reader := with(sas.ContainerPermissions{Read: true}, time.Hour)
	_, err = reader.NewBlockBlobClient("k").Upload(t.Context(), body("2"), nil)
	refusedBy(t, "write with a reader's SAS", err, 403, "AuthorizationPermissionMismatch")
	creator := with(sas.ContainerPermissions{Create: true}, time.Hour)
	_, err = creator.NewBlockBlobClient("k").Upload(t.Context(), body("2"), nil)
	refusedBy(t, "overwrite with a creator's SAS", err, 403, "AuthorizationPermissionMismatch")
	_, err = creator.NewBlockBlobClient("new").Upload(t.Context(), body("2"), nil)
	must(t, err)
	expired := with(sas.ContainerPermissions{Read: true}, -time.Hour)
	_, err = expired.NewBlockBlobClient("k").DownloadStream(t.Context(), nil)
	refusedBy(t, "an expired SAS", err, 403, "AuthenticationFailed")
}

type token string

func (k token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(k), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func TestTheOfficialClientUsesABearerTokenOverTLS(t *testing.T) {
	s := start(t, fakeaz.Options{TLS: true, Tokens: []string{"good"}})
	s.PutBlob("cont", "k", []byte("1"), nil)
	for _, tc := range []struct {
		token string
		code  string
	}{{"good", ""}, {"bad", "InvalidAuthenticationInfo"}} {
		c, err := container.NewClient(s.Endpoint()+"/cont", token(tc.token), &container.ClientOptions{ClientOptions: sdkOptions(t, s.Client())})
		must(t, err)
		_, err = c.NewBlockBlobClient("k").GetProperties(t.Context(), nil)
		if tc.code != "" {
			refusedBy(t, "a bad token", err, 401, tc.code)
		} else {
			must(t, err)
		}
	}
}

func TestTheOfficialClientAddressesHostStyle(t *testing.T) {
	s := start(t, fakeaz.Options{TLS: true, InMemory: true})
	c := sdkKey(t, s.Client(), "https://"+s.Account()+".blob.core.windows.net", s.Account(), fakeaz.DefaultKey(), "cont")
	b := c.NewBlockBlobClient("a/b c")
	_, err := b.Upload(t.Context(), body("1"), nil)
	must(t, err)
	if got := sdkRead(t, b); got != "1" {
		t.Errorf("content %q", got)
	}
	bb, err := c.NewBatchBuilder()
	must(t, err)
	must(t, bb.Delete("a/b c", nil))
	resp, err := c.SubmitBatch(t.Context(), bb, nil)
	must(t, err)
	must(t, resp.Responses[0].Error)
}

func TestTheOfficialClientWithAWrongKeyOrClockIsRefused(t *testing.T) {
	s := start(t, fakeaz.Options{})
	c := sdkKey(t, s.Client(), s.Endpoint(), s.Account(), base64.StdEncoding.EncodeToString([]byte("another")), "cont")
	_, err := c.GetProperties(t.Context(), nil)
	refusedBy(t, "a wrong key", err, 403, "AuthenticationFailed")
	late := start(t, fakeaz.Options{Now: func() time.Time { return time.Now().Add(16 * time.Minute) }})
	_, err = sdkClient(t, late).NewBlockBlobClient("k").Upload(t.Context(), body("1"), nil)
	refusedBy(t, "a wrong clock", err, 403, "AuthenticationFailed")
	if _, ok := late.Blob("cont", "k"); ok {
		t.Error("a refused write was kept")
	}
}
