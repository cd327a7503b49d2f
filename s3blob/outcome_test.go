package s3blob_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// tripper is an http.RoundTripper made of a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// through opens a store on srv whose requests go through f.
func through(t *testing.T, srv *fakes3.Server, edit func(*s3blob.Options), f func(next http.RoundTripper, r *http.Request) (*http.Response, error)) *s3blob.Store {
	tr := srv.Transport()
	t.Cleanup(tr.CloseIdleConnections)
	return open(t, srv, func(o *s3blob.Options) {
		small(o)
		if edit != nil {
			edit(o)
		}
		o.Transport = tripper(func(r *http.Request) (*http.Response, error) { return f(tr, r) })
	})
}

// A transport that tells nothing of its connections is not taken for one that had none: a lost reply stays Unknown, and a
// conditional Set never meets its own object.
func TestTransportWithoutTraceIsNoProof(t *testing.T) {
	for _, size := range []int{10, 3 * P} {
		srv := fake(t, fakes3.Options{MinPartSize: -1})
		st := through(t, srv, nil, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			quiet := r.Clone(context.Background()) // no trace
			return next.RoundTrip(quiet)
		})
		srv.Inject(fakes3.Fault{Op: "PutObject", After: fakes3.Reset})
		srv.Inject(fakes3.Fault{Op: "CompleteMultipartUpload", After: fakes3.Reset})
		_, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), &blob.SetOptions{If: blob.IfAbsent()})
		if blob.OutcomeOf(err) != blob.Unknown || errors.Is(err, blob.ErrExists) {
			t.Errorf("%d bytes: %v, outcome %v, want unknown", size, err, blob.OutcomeOf(err))
		}
	}
}

// A provider of credentials has connections of its own, which are not the request's: without credentials nothing was sent.
func TestMissingCredentialsAreNoUnknownOutcome(t *testing.T) {
	srv := fake(t, fakes3.Options{})
	provider := aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL(), nil)
		if err != nil {
			return aws.Credentials{}, err
		}
		reply, err := srv.Client().Do(r)
		if err != nil {
			return aws.Credentials{}, err
		}
		_ = reply.Body.Close()
		return aws.Credentials{}, errors.New("no credentials here")
	})
	st := open(t, srv, func(o *s3blob.Options) { o.AccessKey, o.SecretKey, o.Credentials = "", "", provider })
	_, err := st.Set(t.Context(), "k", blob.Bytes(nil), nil)
	for _, err := range []error{err, st.Delete(t.Context(), "k", nil), getError(st, "k", nil)} {
		if !errors.Is(err, blob.ErrPermission) || blob.OutcomeOf(err) != blob.NotApplied {
			t.Errorf("%v, outcome %v", err, blob.OutcomeOf(err))
		}
	}
	srv.CloseIdleConns()
}

// page is what a captive portal answers to everything.
func page(r *http.Request) *http.Response {
	const html = "<html><body>Please log in</body></html>"
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader(html)), ContentLength: int64(len(html)),
	}
}

// A page that somebody on the way answers with 200 is no success of anything.
func TestForeignPageIsNoSuccess(t *testing.T) {
	srv := fake(t, fakes3.Options{MinPartSize: -1, Versioned: true})
	srv.PutObject("b", "k", [][]byte{content(10)}, nil)
	portal := false
	st := through(t, srv, func(o *s3blob.Options) { o.Restore, o.AllowWholeBucket = true, true }, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if portal {
			return page(r), nil
		}
		return next.RoundTrip(r)
	})
	portal = true
	for _, size := range []int{10, 3 * P} {
		if info, err := st.Set(t.Context(), "new", blob.Bytes(content(size)), nil); err == nil {
			t.Errorf("Set of %d bytes: %+v", size, info)
		}
	}
	for info, err := range st.List(t.Context(), "", nil) {
		if err == nil {
			t.Errorf("List: %+v", info)
		}
	}
	if err := st.DeleteAll(t.Context(), []string{"k"}); err == nil {
		t.Error("DeleteAll: no error")
	}
	if res, err := st.Sweep(t.Context(), 0); err == nil {
		t.Errorf("Sweep: %+v", res)
	}
}

// A write that is acknowledged without an ETag is looked for: found, it is a success; otherwise its outcome is Unknown.
func TestWriteWithoutETagIsConfirmed(t *testing.T) {
	for _, size := range []int{10, 3 * P} {
		srv := fake(t, fakes3.Options{MinPartSize: -1})
		for _, op := range []string{"PutObject", "CompleteMultipartUpload"} {
			srv.Inject(fakes3.Fault{Op: op, Times: -1, Shape: fakes3.Shape{ETag: fakes3.NoETag}})
		}
		info, err := openSmall(t, srv).Set(t.Context(), "k", blob.Bytes(content(size)), nil)
		if obj, _ := srv.Object("b", "k"); err != nil || info.Version == "" || len(obj.Bytes()) != size {
			t.Errorf("%d bytes: %+v, %v", size, info, err)
		}
	}
	srv := fake(t, fakes3.Options{})
	srv.PutObject("b", "k", [][]byte{content(10)}, nil)
	srv.Inject(fakes3.Fault{Op: "PutObject", Reply: &fakes3.Reply{Status: 200, NoBody: true}})
	_, err := openSmall(t, srv).Set(t.Context(), "k", blob.Bytes(content(10)), nil)
	if blob.OutcomeOf(err) != blob.Unknown || !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("another's object: %v, outcome %v", err, blob.OutcomeOf(err))
	}
}

// A listing that does not say whether it goes on is no end.
func TestListingWithoutIsTruncatedIsNoEnd(t *testing.T) {
	for _, token := range []bool{true, false} {
		srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{PageSize: 2}})
		for i := range 5 {
			srv.PutObject("b", fmt.Sprint(i), nil, nil)
		}
		st := through(t, srv, nil, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			reply, err := next.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			body, err := io.ReadAll(reply.Body)
			_ = reply.Body.Close()
			text := strings.NewReplacer("<IsTruncated>true</IsTruncated>", "", "<IsTruncated>false</IsTruncated>", "").Replace(string(body))
			if !token {
				text = strings.ReplaceAll(text, "NextContinuationToken", "Other")
			}
			reply.Body, reply.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
			reply.Header.Set("Content-Length", fmt.Sprint(len(text)))
			return reply, err
		})
		n := 0
		var last error
		for _, err := range st.List(t.Context(), "", nil) {
			if last = err; err == nil {
				n++
			}
		}
		if last == nil {
			t.Errorf("token %t: %d keys and a clean end", token, n)
		}
		if token && n != 4 {
			t.Errorf("%d keys, want 4: a token says that it goes on, to the last page, which has none", n)
		}
	}
}

// What cannot be an ETag is never sent as one: it would be a list of several, and match.
func TestVersionsThatNoObjectHas(t *testing.T) {
	srv := fake(t, fakes3.Options{MinPartSize: -1})
	st := openSmall(t, srv)
	info, err := st.Set(t.Context(), "k", blob.Bytes(content(10)), nil)
	if err != nil {
		t.Fatal(err)
	}
	srv.ResetLog()
	for _, v := range []string{`", *, "`, `nope", "` + info.Version, "bad\nversion", "with space", "*", `W/"` + info.Version + `"`} {
		for _, size := range []int{1, 3 * P} {
			_, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), &blob.SetOptions{If: blob.IfVersion(v)})
			wantKind(t, err, blob.ErrPrecondition)
		}
		wantKind(t, st.Delete(t.Context(), "k", &blob.DeleteOptions{If: blob.IfVersion(v)}), blob.ErrPrecondition)
		wantKind(t, getError(st, "k", &blob.GetOptions{If: blob.IfVersion(v)}), blob.ErrPrecondition)
		wantKind(t, getError(st, "missing", &blob.GetOptions{If: blob.IfVersion(v)}), blob.ErrNotFound)
		if err := st.Delete(t.Context(), "missing", &blob.DeleteOptions{If: blob.IfVersion(v)}); err != nil {
			t.Errorf("Delete of a missing key: %v", err)
		}
	}
	wantBytes(t, mustGet(t, st, "k", nil).Data, content(10))
}

// Each key of a batch that failed has its own error, and what is refused for good is not tried again.
func TestKeysOfABatchHaveTheirOwnErrors(t *testing.T) {
	srv := fake(t, fakes3.Options{})
	srv.Set(func(k *fakes3.Knobs) {
		k.DeleteError = func(key string) string {
			return map[string]string{"a": "NotImplemented", "b": "InvalidArgument", "c": "SlowDown", "d": "InternalError"}[key]
		}
	})
	err := open(t, srv, nil).DeleteAll(t.Context(), []string{"a", "b", "c", "d", "e"})
	var de *blob.DeleteError
	if !errors.As(err, &de) || len(de.Failed) != 4 {
		t.Fatal(err)
	}
	want := map[string]error{"a": blob.ErrUnsupported, "b": blob.ErrInvalidOption, "c": blob.ErrThrottled, "d": blob.ErrUnavailable}
	for _, f := range de.Failed {
		var e *blob.Error
		if !errors.As(f.Err, &e) || e.Kind != want[f.Key] || e.Key != f.Key {
			t.Errorf("%s: %v, want kind %v", f.Key, f.Err, want[f.Key])
		}
		if final := f.Key < "c"; final && e.Attempts > 1 {
			t.Errorf("%s: %d attempts", f.Key, e.Attempts)
		}
	}
	if n := srv.Log().Count("DeleteObjects"); n != 4 {
		t.Errorf("%d requests, want the first, which made progress, and 3 more", n)
	}
}

// A reply whose bytes do not match its checksum is never returned: it is fetched again, or ErrCorrupt.
func TestReplyChecksumsAreChecked(t *testing.T) {
	for _, times := range []int{1, 1000} {
		for _, size := range []int{100, 3*P + 1} {
			srv := fake(t, fakes3.Options{MinPartSize: -1})
			var mu sync.Mutex
			damaged := 0
			st := through(t, srv, func(o *s3blob.Options) { o.Checksums = s3blob.On }, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				reply, err := next.RoundTrip(r)
				mu.Lock()
				defer mu.Unlock()
				if err == nil && r.Method == http.MethodGet && damaged < times {
					damaged++
					reply.Body = &flipped{ReadCloser: reply.Body}
				}
				return reply, err
			})
			if _, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), nil); err != nil {
				t.Fatal(err)
			}
			obj, err := st.Get(t.Context(), "k", nil)
			switch {
			case err == nil:
				wantBytes(t, obj.Data, content(size))
				if times > 1 {
					t.Errorf("%d bytes: damaged each time, and returned", size)
				}
			case times == 1:
				t.Errorf("%d bytes: damaged once: %v", size, err)
			default:
				wantKind(t, err, blob.ErrCorrupt)
			}
			if n := srv.Log().Count("GetObject"); damaged == 0 || n > 20 {
				t.Errorf("%d bytes: %d replies damaged, %d requests", size, damaged, n)
			}
		}
	}
}

// flipped changes the first byte of a body.
type flipped struct {
	io.ReadCloser
	done bool
}

func (f *flipped) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if n > 0 && !f.done {
		p[0] ^= 1
		f.done = true
	}
	return n, err
}

// A success that was answered before the body had been read is no success.
func TestSuccessBeforeTheBodyIsNone(t *testing.T) {
	for _, size := range []int{P - 1, 3 * P} {
		srv := fake(t, fakes3.Options{MinPartSize: -1})
		st := through(t, srv, nil, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPut {
				return next.RoundTrip(r)
			}
			_, _ = io.CopyN(io.Discard, r.Body, 10)
			_ = r.Body.Close()
			return &http.Response{
				Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
				Header: http.Header{"Etag": {`"x"`}}, Body: http.NoBody,
			}, nil
		})
		_, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), &blob.SetOptions{AtMostOnce: true})
		if !errors.Is(err, blob.ErrUnavailable) || size < P && blob.OutcomeOf(err) != blob.Unknown {
			t.Errorf("%d bytes: %v, outcome %v", size, err, blob.OutcomeOf(err))
		}
	}
}
