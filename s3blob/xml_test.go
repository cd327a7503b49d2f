package s3blob_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

// stub answers every request without a network.
type stub func(*http.Request) (status int, header http.Header, body []byte)

// RoundTrip implements http.RoundTripper.
func (s stub) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	status, header, body := s(r)
	reply := &http.Response{
		Status: fmt.Sprint(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
	if header == nil {
		reply.Header = http.Header{}
	}
	if r.Method == http.MethodHead {
		reply.Body = http.NoBody
		reply.ContentLength, _ = strconv.ParseInt(reply.Header.Get("Content-Length"), 10, 64)
	}
	return reply, nil
}

// stubbed returns a store that talks to s and tries once.
func stubbed(t testing.TB, s stub) *s3blob.Store {
	t.Helper()
	st, err := s3blob.New(t.Context(), "b", &s3blob.Options{
		Endpoint: "http://stub.invalid", PathStyle: true, AccessKey: "key", SecretKey: "secret", Conditions: s3blob.TrustYes,
		Restarts: -1, Retry: retry.Off(), Transport: s, PartSize: P, Segment: P, AllowWholeBucket: true, Restore: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, st) })
	return st
}

// typed fails the test unless err is as the contract has it.
func typed(t *testing.T, err error) {
	t.Helper()
	e, ok := err.(*blob.Error) //nolint:errorlint // the outermost must be one
	if !ok || e.Kind == nil || e.Store != "s3" || e.Op == "" {
		t.Fatalf("badly typed: %#v", err)
	}
}

// listDoc is what a listing says, read by another parser than the SDK's.
type listDoc struct {
	IsTruncated           string
	EncodingType          string
	NextContinuationToken string
	Contents              []struct{ Key string }
	CommonPrefixes        []struct{ Prefix string }
}

// Whatever is answered to a listing: keys come from a well-formed document that holds them, and a clean end from one that says so.
func FuzzListXML(f *testing.F) {
	const head = `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix></Prefix><KeyCount>1</KeyCount>`
	for _, s := range []string{
		head + `<IsTruncated>false</IsTruncated><Contents><Key>a</Key><Size>1</Size><ETag>"e"</ETag></Contents></ListBucketResult>`,
		head + `<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated><Contents><Key>a%20b+c</Key><Size>1</Size></Contents><CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes></ListBucketResult>`,
		head + `<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated><Contents><Key>a%2</Key></Contents></ListBucketResult>`,
		head + `<IsTruncated>true</IsTruncated><Contents><Key>a</Key></Contents></ListBucketResult>`,
		head + `<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken><Contents><Key>a</Key></Contents></ListBucketResult>`,
		head + `<IsTruncated>false</IsTruncated><Contents><Key>a</Key></Conte`,
		head + `<IsTruncated>maybe</IsTruncated></ListBucketResult>`,
		head + `<IsTruncated>false</IsTruncated><Contents><Key></Key><Size>x</Size></Contents></ListBucketResult>`,
		head + `<IsTruncated>false</IsTruncated><Contents><Key>a</Key><Key>b</Key></Contents></ListBucketResult>`,
		`<Error><Code>SlowDown</Code></Error>`, `<html><body>hello</body></html>`, ``, ` `, `{}`, "\x00", `<a/>`, `<!DOCTYPE x>`,
	} {
		f.Add(s, 200)
		f.Add(s, 503)
	}
	f.Fuzz(func(t *testing.T, doc string, status int) {
		if status < 200 || status > 599 {
			status = 200
		}
		calls := 0
		st := stubbed(t, func(*http.Request) (int, http.Header, []byte) {
			if calls++; calls > 1 {
				return 403, nil, nil
			}
			return status, nil, []byte(doc)
		})
		var keys []string
		var last error
		for info, err := range st.List(t.Context(), "", nil) {
			if last = err; err == nil {
				keys = append(keys, info.Key)
			}
		}
		if last != nil {
			typed(t, last)
		}
		if len(keys) == 0 && last != nil {
			return
		}
		var d listDoc
		if err := xml.Unmarshal([]byte(doc), &d); err != nil || status >= 300 {
			t.Fatalf("keys %q and the error %v from status %d and a document that cannot be read: %v", keys, last, status, err)
		}
		if truncated, err := strconv.ParseBool(strings.TrimSpace(d.IsTruncated)); last == nil && (err != nil || truncated) {
			t.Fatalf("a clean end of a listing that says %q", d.IsTruncated)
		}
		held := d.keys()
		for _, k := range keys {
			if !slices.Contains(held, k) {
				t.Fatalf("key %q is not in the document, which has %q", k, held)
			}
		}
	})
}

// keys returns all that the document may mean.
func (d *listDoc) keys() []string {
	var held []string
	add := func(k string) {
		held = append(held, k)
		if u, err := url.QueryUnescape(k); err == nil {
			held = append(held, u)
		}
	}
	for _, c := range d.Contents {
		add(c.Key)
	}
	for _, p := range d.CommonPrefixes {
		add(p.Prefix)
	}
	return held
}

// Whatever a refusal looks like, each operation fails with a typed error, and only a refusal that is one says that nothing happened.
func FuzzErrorXML(f *testing.F) {
	for _, s := range []string{
		`<Error><Code>NoSuchKey</Code><Message>m</Message></Error>`, `<Error><Code>SlowDown</Code></Error>`, `<Error></Error>`, `<Error><Code>`,
		`<html>`, ``, "\x00\xff", `<Error xmlns="x"><Code>PreconditionFailed</Code></Error>`, `<Code>NoSuchBucket</Code>`, `<Error><Code>InternalError</Code></Error>`,
	} {
		for _, status := range []int{300, 301, 304, 400, 403, 404, 405, 409, 412, 416, 429, 500, 501, 503} {
			f.Add(s, status, "1")
		}
	}
	f.Fuzz(func(t *testing.T, doc string, status int, retryAfter string) {
		if status < 300 || status > 599 {
			status = 300 + (status&0x7fffffff)%300
		}
		fresh := func() *s3blob.Store { // one that has not been asked to wait
			return stubbed(t, func(*http.Request) (int, http.Header, []byte) {
				return status, http.Header{"Retry-After": {retryAfter}}, []byte(doc)
			})
		}
		ctx := t.Context()
		_, get := fresh().Get(ctx, "k", &blob.GetOptions{Range: blob.Span(0, 5)})
		_, stat := fresh().Stat(ctx, "k")
		_, put := fresh().Set(ctx, "k", blob.Bytes(nil), nil)
		_, parts := fresh().Set(ctx, "k", blob.Bytes(make([]byte, 2*P)), &blob.SetOptions{If: blob.IfAbsent()})
		_, sweep := fresh().Sweep(ctx, 0)
		for _, err := range []error{get, stat, put, parts, sweep} {
			if err == nil {
				t.Fatalf("status %d is a success", status)
			}
			typed(t, err)
		}
		if err := fresh().Delete(ctx, "k", nil); err != nil {
			typed(t, err)
		} else if status != 404 && !strings.Contains(doc, "N") { // NoSuchKey and its like
			t.Fatalf("Delete: status %d is a success", status)
		}
		if status >= 500 && status != 501 && !strings.Contains(doc, "Code") && blob.OutcomeOf(put) != blob.Unknown {
			t.Fatalf("status %d without a code is certain: %v", status, put)
		}
	})
}

// Whatever is answered to a batch of deletes, only a key that a well-formed document names as deleted, or as absent, is deleted.
func FuzzDeleteXML(f *testing.F) {
	for _, s := range []string{
		`<DeleteResult><Deleted><Key>a</Key></Deleted><Deleted><Key>b</Key></Deleted></DeleteResult>`,
		`<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code></Error></DeleteResult>`,
		`<DeleteResult><Error><Key>b</Key><Code>NoSuchKey</Code></Error></DeleteResult>`,
		`<DeleteResult></DeleteResult>`, `<DeleteResult><Deleted><Key>a</Key></Del`, `<html/>`, ``, `<Error><Code>InternalError</Code></Error>`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		st := stubbed(t, func(*http.Request) (int, http.Header, []byte) { return 200, nil, []byte(doc) })
		err := st.DeleteAll(t.Context(), []string{"a", "b"})
		failed := map[string]bool{}
		if de := (*blob.DeleteError)(nil); errors.As(err, &de) {
			for _, k := range de.Failed {
				typed(t, k.Err)
				failed[k.Key] = true
			}
		} else if err != nil {
			t.Fatalf("no DeleteError: %v", err)
		}
		var d struct {
			Deleted []struct{ Key string }
			Error   []struct{ Key string }
		}
		bad := xml.Unmarshal([]byte(doc), &d)
		for _, k := range []string{"a", "b"} {
			named := slices.ContainsFunc(slices.Concat(d.Deleted, d.Error), func(x struct{ Key string }) bool { return x.Key == k })
			if !failed[k] && (bad != nil || !named) {
				t.Fatalf("%q counts as deleted", k)
			}
		}
	})
}

var wholeRange = regexp.MustCompile(`^bytes 0-(\d+)/(\d+)$`)

// Whatever status, Content-Range and count of parts come with a body: it is an object only if some statement of the total says that these
// bytes are all of it.
func FuzzReadHeaders(f *testing.F) {
	for _, cr := range []string{
		"", "bytes 0-4/5", "bytes 0-4/6", "bytes 0-4/*", "bytes 1-5/6", "bytes */5", "bytes 0-5/6", "bytes 4-0/5", "bytes 0-9223372036854775807/5", "junk",
		"bytes 0-4/9223372036854775806",
	} {
		for _, status := range []int{200, 206} {
			f.Add("hello", status, cr, "", int64(5))
			f.Add("hello", status, cr, "2", int64(6))
		}
	}
	f.Add("", 200, "", "1", int64(0))
	f.Fuzz(func(t *testing.T, body string, status int, contentRange, parts string, size int64) {
		if status != 200 {
			status = 206
		}
		first := true
		st := stubbed(t, func(r *http.Request) (int, http.Header, []byte) {
			switch {
			case r.Method == http.MethodHead:
				return 200, http.Header{"Content-Length": {fmt.Sprint(size)}, "Etag": {`"e"`}}, nil
			case !first:
				return 403, nil, nil
			}
			first = false
			h := http.Header{"Content-Length": {fmt.Sprint(len(body))}, "Etag": {`"e"`}}
			if contentRange != "" {
				h.Set("Content-Range", contentRange)
			}
			if parts != "" {
				h.Set("X-Amz-Mp-Parts-Count", parts)
			}
			return status, h, []byte(body)
		})
		obj, err := st.Get(t.Context(), "k", nil)
		if err != nil {
			typed(t, err)
			return
		}
		proved := size == int64(len(body)) // by HEAD
		if m := wholeRange.FindStringSubmatch(contentRange); m != nil {
			last, err1 := strconv.ParseInt(m[1], 10, 64)
			total, err2 := strconv.ParseInt(m[2], 10, 64)
			if err1 == nil && err2 == nil && last < math.MaxInt64 { // else it counts as none
				proved = last+1 == total && total == int64(len(body))
			}
		}
		if !proved || string(obj.Data) != body || obj.Size != int64(len(body)) {
			t.Fatalf("%d bytes of %d from status %d, Content-Range %q, parts %q, HEAD %d and a body of %d", len(obj.Data), obj.Size, status, contentRange, parts, size, len(body))
		}
	})
}
