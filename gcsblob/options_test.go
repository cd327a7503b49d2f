package gcsblob_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/retry"
)

// New checks everything before any request, and names what is wrong.
func TestNewRefusesWhatMakesNoSense(t *testing.T) {
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "x"})
	for name, c := range map[string]struct {
		bucket, want string
		o            gcsblob.Options
	}{
		"no bucket":     {"", "bucket", gcsblob.Options{Anonymous: true}},
		"slash":         {"b/c", "bucket", gcsblob.Options{Anonymous: true}},
		"upper case":    {"B", "bucket", gcsblob.Options{Anonymous: true}},
		"dots":          {"..", "bucket", gcsblob.Options{Anonymous: true}},
		"prefix":        {"b", "prefix", gcsblob.Options{Anonymous: true, Prefix: "a//b/../"}},
		"endpoint":      {"b", "Endpoint", gcsblob.Options{Endpoint: "localhost:4443"}},
		"part":          {"b", "PartSize", gcsblob.Options{Anonymous: true, PartSize: -1}},
		"threshold":     {"b", "Threshold", gcsblob.Options{Anonymous: true, Threshold: -1}},
		"segment":       {"b", "Segment", gcsblob.Options{Anonymous: true, Segment: 6 << 30}},
		"gap":           {"b", "Gap", gcsblob.Options{Anonymous: true, Gap: -2}},
		"concurrency":   {"b", "Concurrency", gcsblob.Options{Anonymous: true, Concurrency: -1}},
		"in flight":     {"b", "InFlight", gcsblob.Options{Anonymous: true, InFlight: -1}},
		"stall":         {"b", "Stall", gcsblob.Options{Anonymous: true, Stall: -2}},
		"restarts":      {"b", "Restarts", gcsblob.Options{Anonymous: true, Restarts: -2}},
		"max get":       {"b", "MaxGet", gcsblob.Options{Anonymous: true, MaxGet: -1}},
		"conditions":    {"b", "Conditions", gcsblob.Options{Anonymous: true, Conditions: "yes"}},
		"restore":       {"b", "Restore", gcsblob.Options{Anonymous: true, Restore: "on"}},
		"project":       {"b", "QuotaProject", gcsblob.Options{Anonymous: true, QuotaProject: "a\r\nb"}},
		"retry":         {"b", "Attempts", gcsblob.Options{Anonymous: true, Retry: retry.Policy{Attempts: -1}}},
		"two":           {"b", "CredentialsFile and TokenSource", gcsblob.Options{CredentialsFile: "f", TokenSource: token}},
		"anonymous too": {"b", "CredentialsJSON and Anonymous", gcsblob.Options{CredentialsJSON: []byte("{}"), Anonymous: true}},
		"in clear":      {"b", "in clear", gcsblob.Options{Endpoint: "http://example.com", TokenSource: token}},
		"no file":       {"b", "no such file", gcsblob.Options{CredentialsFile: "/nowhere/credentials.json"}},
		"no JSON":       {"b", "no JSON", gcsblob.Options{CredentialsJSON: []byte("secret")}},
		"no type":       {"b", "type", gcsblob.Options{CredentialsJSON: []byte(`{"private_key":"secret"}`)}},
		"what type":     {"b", "magic", gcsblob.Options{CredentialsJSON: []byte(`{"type":"magic","private_key":"secret"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := gcsblob.New(t.Context(), c.bucket, &c.o)
			if st != nil || !errors.Is(err, blob.ErrInvalidOption) && !errors.Is(err, blob.ErrInvalidKey) {
				t.Fatalf("%v, %v", st, err)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: want %q in it, and no secret", err, c.want)
			}
		})
	}
}

// Options are copied: what a caller does to them afterwards changes no Store, and two Stores of one program do not share
// anything (google/go-cloud #2851).
func TestStoresDoNotShareOptions(t *testing.T) {
	one, two := fake(t, fakegcs.Options{}), fake(t, fakegcs.Options{Tokens: []fakegcs.Token{{Value: "two"}}})
	o := options(one)
	a := openWith(t, "b", o)
	o.Endpoint, o.Prefix = two.URL(), "q"
	o.TokenSource = oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "two"})
	b := openWith(t, "b", o)
	mustSet(t, a, "k", []byte("a"), nil)
	mustSet(t, b, "k", []byte("b"), nil)
	if obj, ok := one.Object("b", "k"); !ok || string(obj.Bytes()) != "a" {
		t.Error("the first store went elsewhere")
	}
	if obj, ok := two.Object("b", "q/k"); !ok || string(obj.Bytes()) != "b" {
		t.Error("the second store went elsewhere")
	}
}

// The variable that redirects Google's client does not redirect a Store that says where it goes.
func TestTheEmulatorVariableIsNotRead(t *testing.T) {
	srv, other := fake(t, fakegcs.Options{}), fake(t, fakegcs.Options{Anonymous: true})
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(other.URL(), "http://"))
	st := open(t, srv, small, func(o *gcsblob.Options) { o.Restore = gcsblob.RestoreSoftDelete })
	for name, do := range operations {
		if err := do(t.Context(), st); err != nil && !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if log := other.Log(); len(log) > 0 {
		t.Errorf("redirected:\n%s", log)
	}
	var asked []string
	o := &gcsblob.Options{Anonymous: true, Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		asked = append(asked, req.URL.Scheme+"://"+req.URL.Host)
		return nil, errors.New("no network in tests")
	}), Retry: retry.Policy{Attempts: 1}}
	st = openWith(t, "b", o)
	for _, do := range operations {
		_ = do(t.Context(), st)
	}
	for _, a := range asked {
		if a != "https://storage.googleapis.com" {
			t.Errorf("redirected to %s", a)
		}
	}
	if len(asked) < len(operations)-1 {
		t.Errorf("asked %d times", len(asked))
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Without Conditions, an endpoint that is not Google's is trusted with no condition, and nothing is sent.
func TestConditionsOfOthersAreNotTrusted(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, func(o *gcsblob.Options) { o.Conditions = gcsblob.TrustAuto })
	_, err := st.Set(t.Context(), "k", blob.Bytes(nil), &blob.SetOptions{If: blob.IfAbsent()})
	wantKind(t, err, blob.ErrUnsupported)
	wantKind(t, st.Delete(t.Context(), "k", &blob.DeleteOptions{If: blob.IfVersion("1")}), blob.ErrUnsupported)
	wantLog(t, srv, "\n")
	if st.Capabilities().Conditions {
		t.Error("it claims to have conditions")
	}
	google := openWith(t, "b", &gcsblob.Options{Anonymous: true})
	if c := google.Capabilities(); !c.Conditions || c.Store != "gcs" || c.MaxObject != 5<<40 || c.BatchDelete {
		t.Errorf("%+v", c)
	}
}

func TestParseURL(t *testing.T) {
	bucket, o, err := gcsblob.ParseURL("gs://my_bucket.example/a/b?endpoint=http://127.0.0.1:4443&restore=versions&conditions=trust&" +
		"part_size=1MiB&threshold=2MiB&segment=3MiB&gap=4KiB&concurrency=5&in_flight=6&stall=7s&max_get=8GiB&retry_attempts=9&" +
		"retry_attempt=10s&retry_total=11s&quota_project=p&anonymous=true")
	want := &gcsblob.Options{
		Prefix: "a/b", Endpoint: "http://127.0.0.1:4443", Restore: gcsblob.RestoreVersions, Conditions: gcsblob.TrustYes,
		PartSize: 1 << 20, Threshold: 2 << 20, Segment: 3 << 20, Gap: 4 << 10, Concurrency: 5, InFlight: 6, Stall: 7 * time.Second,
		MaxGet: 8 << 30, QuotaProject: "p", Anonymous: true,
		Retry: retry.Policy{Attempts: 9, Attempt: 10 * time.Second, Total: 11 * time.Second},
	}
	if err != nil || bucket != "my_bucket.example" {
		t.Fatalf("%q, %v", bucket, err)
	}
	if got, want := fmt.Sprintf("%#v", fields(o)), fmt.Sprintf("%#v", fields(want)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, o, err := gcsblob.ParseURL("gs://b?restore=off&credentials_file=/etc/key.json"); err != nil || o.Restore != gcsblob.RestoreOff || o.CredentialsFile != "/etc/key.json" {
		t.Errorf("%v, %v", o, err)
	}
}

// fields are those of an Options that can be compared.
func fields(o *gcsblob.Options) []any {
	return []any{
		o.Prefix, o.Endpoint, o.Restore, o.Conditions, o.PartSize, o.Threshold, o.Segment, o.Gap, o.Concurrency, o.InFlight, o.Stall,
		o.MaxGet, o.QuotaProject, o.Anonymous, o.Retry.Attempts, o.Retry.Attempt, o.Retry.Total, o.CredentialsFile,
	}
}

// Wrong URLs are errors that name what is wrong, without secrets (google/go-cloud #2851: parameters that were ignored).
func TestParseURLRefusesWhatItDoesNotKnow(t *testing.T) {
	for raw, want := range map[string]string{
		"gs://":                                    "bucket",
		"gs:///key":                                "bucket",
		"s3://b":                                   "gs",
		"gs://b?part-size=1":                       "part-size",
		"gs://b?part_size=1&part_size=2":           "part_size",
		"gs://b?part_size=5mb":                     "part_size",
		"gs://b?restore=true":                      "restore",
		"gs://b?conditions=yes":                    "conditions",
		"gs://b?anonymous=1":                       "anonymous",
		"gs://b?token=secret":                      "token",
		"gs://key:secret@b":                        "user information",
		"gs://b?endpoint=http://k:secret@h":        "user information",
		"gs://b?endpoint=ftp://h":                  "scheme",
		"gs://b?concurrency=0":                     "concurrency",
		"gs://b?stall=-1s":                         "stall",
		"gs://b?anonymous=true&access_id=abc":      "access_id",
		"gs://b?credentials_file=f&anonymous=true": "exclude",
		"gs://B":   "bucket",
		"gs://b#f": "fragment",
	} {
		_, _, err := gcsblob.ParseURL(raw)
		if !errors.Is(err, blob.ErrInvalidOption) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v: want %q in it", raw, err, want)
		}
	}
}

// No way to print Options shows a secret.
func TestOptionsPrintNoSecrets(t *testing.T) {
	o := gcsblob.Options{CredentialsJSON: []byte("s3cret"), TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "s3cret"}), Endpoint: "https://u:s3cret@h"}
	text, _ := o.MarshalText()
	for _, s := range []string{o.String(), fmt.Sprintf("%v %+v %#v %s %q %x", o, o, &o, o, o, o), string(text), o.LogValue().String()} {
		if strings.Contains(s, "s3cret") || strings.Contains(s, fmt.Sprintf("%x", "s3cret")) {
			t.Error(s)
		}
	}
}
