package fakes3_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// signed is a request before and after it was signed.
type signed struct {
	method, path, body string
	cred               aws.Credentials
	region, service    string
	at                 time.Time
	payload            string // hash to announce; empty: the true one
	before             func(*http.Request)
	after              func(*http.Request)
}

func (r *raw) send(sg signed) reply {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), sg.method, r.s.URL()+sg.path, bytes.NewReader([]byte(sg.body)))
	if err != nil {
		r.t.Fatal(err)
	}
	if sg.payload == "" {
		sum := sha256.Sum256([]byte(sg.body))
		sg.payload = hex.EncodeToString(sum[:])
	}
	req.Header.Set("x-amz-content-sha256", sg.payload)
	if sg.before != nil {
		sg.before(req)
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := signer.SignHTTP(r.t.Context(), sg.cred, req, sg.payload, sg.service, sg.region, sg.at); err != nil {
		r.t.Fatal(err)
	}
	if sg.after != nil {
		sg.after(req)
	}
	resp, err := r.c.Do(req)
	if err != nil {
		return reply{err: err}
	}
	data, err := io.ReadAll(resp.Body)
	closeBody(r.t, resp)
	return reply{resp, string(data), err}
}

// TestSignaturesAreChecked changes one thing at a time of a request that is
// accepted.
func TestSignaturesAreChecked(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		change func(*signed)
		status int
		code   string
	}{
		"untouched":           {func(*signed) {}, 200, ""},
		"escaped path":        {func(sg *signed) { sg.path = "/bucket/a%20b%2Fc+%E3%81%82" }, 200, ""},
		"query":               {func(sg *signed) { sg.path = "/bucket/k?x-id=PutObject&b=%20x&a=1&flag" }, 200, ""},
		"signed metadata":     {func(sg *signed) { sg.before = header("x-amz-meta-m", "  two   words ") }, 200, ""},
		"unsigned payload":    {func(sg *signed) { sg.payload = "UNSIGNED-PAYLOAD" }, 200, ""},
		"14 minutes early":    {func(sg *signed) { sg.at = now.Add(-14 * time.Minute) }, 200, ""},
		"16 minutes early":    {func(sg *signed) { sg.at = now.Add(-16 * time.Minute) }, 403, "RequestTimeTooSkewed"},
		"16 minutes late":     {func(sg *signed) { sg.at = now.Add(16 * time.Minute) }, 403, "RequestTimeTooSkewed"},
		"wrong secret":        {func(sg *signed) { sg.cred.SecretAccessKey = "x" }, 403, "SignatureDoesNotMatch"},
		"unknown key":         {func(sg *signed) { sg.cred.AccessKeyID = "x" }, 403, "InvalidAccessKeyId"},
		"token not wanted":    {func(sg *signed) { sg.cred.SessionToken = "x" }, 400, "InvalidToken"},
		"wrong region":        {func(sg *signed) { sg.region = "eu-west-1" }, 400, "AuthorizationHeaderMalformed"},
		"wrong service":       {func(sg *signed) { sg.service = "ec2" }, 400, "AuthorizationHeaderMalformed"},
		"wrong payload":       {func(sg *signed) { sg.payload = hex.EncodeToString(make([]byte, 32)) }, 400, "XAmzContentSHA256Mismatch"},
		"chunk signatures":    {func(sg *signed) { sg.payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" }, 501, "NotImplemented"},
		"no payload hash":     {func(sg *signed) { sg.before = func(r *http.Request) { r.Header.Del("x-amz-content-sha256") } }, 400, "InvalidRequest"},
		"no signature":        {func(sg *signed) { sg.after = func(r *http.Request) { r.Header.Del("Authorization") } }, 403, "AccessDenied"},
		"no date":             {func(sg *signed) { sg.after = func(r *http.Request) { r.Header.Del("X-Amz-Date") } }, 403, "AccessDenied"},
		"header added":        {func(sg *signed) { sg.after = header("x-amz-meta-m", "1") }, 403, "AccessDenied"},
		"header changed":      {func(sg *signed) { sg.before, sg.after = header("x-amz-meta-m", "1"), header("x-amz-meta-m", "2") }, 403, "SignatureDoesNotMatch"},
		"host changed":        {func(sg *signed) { sg.after = func(r *http.Request) { r.Host = "other" } }, 403, "SignatureDoesNotMatch"},
		"method changed":      {func(sg *signed) { sg.after = func(r *http.Request) { r.Method = "GET" } }, 403, "SignatureDoesNotMatch"},
		"query changed":       {func(sg *signed) { sg.after = func(r *http.Request) { r.URL.RawQuery = "a=1" } }, 403, "SignatureDoesNotMatch"},
		"path encoded anew":   {func(sg *signed) { sg.path, sg.after = "/bucket/a+b", opaque("/bucket/a%2Bb") }, 403, "SignatureDoesNotMatch"},
		"path encoded twice":  {func(sg *signed) { sg.path, sg.after = "/bucket/a%20b", opaque("/bucket/a%2520b") }, 403, "SignatureDoesNotMatch"},
		"path with a slash":   {func(sg *signed) { sg.path, sg.after = "/bucket/a//b", opaque("/bucket/a/b") }, 403, "SignatureDoesNotMatch"},
		"malformed signature": {func(sg *signed) { sg.after = header("Authorization", "AWS4-HMAC-SHA256 nonsense") }, 400, "AuthorizationHeaderMalformed"},
	}
	s := start(t, fakes3.Options{Now: func() time.Time { return now }})
	c := s.Client()
	t.Cleanup(c.CloseIdleConnections)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &raw{t, s, c}
			own := fakes3.DefaultCredentials()
			sg := signed{method: "PUT", path: "/bucket/k", body: "data", region: "us-east-1", service: "s3", at: now,
				cred: aws.Credentials{AccessKeyID: own.AccessKey, SecretAccessKey: own.SecretKey}}
			tc.change(&sg)
			s.DeleteObject("bucket", "k")
			r.expect(r.send(sg), want{status: tc.status, inBody: tc.code})
			if _, stored := s.Object("bucket", "k"); stored && tc.status != 200 {
				t.Error("refused, but stored")
			}
		})
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// opaque sends another path than the one that was signed.
func opaque(path string) func(*http.Request) {
	return func(r *http.Request) { r.URL.Opaque = "//" + r.URL.Host + path }
}

func TestTokensRotate(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := now
	s := start(t, fakes3.Options{Now: func() time.Time { return clock }})
	c := s.Client()
	t.Cleanup(c.CloseIdleConnections)
	r := &raw{t, s, c}
	try := func(token string) reply {
		return r.send(signed{method: "GET", path: "/bucket?list-type=2", region: "us-east-1", service: "s3", at: clock,
			cred: aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s", SessionToken: token}})
	}
	one := fakes3.Credentials{AccessKey: "a", SecretKey: "s", SessionToken: "one", Expires: now.Add(time.Hour)}
	two := fakes3.Credentials{AccessKey: "a", SecretKey: "s", SessionToken: "two", Expires: now.Add(2 * time.Hour)}
	s.SetCredentials(one, two)
	r.expect(try("one"), want{status: 200})
	r.expect(try(""), want{status: 400, inBody: "InvalidToken"})
	clock = now.Add(time.Hour)
	r.expect(try("one"), want{status: 400, inBody: "ExpiredToken"})
	r.expect(try("two"), want{status: 200})
	s.SetCredentials(one)
	r.expect(try("two"), want{status: 400, inBody: "InvalidToken"})
	if got := try("one").Header.Get("Date"); got != clock.Format(http.TimeFormat) {
		t.Errorf("Date %q is not the server's clock", got)
	}
}
