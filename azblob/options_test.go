package azblob_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/retry"
)

const key64 = "aHVudGVyMmh1bnRlcjI=" // of "hunter2hunter2"

// Every wrong option is refused by name, before any request, and without showing a secret.
func TestWrongOptionsAreRefusedByName(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	for _, c := range []struct {
		container, names string
		edit             func(*azblob.Options)
	}{
		{"", "container", nil},
		{"ab", "container", nil},
		{"Box", "container", nil},
		{"a/b", "container", nil},
		{"a--b", "container", nil},
		{"-ab", "container", nil},
		{"$root", "container", nil},
		{strings.Repeat("b", 64), "container", nil},
		{"box", "PartSize", func(o *azblob.Options) { o.PartSize = -1 }},
		{"box", "PartSize", func(o *azblob.Options) { o.PartSize = 4001 << 20 }},
		{"box", "Threshold", func(o *azblob.Options) { o.Threshold = 5001 << 20 }},
		{"box", "Segment", func(o *azblob.Options) { o.Segment = -1 }},
		{"box", "Concurrency", func(o *azblob.Options) { o.Concurrency = -1 }},
		{"box", "Restarts", func(o *azblob.Options) { o.Restarts = -2 }},
		{"box", "MaxGet", func(o *azblob.Options) { o.MaxGet = -1 }},
		{"box", "Endpoint", func(o *azblob.Options) { o.Endpoint = "localhost:10000" }},
		{"box", "Endpoint", func(o *azblob.Options) { o.Endpoint = "http://user:hunter2@localhost" }},
		{"box", "Endpoint", func(o *azblob.Options) { o.Endpoint = "https://a.blob.core.windows.net/?sig=hunter2" }},
		{"box", "neither Account nor Endpoint", func(o *azblob.Options) { *o = azblob.Options{} }},
		{"box", "Account", func(o *azblob.Options) { o.Endpoint, o.Account = "", "a.evil.example/" }},
		{"box", "Account", func(o *azblob.Options) { o.Account = "a/b" }},
		{"box", "Account", func(o *azblob.Options) { o.Endpoint, o.Account = "http://127.0.0.1:1", "" }},
		{"box", "AccountKey", func(o *azblob.Options) { o.AccountKey = "hunter2 is no base64" }},
		{"box", "SAS", func(o *azblob.Options) { o.AccountKey, o.SAS = "", "sv=1&hunter2=%zz" }},
		{"box", "SAS", func(o *azblob.Options) { o.AccountKey, o.SAS = "", "https://a.blob.core.windows.net/?sv=1&sig=hunter2" }},
		{"box", "exclude", func(o *azblob.Options) { o.SAS = "sig=hunter2" }},
		{"box", "exclude", func(o *azblob.Options) { o.Anonymous = true }},
		{"box", "ManagedIdentity", func(o *azblob.Options) { o.ClientID = "id" }},
		{"box", "plain HTTP", func(o *azblob.Options) { o.AccountKey = "" }},
		{"box", "plain HTTP", func(o *azblob.Options) { o.AccountKey, o.ManagedIdentity = "", true }},
		{"box", "plain HTTP", func(o *azblob.Options) { o.AccountKey, o.Credential = "", &giver{} }},
		{"box", "plain HTTP", func(o *azblob.Options) {
			o.AccountKey, o.SAS, o.Endpoint = "", "sig=hunter2", "HTTP://azure.example/acc"
		}},
		{"box", "ConnectionString", func(o *azblob.Options) { o.AccountKey, o.ConnectionString = "", "AccountName=acc;AccountKey="+key64 }},
		{"box", "APIVersion", func(o *azblob.Options) { o.APIVersion = "latest" }},
		{"box", "Conditions", func(o *azblob.Options) { o.Conditions = "maybe" }},
		{"box", "Restore", func(o *azblob.Options) { o.Restore = "true" }},
		{"box", "prefix", func(o *azblob.Options) { o.Prefix = "a/../b" }},
		{"box", "Attempt", func(o *azblob.Options) { o.Retry = retry.Policy{Attempt: time.Minute, Total: time.Second} }},
	} {
		o := options(srv)
		if c.edit != nil {
			c.edit(o)
		}
		_, err := azblob.New(t.Context(), c.container, o)
		if !errors.Is(err, blob.ErrInvalidOption) || !strings.Contains(err.Error(), c.names) {
			t.Errorf("container %q, %s: got %v", c.container, c.names, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
	if n := len(srv.Log()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// A connection string says all that a store needs, and a wrong one is refused by its fault alone.
func TestConnectionString(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	st, err := azblob.New(t.Context(), "box", &azblob.Options{
		ConnectionString: "DefaultEndpointsProtocol=http;AccountName=" + srv.Account() + ";AccountKey=" + fakeaz.DefaultKey() + ";BlobEndpoint=" + srv.Endpoint() +
			"/;QueueEndpoint=http://127.0.0.1:1/;",
		Conditions: azblob.TrustYes,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	set(t, st, "k", content(5), &blob.SetOptions{If: blob.IfAbsent()})
	for cs, names := range map[string]string{
		"hunter2": "Name=value",
		"AccountName=acc;AccountName=acc;AccountKey=" + key64: "twice",
		"AccountName=acc;hunter2=1;AccountKey=" + key64:       "unknown",
		"AccountName=acc": "neither",
		"AccountName=acc;AccountKey=" + key64 + ";SharedAccessSignature=sig=hunter2": "both",
		"UseDevelopmentStorage=true":                                       "unknown",
		"AccountName=acc;DefaultEndpointsProtocol=ftp;AccountKey=" + key64: "Endpoint",
		"AccountKey=" + key64:                                              "neither",
		"AccountName=acc;AccountKey=hunter2!":                              "AccountKey",
		"BlobEndpoint=https://acc.blob.core.windows.net/;SharedAccessSignature=sv=1&no=hunter2": "SAS",
	} {
		_, err := azblob.New(t.Context(), "box", &azblob.Options{ConnectionString: cs})
		if !errors.Is(err, blob.ErrInvalidOption) || !strings.Contains(err.Error(), names) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error that names %q and shows no secret", cs, err, names)
		}
	}
}

// Conditions are trusted on Azure's own endpoints, of every cloud, and nowhere else unless somebody vouches for them.
func TestWhereConditionsAreTrusted(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"":                                       true,
		"https://acc.blob.core.windows.net":      true,
		"https://acc.z01.blob.storage.azure.net": true,
		"https://acc.privatelink.blob.core.windows.net":    true,
		"https://acc.blob.core.usgovcloudapi.net":          true,
		"https://acc.blob.core.chinacloudapi.cn":           true,
		"https://acc.BLOB.core.windows.net":                true,
		"https://blob.core.windows.net.evil.example":       false,
		"https://evil.example/acc.blob.core.windows.net":   false,
		"http://127.0.0.1:10000/acc":                       false,
		"https://accblob.core.windows.net.evil.example:80": false,
	} {
		st, err := azblob.New(t.Context(), "box", &azblob.Options{Account: "acc", Endpoint: endpoint, Anonymous: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeStore(t, st) })
		if got := st.Capabilities().Conditions; got != want {
			t.Errorf("%q: %v", endpoint, got)
		}
	}
	srv := fake(t, fakeaz.Options{})
	st := open(t, srv, func(o *azblob.Options) { o.Conditions = azblob.TrustAuto })
	_, err := st.Set(t.Context(), "k", blob.Bytes(nil), &blob.SetOptions{If: blob.IfAbsent()})
	wantKind(t, err, blob.ErrUnsupported)
	wantKind(t, st.Delete(t.Context(), "k", &blob.DeleteOptions{If: blob.IfVersion("v")}), blob.ErrUnsupported)
	if len(srv.Log()) > 0 {
		t.Errorf("requests: %s", srv.Log())
	}
}

func TestParseURL(t *testing.T) {
	name, o, err := azblob.ParseURL("azblob://box/a/b?account=acc&endpoint=http://127.0.0.1:1/acc&api_version=2025-01-05&conditions=trust&restore=versions" +
		"&part_size=5MiB&threshold=6MiB&segment=7MiB&gap=8KiB&concurrency=3&in_flight=9&stall=5s&max_get=1GiB&retry_attempts=2&retry_attempt=1s&retry_total=1m")
	if err != nil {
		t.Fatal(err)
	}
	want := azblob.Options{
		Prefix: "a/b", Account: "acc", Endpoint: "http://127.0.0.1:1/acc", APIVersion: "2025-01-05", Conditions: azblob.TrustYes, Restore: azblob.KeepsVersions,
		PartSize: 5 << 20, Threshold: 6 << 20, Segment: 7 << 20, Gap: 8 << 10, Concurrency: 3, InFlight: 9, Stall: 5 * time.Second, MaxGet: 1 << 30,
		Retry: retry.Policy{Attempts: 2, Attempt: time.Second, Total: time.Minute},
	}
	if name != "box" || *o != want {
		t.Errorf("got %q, %+v\nwant %+v", name, o, want)
	}
	if _, o, err := azblob.ParseURL("azblob://box?account=acc&managed_identity=true&client_id=id"); err != nil || !o.ManagedIdentity || o.ClientID != "id" || o.Anonymous {
		t.Errorf("%+v, %v", o, err)
	}
	for raw, names := range map[string]string{
		"http://box":                                                       "scheme",
		"azblob://":                                                        "container",
		"azblob:///prefix?account=acc":                                     "container",
		"azblob://box":                                                     "Account",
		"azblob://Box?account=acc":                                         "container",
		"azblob://box?account=acc&nope=1":                                  "nope",
		"azblob://box?account=acc&account=acc":                             "account",
		"azblob://box?account=acc&part_size=5mb":                           "part_size",
		"azblob://box?account=acc&part_size=-1":                            "part_size",
		"azblob://box?account=acc&stall=fast":                              "stall",
		"azblob://box?account=acc&concurrency=0":                           "concurrency",
		"azblob://box?account=acc&restore=true":                            "restore",
		"azblob://box?account=acc&conditions=maybe":                        "conditions",
		"azblob://box?account=acc&endpoint=ftp://x":                        "endpoint",
		"azblob://box/a/../b?account=acc":                                  "prefix",
		"azblob://acc:hunter2@box":                                         "user",
		"azblob://box?account=acc&account_key=hunter2":                     "account_key",
		"azblob://box?account=acc&sig=hunter2":                             "sig",
		"azblob://box?account=acc&client_id=id":                            "ClientID",
		"azblob://box?account=acc&api_version=new":                         "APIVersion",
		"azblob://box?account=acc&retry_attempt=2m&retry_total=1m":         "Attempt",
		"azblob://box?endpoint=http://127.0.0.1:1/a&managed_identity=true": "plain HTTP",
	} {
		_, _, err := azblob.ParseURL(raw)
		if !errors.Is(err, blob.ErrInvalidOption) || !strings.Contains(err.Error(), names) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error that names %q and shows no secret", raw, err, names)
		}
	}
}

// Nothing of one store's options reaches another's, nor changes with the caller's afterwards (google/go-cloud #2851).
func TestOptionsAreCopied(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	o := options(srv)
	before := *o
	st, err := azblob.New(t.Context(), "box", o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	if *o != before {
		t.Errorf("New changed the options to %v", o)
	}
	o.Endpoint, o.AccountKey = "http://127.0.0.1:1", ""
	set(t, st, "k", nil, nil)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			raw := "azblob://box?account=acc"
			if i%2 == 0 {
				raw += "&endpoint=http://127.0.0.1:1/other"
			}
			if _, o, err := azblob.ParseURL(raw); err != nil || (o.Endpoint != "") != (i%2 == 0) {
				t.Errorf("%s: %+v, %v", raw, o, err)
			}
		})
	}
	all.Wait()
}

// Keys, signatures and tokens show in no error, no log line and no way of printing the options, wherever a transport or the SDK quote a URL.
func TestCredentialsAreNeverShown(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	show := func(errs ...error) {
		for _, err := range errs {
			if err == nil {
				t.Error("no error to look at")
			}
			fmt.Fprintf(&log, "%v %+v %q\n", err, err, err)
			var address *url.Error
			if errors.As(err, &address) {
				fmt.Fprintf(&log, "%v %+v\n", address, *address)
			}
			var reply *azcore.ResponseError
			if errors.As(err, &reply) {
				fmt.Fprintf(&log, "%v %+v %v\n", reply, reply.RawResponse.Request, reply.RawResponse.Request.URL)
			}
		}
	}
	const sig = "hunter2+/="
	for _, edit := range []func(*azblob.Options){
		func(o *azblob.Options) { o.AccountKey = key64 },
		func(o *azblob.Options) {
			o.AccountKey, o.SAS = "", "sv=2025-01-05&sr=c&sp=rwdl&se=2099-01-01T00%3A00%3A00Z&sig="+url.QueryEscape(sig)
		},
		func(o *azblob.Options) {
			*o = azblob.Options{ConnectionString: "AccountName=" + o.Account + ";AccountKey=" + key64 + ";BlobEndpoint=" + o.Endpoint}
		},
	} {
		o := options(srv)
		edit(o)
		o.Logger = logger
		logger.Info("opening", "options", *o, "pointer", o)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			fmt.Fprintf(&log, verb, o)
			fmt.Fprintf(&log, verb, *o)
		}
		for _, rt := range []http.RoundTripper{nil, tripper(func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: errors.New("unreachable")}
		}), tripper(func(r *http.Request) (*http.Response, error) {
			text := "<Error><Code>InvalidUri</Code><Message>not valid: " + strings.ReplaceAll(r.URL.String(), "&", "&amp;") + "</Message></Error>"
			return &http.Response{StatusCode: http.StatusBadRequest, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
		})} {
			o.Transport = rt
			o.Retry.Attempts = 1
			st, err := azblob.New(t.Context(), "box", o)
			if err != nil {
				t.Fatal(err)
			}
			show(errOf(st.Set(t.Context(), "k", blob.Bytes(nil), nil)), errOf(st.Get(t.Context(), "k", nil)), errOf(st.Stat(t.Context(), "k")),
				list(st, t, ""), st.Delete(t.Context(), "k", nil), st.DeleteAll(t.Context(), []string{"k", "l"}))
			closeStore(t, st)
		}
	}
	for _, secret := range []string{"hunter2", key64, url.QueryEscape(sig), "SharedKey "} {
		if i := strings.Index(log.String(), secret); i >= 0 {
			t.Errorf("a secret is shown: …%s…", log.String()[max(0, i-200):i+len(secret)])
		}
	}
}

// tripper is an http.RoundTripper made of a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
