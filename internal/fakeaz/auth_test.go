package fakeaz_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/wholeblob/wholeblob/internal/fakeaz"
)

// signed makes a GET that is right, for a test to spoil.
func signed(t *testing.T, f *conf, name string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.at(name, "timeout=30&snapshot="), nil)
	must(t, err)
	req.Header.Set("x-ms-version", "2021-12-02")
	f.sign(req)
	return req
}

func TestEveryPartOfASignedRequestCounts(t *testing.T) {
	s := start(t, fakeaz.Options{})
	f := raw(t, s)
	s.PutBlob("cont", "a b", []byte("1"), nil)
	for name, tc := range map[string]struct {
		spoil  func(*http.Request)
		status int
		code   string
	}{
		"nothing": {func(*http.Request) {}, 200, ""},
		"path": {func(r *http.Request) {
			r.URL.RawPath = strings.Replace(r.URL.EscapedPath(), "%20", "%2020", 1)
			r.URL.Path += "20"
		}, 403, "AuthenticationFailed"},
		"query":      {func(r *http.Request) { r.URL.RawQuery = "timeout=31&snapshot=" }, 403, "AuthenticationFailed"},
		"more query": {func(r *http.Request) { r.URL.RawQuery += "&versionid=" }, 403, "AuthenticationFailed"},
		"header":     {func(r *http.Request) { r.Header.Set("x-ms-range", "bytes=0-0") }, 403, "AuthenticationFailed"},
		"range":      {func(r *http.Request) { r.Header.Set("Range", "bytes=0-0") }, 403, "AuthenticationFailed"},
		"condition":  {func(r *http.Request) { r.Header.Set("If-Match", "*") }, 403, "AuthenticationFailed"},
		"method":     {func(r *http.Request) { r.Method = http.MethodDelete }, 403, "AuthenticationFailed"},
		"date":       {func(r *http.Request) { r.Header.Del("x-ms-date") }, 403, "AuthenticationFailed"},
		"account": {func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "fake", "real", 1))
		}, 403, "AuthenticationFailed"},
		"version":        {func(r *http.Request) { r.Header.Del("x-ms-version") }, 400, "MissingRequiredHeader"},
		"scheme":         {func(r *http.Request) { r.Header.Set("Authorization", "Basic x") }, 400, "InvalidAuthenticationInfo"},
		"no signature":   {func(r *http.Request) { r.Header.Set("Authorization", "SharedKey x") }, 400, "InvalidAuthenticationInfo"},
		"nothing at all": {func(r *http.Request) { r.Header.Del("Authorization") }, 401, "NoAuthenticationInformation"},
		"token in clear": {func(r *http.Request) { r.Header.Set("Authorization", "Bearer good") }, 403, "AuthenticationFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			req := signed(t, f, "a b")
			tc.spoil(req)
			r := f.send(req)
			if tc.code == "" {
				report(t, r.holds(tc.status, "1"))
				return
			}
			report(t, r.refused(tc.status, tc.code))
		})
	}
	if _, ok := s.Blob("cont", "a b"); !ok {
		t.Error("a refused request had an effect")
	}
}

func TestEitherOfTwoKeysIsAccepted(t *testing.T) {
	s := start(t, fakeaz.Options{Keys: []string{blockID("one"), blockID("two")}})
	f := raw(t, s)
	for _, key := range []string{"one", "two"} {
		f.key = blockID(key)
		report(t, f.put("k", "1").is(201))
	}
	s.SetKeys(blockID("one"))
	report(t, f.put("k", "1").refused(403, "AuthenticationFailed"))
	if _, err := fakeaz.Start(fakeaz.Options{Keys: []string{"!"}}); err == nil {
		t.Error("a key that is not base64 is taken")
	}
}

func TestAnAccountSASIsCheckedForWhatItAllows(t *testing.T) {
	s := start(t, fakeaz.Options{})
	s.PutBlob("cont", "k", []byte("1"), nil)
	cred, err := service.NewSharedKeyCredential(s.Account(), fakeaz.DefaultKey())
	must(t, err)
	f := raw(t, s)
	ask := func(v sas.AccountSignatureValues, method, what string) reply {
		v.ExpiryTime = time.Now().Add(time.Hour)
		q, err := v.SignWithSharedKey(cred)
		must(t, err)
		req, err := http.NewRequestWithContext(t.Context(), method, f.endpoint+what+q.Encode(), nil)
		must(t, err)
		return f.send(req)
	}
	objects := sas.AccountSignatureValues{Permissions: "r", ResourceTypes: "o"}
	list := "/cont?restype=container&comp=list&"
	report(t, ask(objects, "GET", "/cont/k?").holds(200, "1"),
		ask(objects, "DELETE", "/cont/k?").refused(403, "AuthorizationPermissionMismatch"),
		ask(objects, "GET", list).refused(403, "AuthorizationResourceTypeMismatch"),
		ask(sas.AccountSignatureValues{Permissions: "l", ResourceTypes: "c"}, "GET", list).is(200),
		ask(sas.AccountSignatureValues{Permissions: "r", ResourceTypes: "o", Protocol: sas.ProtocolHTTPS}, "GET", "/cont/k?").refused(403, "AuthorizationProtocolMismatch"),
		ask(sas.AccountSignatureValues{Permissions: "r", ResourceTypes: "o", StartTime: time.Now().Add(time.Minute)}, "GET", "/cont/k?").refused(403, "AuthenticationFailed"))
}

func TestABlobSASIsForOneBlobOnly(t *testing.T) {
	s := start(t, fakeaz.Options{})
	for _, k := range []string{"a/ü", "b"} {
		s.PutBlob("cont", k, []byte("1"), nil)
	}
	u, err := sdkClient(t, s).NewBlockBlobClient("a/ü").GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	must(t, err)
	f := raw(t, s)
	ask := func(u string) reply {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u, nil)
		must(t, err)
		return f.send(req)
	}
	report(t, ask(u).holds(200, "1"))
	_, query, ok := strings.Cut(u, "?")
	if !ok {
		t.Fatal(errors.New("no query"))
	}
	report(t, ask(f.at("b", query)).refused(403, "AuthenticationFailed"), ask(f.endpoint+"/cont?restype=container&comp=list&"+query).refused(403, "AuthenticationFailed"))
}
