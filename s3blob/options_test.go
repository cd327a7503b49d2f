package s3blob_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

// Every wrong option is refused by name, before any request.
func TestWrongOptionsAreRefusedByName(t *testing.T) {
	srv := fake(t, fakes3.Options{})
	for _, c := range []struct {
		bucket, names string
		edit          func(*s3blob.Options)
	}{
		{"", "bucket", nil},
		{"a/b", "bucket", nil},
		{"b:1", "bucket", nil},
		{"..", "bucket", nil},
		{"x@y", "bucket", nil},
		{"arn:aws:s3:::x", "bucket", nil},
		{strings.Repeat("b", 256), "bucket", nil},
		{"b", "PartSize", func(o *s3blob.Options) { o.PartSize = -1 }},
		{"b", "Threshold", func(o *s3blob.Options) { o.Threshold = 6 << 30 }},
		{"b", "Segment", func(o *s3blob.Options) { o.Segment = -1 }},
		{"b", "Concurrency", func(o *s3blob.Options) { o.Concurrency = -1 }},
		{"b", "Restarts", func(o *s3blob.Options) { o.Restarts = -2 }},
		{"b", "MaxGet", func(o *s3blob.Options) { o.MaxGet = -1 }},
		{"b", "Endpoint", func(o *s3blob.Options) { o.Endpoint = "localhost:9000" }},
		{"b", "Endpoint", func(o *s3blob.Options) { o.Endpoint = "http://user:hunter2@localhost" }},
		{"b", "Conditions", func(o *s3blob.Options) { o.Conditions = "maybe" }},
		{"b", "Checksums", func(o *s3blob.Options) { o.Checksums = "maybe" }},
		{"b", "prefix", func(o *s3blob.Options) { o.Prefix = "a/../b" }},
		{"b", "SecretKey", func(o *s3blob.Options) { o.SecretKey = "" }},
		{"b", "SessionToken", func(o *s3blob.Options) { o.AccessKey, o.SecretKey, o.SessionToken = "", "", "t" }},
		{"b", "Attempt", func(o *s3blob.Options) { o.Retry = retry.Policy{Attempt: time.Minute, Total: time.Second} }},
	} {
		o := options(srv)
		if c.edit != nil {
			c.edit(o)
		}
		_, err := s3blob.New(t.Context(), c.bucket, o)
		if !errors.Is(err, blob.ErrInvalidOption) || !strings.Contains(err.Error(), c.names) {
			t.Errorf("bucket %q, %s: got %v", c.bucket, c.names, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	if n := len(srv.Log()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

func TestParseURL(t *testing.T) {
	bucket, o, err := s3blob.ParseURL("s3://bucket/a/b?endpoint=http://127.0.0.1:1&region=r&path_style=true&conditions=trust&checksums=off" +
		"&part_size=5MiB&threshold=6MiB&segment=7MiB&read=ranges&concurrency=3&max_get=1GiB&retry_attempts=2&retry_attempt=1s&retry_total=1m&unsigned_payload=true")
	if err != nil {
		t.Fatal(err)
	}
	want := s3blob.Options{
		Prefix: "a/b", Endpoint: "http://127.0.0.1:1", Region: "r", PathStyle: true, Conditions: s3blob.TrustYes, Checksums: s3blob.Off,
		PartSize: 5 << 20, Threshold: 6 << 20, Segment: 7 << 20, ReadRanges: true, Concurrency: 3, MaxGet: 1 << 30, UnsignedPayload: true,
		Retry: retry.Policy{Attempts: 2, Attempt: time.Second, Total: time.Minute},
	}
	if got := fmt.Sprintf("%+v", struct{ s3blob.Options }{*o}); bucket != "bucket" || got != fmt.Sprintf("%+v", struct{ s3blob.Options }{want}) || o.PartSize != want.PartSize || o.Retry != want.Retry {
		t.Errorf("got %q, %+v\nwant %+v", bucket, o, want)
	}
	for raw, names := range map[string]string{
		"http://bucket":                               "scheme",
		"s3://":                                       "bucket",
		"s3:///prefix":                                "bucket",
		"s3://bucket?nope=1":                          "nope",
		"s3://bucket?region=a&region=b":               "region",
		"s3://bucket?part_size=5mb":                   "part_size",
		"s3://bucket?part_size=-1":                    "part_size",
		"s3://bucket?part_size=1e3":                   "part_size",
		"s3://bucket?retry_total=fast":                "retry_total",
		"s3://bucket?path_style=yes":                  "path_style",
		"s3://bucket?concurrency=0":                   "concurrency",
		"s3://bucket?read=backwards":                  "read",
		"s3://bucket?conditions=maybe":                "conditions",
		"s3://bucket?endpoint=ftp://x":                "endpoint",
		"s3://bucket/a/../b":                          "prefix",
		"s3://key:hunter2@bucket":                     "user",
		"s3://bucket?secret_key=hunter2":              "secret_key",
		"s3://bucket?retry_attempt=2m&retry_total=1m": "Attempt",
	} {
		_, _, err := s3blob.ParseURL(raw)
		if !errors.Is(err, blob.ErrInvalidOption) || !strings.Contains(err.Error(), names) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error that names %q and shows no secret", raw, err, names)
		}
	}
}

// Credentials show in no error, no log line and no way of printing the options.
func TestCredentialsAreNeverShown(t *testing.T) {
	srv := fake(t, fakes3.Options{MinPartSize: -1})
	var log strings.Builder
	const secret = "hunter2secretkey"
	st := open(t, srv, func(o *s3blob.Options) {
		small(o)
		o.SecretKey, o.SessionToken = secret, "hunter2token"
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Logger.Info("opening", "options", *o, "pointer", o)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%t", "%c", "%x"} {
			fmt.Fprintf(&log, verb, o)
			fmt.Fprintf(&log, verb, *o)
		}
	})
	for _, size := range []int{1, 3 * P} {
		_, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), nil)
		wantKind(t, err, blob.ErrPermission)
		fmt.Fprintf(&log, "%v %+v", err, err)
	}
	fmt.Fprintf(&log, "%v %+v", getError(st, "k", nil), getError(st, "k", nil))
	if i := strings.Index(log.String(), "hunter2"); i >= 0 {
		t.Errorf("a secret is shown: …%s…", log.String()[max(0, i-100):i+7])
	}
}

// Options belong to one store: opening another one changes nothing.
func TestOptionsAreCopied(t *testing.T) {
	srv := fake(t, fakes3.Options{})
	o := options(srv)
	before := fmt.Sprintf("%+v %d", o, o.PartSize)
	st, err := s3blob.New(t.Context(), "b", o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	if after := fmt.Sprintf("%+v %d", o, o.PartSize); after != before {
		t.Errorf("New changed the options from %s to %s", before, after)
	}
	o.Endpoint = "http://127.0.0.1:1"
	if _, err := st.Set(t.Context(), "k", blob.Bytes(nil), nil); err != nil {
		t.Errorf("the store follows options changed after New: %v", err)
	}
}

// Where nobody vouches for conditions they are refused, before any request, and never dropped.
func TestConditionsNobodyVouchesFor(t *testing.T) {
	srv := fake(t, fakes3.Options{})
	st := open(t, srv, func(o *s3blob.Options) { o.Conditions = s3blob.TrustAuto })
	_, err := st.Set(t.Context(), "k", blob.Bytes(nil), &blob.SetOptions{If: blob.IfAbsent()})
	wantKind(t, err, blob.ErrUnsupported)
	wantKind(t, st.Delete(t.Context(), "k", &blob.DeleteOptions{If: blob.IfVersion("v")}), blob.ErrUnsupported)
	if st.Capabilities().Conditions || len(srv.Log()) > 0 {
		t.Errorf("capabilities %+v, requests: %s", st.Capabilities(), srv.Log())
	}
}
