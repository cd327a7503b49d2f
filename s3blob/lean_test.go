package s3blob

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
)

// line is a transport that keeps what a server would have read, and gives a made-up reply.
type line struct {
	got    *http.Request
	body   []byte
	status int
	header http.Header
	reply  string
	err    error
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	var b bytes.Buffer
	if err := req.Write(&b); err != nil {
		return nil, err
	}
	var err error
	if l.got, err = http.ReadRequest(bufio.NewReader(&b)); err != nil {
		return nil, err
	}
	if l.body, err = io.ReadAll(l.got.Body); err != nil {
		return nil, err
	}
	if l.err != nil {
		return nil, l.err
	}
	res := &http.Response{StatusCode: l.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: l.header.Clone(), Request: req,
		Body: io.NopCloser(strings.NewReader(l.reply)), ContentLength: int64(len(l.reply))}
	if req.Method == http.MethodHead {
		res.Body, res.ContentLength = http.NoBody, -1
	}
	if res.Header == nil {
		res.Header = make(http.Header)
	}
	return res, nil
}

// bothWays returns the requests of a store as they are, and with all of them made by the SDK.
func bothWays(t testing.TB, bucket string, o Options, l http.RoundTripper) (short, sdk *requests) {
	t.Helper()
	if o.Credentials == nil && o.AccessKey == "" {
		o.AccessKey, o.SecretKey = "access", "secret"
	}
	o.Transport = l
	full, err := complete(bucket, &o)
	if err != nil {
		t.Fatal(err)
	}
	if err := full.chain(t.Context()); err != nil {
		t.Fatal(err)
	}
	short, sdk = newRequests(full, bucket, l), newRequests(full, bucket, l)
	sdk.lean = lean{}
	return short, sdk
}

type leanCall struct {
	name string
	call func(ctx context.Context, r *requests, key string) (any, error)
}

// leanCalls are all the shapes of the requests that do not go through the SDK.
func leanCalls() []leanCall {
	var calls []leanCall
	add := func(name string, call func(ctx context.Context, r *requests, key string) (any, error)) {
		calls = append(calls, leanCall{name, call})
	}
	body := func() io.ReadSeeker { return strings.NewReader("the body") }
	meta := transfer.Meta{ContentType: "text/plain; charset=utf-8", Metadata: map[string]string{"wholeblobtoken": "t", "a1": "two  spaces, a comma"}}
	for name, cond := range map[string]blob.Condition{"": {}, " if absent": blob.IfAbsent(), " if version": blob.IfVersion("v")} {
		add("put"+name, func(ctx context.Context, r *requests, key string) (any, error) {
			return r.Put(ctx, transfer.PutRequest{Key: key, Body: body, Size: 8, Cond: cond, Meta: meta})
		})
	}
	add("put nothing", func(ctx context.Context, r *requests, key string) (any, error) {
		none := func() io.ReadSeeker { return strings.NewReader("") }
		return r.Put(ctx, transfer.PutRequest{Key: key, Body: none, Meta: transfer.Meta{ContentType: "a/b"}})
	})
	for _, id := range []string{"id", "a b+c/d&e=%é~"} {
		add("part of "+id, func(ctx context.Context, r *requests, key string) (any, error) {
			return r.Part(ctx, transfer.Upload{Key: key, ID: id}, transfer.PartRequest{Number: 12, Size: 8, Body: body})
		})
	}
	for name, req := range map[string]transfer.ReadRequest{
		"whole": {N: -1}, "part": {Part: 3}, "range": {Off: 5, N: 10}, "suffix": {Suffix: 7}, "version": {Part: 1, Version: "e-3"},
	} {
		add("read "+name, func(ctx context.Context, r *requests, key string) (any, error) {
			req.Key = key
			rep, err := r.Read(ctx, req)
			if err != nil {
				return nil, err
			}
			data, err := io.ReadAll(rep.Body)
			rep.Body = nil
			return []any{*rep, string(data), err}, nil
		})
	}
	add("head", func(ctx context.Context, r *requests, key string) (any, error) { return r.Head(ctx, key) })
	return calls
}

const invocation = "Amz-Sdk-Invocation-Id"

// asRead describes a request as a server has read it. Of the signature it has the scope and what it covers: the signatures themselves
// differ, as the SDK's covers the id of the invocation too. (The server of the other tests checks both.)
func asRead(r *http.Request, body []byte) string {
	auth, _, _ := strings.Cut(r.Header.Get("Authorization"), ", Signature=")
	r.Header.Set("Authorization", strings.Replace(auth, strings.ToLower(invocation)+";", "", 1))
	r.Header.Del(invocation)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\nHost: %s\n%d bytes %q, %q\n", r.Method, r.RequestURI, r.Host, r.ContentLength, body, r.TransferEncoding)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "%s: %q\n", name, r.Header[name])
	}
	return b.String()
}

// A request that does not go through the SDK reaches the server as the SDK's own: on every kind of endpoint, with every key.
func TestLeanRequestsAreThoseOfTheSDK(t *testing.T) {
	keys := []string{"k", "/k", "//a//b/", "a b+c%2F%25=~é日\u0301", "!\"#$&'()*,:;<>?@[]^`{|}\\", "\x01\t\u007f", "key"}
	for _, e := range []struct {
		bucket string
		o      Options
	}{
		{"bucket", Options{Region: "eu-central-1"}},
		{"with.dots", Options{Region: "us-east-1", SessionToken: "token", AccessKey: "a", SecretKey: "s"}},
		{"Old_Bucket", Options{Region: "cn-north-1"}},
		{"bucket", Options{Region: "fips-us-gov-west-1", PathStyle: true}},
		{"bucket", Options{Endpoint: "http://127.0.0.1:9000", PathStyle: true}},
		{"bucket", Options{Endpoint: "http://127.0.0.1:9000", PathStyle: true, UnsignedPayload: true}},
		{"bucket", Options{Endpoint: "https://[::1]:8443/some/prefix/", PathStyle: true}},
		{"bucket", Options{Endpoint: "http://store.example.com:80", Region: "elsewhere"}},
		{"key", Options{Endpoint: "https://store.example.com/key"}},
	} {
		e.o.Checksums = Off // those go the SDK's way
		l := &line{status: 200, header: http.Header{"Etag": {`"e"`}}}
		synctest.Test(t, func(t *testing.T) { // the date stands still
			short, sdk := bothWays(t, e.bucket, e.o, l)
			if short.lean.get == nil || short.lean.head == nil || short.lean.put == nil || short.lean.part == nil {
				t.Fatalf("%s, %v: %+v", e.bucket, e.o, short.lean)
			}
			for _, c := range leanCalls() {
				for _, key := range keys {
					if _, err := c.call(t.Context(), sdk, key); err != nil {
						t.Fatal(err)
					}
					want := asRead(l.got, l.body)
					l.got = nil
					if _, err := c.call(t.Context(), short, key); err != nil {
						t.Fatal(err)
					}
					if id := l.got.Header.Get(invocation); id != "" {
						t.Fatalf("%s has the invocation %s of another", c.name, id)
					}
					if got := asRead(l.got, l.body); got != want {
						t.Fatalf("%s of %q in %s, %v, is\n%s\nwant\n%s", c.name, key, e.bucket, e.o, got, want)
					}
				}
			}
		})
	}
}

// Checksums, and buckets whose signatures need a session, are left to the SDK.
func TestWhatGoesTheWayOfTheSDK(t *testing.T) {
	for _, e := range []struct {
		bucket        string
		o             Options
		head, payload bool
	}{
		{"bucket", Options{Region: "us-west-2"}, true, false},
		{"bucket", Options{Region: "us-west-2", Checksums: Off}, true, true},
		{"bucket", Options{Endpoint: "http://127.0.0.1:1"}, true, true},
		{"bucket", Options{Endpoint: "http://127.0.0.1:1", Checksums: On}, true, false},
		{"bucket--usw2-az1--x-s3", Options{Region: "us-west-2", Checksums: Off}, false, false},
	} {
		short, _ := bothWays(t, e.bucket, e.o, &line{})
		l := short.lean
		if (l.head != nil) != e.head || (l.get != nil) != e.payload || (l.put != nil) != e.payload || (l.part != nil) != e.payload {
			t.Errorf("%s, %v: %+v", e.bucket, e.o, l)
		}
	}
	short, _ := bothWays(t, "bucket", Options{Endpoint: "http://127.0.0.1:1"}, &line{})
	if k := short.lean.get.learn(askUnsigned); k != nil {
		t.Errorf("requests that the SDK does not sign are learnt: %+v", k)
	}
}

func askUnsigned(ctx context.Context, c *s3.Client, bucket, key *string) error {
	_, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key}, func(o *s3.Options) { o.Credentials = nil })
	return err
}

// Replies mean the same whoever has made the request, and errors are the SDK's, to the letter.
func TestLeanRepliesAreReadAsTheSDKReadsThem(t *testing.T) {
	document := func(code string) string {
		return "<Error><Code>" + code + "</Code><Message>m</Message><RequestId>r</RequestId></Error>"
	}
	ids := http.Header{"X-Amz-Request-Id": {"request"}, "X-Amz-Id-2": {"host"}, "X-Amz-Bucket-Region": {"eu-west-7"}, "Retry-After": {"3"}}
	var replies []line
	for _, h := range []http.Header{
		nil,
		{"Etag": {`"e"`}, "Content-Length": {"4"}, "Last-Modified": {"Sun, 6 Nov 1994 08:49:37 GMT"}, "Content-Type": {"a/b"}},
		{"Etag": {`W/"e"`}, "Content-Range": {"bytes 0-3/10"}, "X-Amz-Mp-Parts-Count": {"3"}, "X-Amz-Meta-A1": {"v"}, "X-Amz-Meta-B": {"w"}},
		{"Etag": {`e`}, "Content-Range": {"bytes 0-3/*"}, "X-Amz-Version-Id": {"x"}, "X-Amz-Checksum-Crc32": {"AAAAAA=="}},
	} {
		for _, status := range []int{200, 204, 206} {
			replies = append(replies, line{status: status, header: h}, line{status: status, header: h, reply: "data"}, line{status: status, header: h, reply: document("InternalError")})
		}
	}
	for _, status := range []int{300, 301, 304, 307, 400, 403, 404, 409, 412, 416, 429, 500, 501, 503} {
		for _, text := range []string{"", "<html>", document("NoSuchKey"), document("InvalidRequest"), document("SlowDown"), document("RequestTimeTooSkewed")} {
			replies = append(replies, line{status: status, reply: text}, line{status: status, header: ids, reply: text})
		}
	}
	replies = append(replies, line{err: errors.New("no network")})
	o := Options{Endpoint: "http://127.0.0.1:1"}
	for _, c := range leanCalls() {
		for _, l := range replies {
			short, sdk := bothWays(t, "b", o, &l)
			want, wantErr := c.call(t.Context(), sdk, "k")
			got, err := c.call(t.Context(), short, "k")
			if !reflect.DeepEqual(got, want) || describe(err) != describe(wantErr) {
				t.Fatalf("%s: %d %v %q is\n%+v, %s\nwant\n%+v, %s", c.name, l.status, l.header, l.reply, got, describe(err), want, describe(wantErr))
			}
		}
	}
}

// describe tells all of an error, with the types of all that it wraps.
func describe(err error) string {
	var b strings.Builder
	for e := err; e != nil; e = errors.Unwrap(e) {
		if ours := (*blob.Error)(nil); errors.As(e, &ours) && ours == e { //nolint:errorlint // is e itself ours?
			fmt.Fprintf(&b, "%v %v %d %q %q %v\n", ours.Kind, ours.Outcome, ours.Status, ours.Code, ours.RequestID, ours.RetryAfter)
			e = ours.Err
		}
		fmt.Fprintf(&b, "%T: %v\n", e, e)
	}
	return b.String()
}

// errors.As reaches the types of the SDK.
func TestLeanErrorsHaveTheTypesOfTheSDK(t *testing.T) {
	l := &line{status: 404, header: http.Header{"X-Amz-Request-Id": {"request"}}, reply: "<Error><Code>NoSuchKey</Code></Error>"}
	short, _ := bothWays(t, "b", Options{Endpoint: "http://127.0.0.1:1"}, l)
	_, err := short.Read(t.Context(), transfer.ReadRequest{Key: "k", Part: 1})
	var missing *types.NoSuchKey
	var reply *awshttp.ResponseError
	var op *smithy.OperationError
	if !errors.As(err, &missing) || !errors.As(err, &reply) || reply.RequestID != "request" || !errors.As(err, &op) || op.Operation() != "GetObject" {
		t.Errorf("%#v", err)
	}
	l.reply = "" // to a HEAD
	_, err = short.Head(t.Context(), "k")
	var absent *types.NotFound
	if !errors.As(err, &absent) || blob.KindOf(err) != blob.ErrNotFound {
		t.Errorf("%#v", err)
	}
}

// Headers that cannot be read say nothing, and so prove nothing.
func TestUnreadableHeadersSayNothing(t *testing.T) {
	l := &line{status: 206, reply: "data", header: http.Header{
		"Content-Length": {"-4"}, "Last-Modified": {"yesterday"}, "X-Amz-Mp-Parts-Count": {"many"}, "Content-Range": {"bytes 0-3"},
	}}
	short, _ := bothWays(t, "b", Options{Endpoint: "http://127.0.0.1:1"}, l)
	rep, err := short.Read(t.Context(), transfer.ReadRequest{Key: "k", Part: 1})
	if err != nil || rep.Length != -1 || rep.Parts != 0 || rep.HasRange || !rep.ModTime.IsZero() {
		t.Errorf("%+v, %v", rep, err)
	}
}

// rewriting is a transport that changes headers where they lie. It must not, but some do, and the SDK's own requests stand it.
type rewriting struct{ line }

// RoundTrip implements http.RoundTripper.
func (r *rewriting) RoundTrip(req *http.Request) (*http.Response, error) {
	reply, err := r.line.RoundTrip(req)
	for name, v := range req.Header {
		req.Header[name] = append(v[:0], "rewritten")
	}
	return reply, err
}

func TestWhatATransportDoesToOneRequestStaysThere(t *testing.T) {
	r := &rewriting{line{status: 200, header: http.Header{"Etag": {`"e"`}}}}
	short, _ := bothWays(t, "b", Options{Endpoint: "http://127.0.0.1:1"}, r)
	for _, c := range leanCalls() {
		for range 2 {
			if _, err := c.call(t.Context(), short, "k"); err != nil {
				t.Fatal(err)
			}
			if got := asRead(r.got, r.body); strings.Contains(got, "rewritten") {
				t.Errorf("%s has headers of another request:\n%s", c.name, got)
			}
		}
	}
}

// The service's time is that of its replies, save old ones and those out of a cache; within a minute the local one stays.
func TestClockOfSignatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		dated := func(d time.Duration, age string) http.Header {
			h := http.Header{"Date": {time.Now().Add(d).UTC().Format(http.TimeFormat)}}
			if age != "" {
				h.Set("Age", age)
			}
			return h
		}
		var c clock
		want := func(d time.Duration) {
			t.Helper()
			if got := time.Until(c.now()); got != d {
				t.Errorf("the clock is %v ahead, want %v", got, d)
			}
		}
		c.learn(dated(time.Hour, ""), begun)
		want(time.Hour)
		c.learn(dated(-time.Hour, "5"), begun)
		c.learn(dated(-time.Hour, ""), begun.Add(-time.Hour))
		c.learn(http.Header{"Date": {"now"}}, begun)
		want(time.Hour)
		c.learn(dated(-2*time.Hour, ""), begun)
		want(-2 * time.Hour)
		c.learn(dated(30*time.Second, ""), begun)
		want(0)
	})
}
