package azblob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// through opens a store on srv whose requests go through f.
func through(t *testing.T, srv *fakeaz.Server, f func(next http.RoundTripper, r *http.Request) (*http.Response, error)) *azblob.Store {
	tr := srv.Transport()
	t.Cleanup(tr.CloseIdleConnections)
	return open(t, srv, func(o *azblob.Options) {
		small(o)
		o.Retry.Attempts = 1
		o.Transport = tripper(func(r *http.Request) (*http.Response, error) { return f(tr, r) })
	})
}

// What a failed write says of its outcome follows from what was sent: nothing without a connection, nothing whole without all of the
// body, and unknown otherwise.
func TestOutcomeFollowsFromWhatWasSent(t *testing.T) {
	big := content(smallPart - 1)
	for _, c := range []struct {
		name  string
		fault *fakehttp.Fault
		size  int
		want  blob.Outcome
	}{
		{"reply lost", &fakehttp.Fault{Op: "PutBlob", After: fakehttp.Reset}, 10, blob.Unknown},
		{"commit's reply lost", &fakehttp.Fault{Op: "PutBlockList", After: fakehttp.Reset}, smallPart, blob.Unknown},
		{"block's reply lost", &fakehttp.Fault{Op: "PutBlock", After: fakehttp.Reset}, smallPart, blob.NotApplied},
		{"delete's reply lost", &fakehttp.Fault{Op: "DeleteBlob", After: fakehttp.Reset}, -1, blob.Unknown},
		{"answered 500", &fakehttp.Fault{Op: "PutBlob", Reply: &fakehttp.Reply{Status: 500, Code: "InternalError"}}, 10, blob.Unknown},
		{"answered 403", &fakehttp.Fault{Op: "PutBlob", Reply: &fakehttp.Reply{Status: 403, Code: "AuthorizationFailure"}}, 10, blob.NotApplied},
		{"success before the body", &fakehttp.Fault{Op: "PutBlob", Reply: &fakehttp.Reply{Status: 201, NoBody: true}}, 10, blob.Unknown},
	} {
		srv := fake(t, fakeaz.Options{})
		srv.Inject(*c.fault)
		st := open(t, srv, func(o *azblob.Options) { small(o); o.Retry.Attempts = 1; o.Restarts = -1 })
		err := st.Delete(t.Context(), "k", nil)
		if c.size >= 0 {
			_, err = st.Set(t.Context(), "k", blob.Bytes(content(c.size)), nil)
		}
		if err == nil || blob.OutcomeOf(err) != c.want {
			t.Errorf("%s: %v, outcome %v", c.name, err, blob.OutcomeOf(err))
		}
	}
	srv := fake(t, fakeaz.Options{})
	half := through(t, srv, func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
		_, _ = io.CopyN(io.Discard, r.Body, int64(len(big)/2))
		return nil, errors.New("the line is cut")
	})
	whole := through(t, srv, func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		return nil, errors.New("the line is cut")
	})
	early := through(t, srv, func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusCreated, Request: r, Header: http.Header{"Etag": {`"0x1"`}}, Body: http.NoBody}, nil
	})
	nobody := open(t, srv, func(o *azblob.Options) { o.Endpoint = "http://127.0.0.1:1/" + o.Account })
	for st, want := range map[*azblob.Store]blob.Outcome{half: blob.NotApplied, whole: blob.Unknown, early: blob.Unknown, nobody: blob.NotApplied} {
		_, err := st.Set(t.Context(), "k", blob.Bytes(big), nil)
		if !errors.Is(err, blob.ErrUnavailable) || blob.OutcomeOf(err) != want {
			t.Errorf("%v, outcome %v, want %v", err, blob.OutcomeOf(err), want)
		}
	}
	if err := nobody.Delete(t.Context(), "k", nil); blob.OutcomeOf(err) != blob.NotApplied {
		t.Errorf("%v, outcome %v", err, blob.OutcomeOf(err))
	}
}

// A transport that goes on reading a body after the attempt has ended gets nothing of the caller's memory.
func TestSourceIsLetGo(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	var left io.Reader
	st := through(t, srv, func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
		left = r.Body
		return nil, errors.New("the line is cut")
	})
	for _, size := range []int{10, smallPart} {
		_, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), nil)
		wantKind(t, err, blob.ErrUnavailable)
		if n, err := left.Read(make([]byte, 10)); n > 0 || err == nil || err == io.EOF {
			t.Errorf("read %d bytes, %v", n, err)
		}
	}
}

// A cancelled write returns the context's error and what is known of its outcome.
func TestCancelledSet(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	held := srv.Inject(fakehttp.Fault{Op: "PutBlob", HoldAfter: true}) // so the body has been handed over
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	st := open(t, srv, nil)
	go func() { failed <- errOf(st.Set(ctx, "k", blob.Bytes(content(10)), nil)) }()
	<-held.Reached()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || blob.OutcomeOf(err) != blob.Unknown {
		t.Errorf("%v, outcome %v", err, blob.OutcomeOf(err))
	}
	held.Release()
}

// Stored bytes come as they are stored: gzip is not offered, not even by a transport that would, and what is stored as gzip is not unpacked
// (rclone/rclone #2658).
func TestStoredBytesComeBack(t *testing.T) {
	packs := fakehttp.Shape{Gzip: true, IgnoreRange: true} // a proxy that packs whole bodies for who offers it
	srv := fake(t, fakeaz.Options{Knobs: fakeaz.Knobs{Traits: fakehttp.Traits{Shape: packs}}})
	data := append([]byte{0x1f, 0x8b}, content(3*smallPart)...)
	srv.PutBlob("box", "k", data, &fakeaz.PutOptions{ContentEncoding: "gzip"})
	srv.PutBlob("box", "plain", data, nil)
	tr := srv.Transport()
	tr.DisableCompression = false
	defer tr.CloseIdleConnections()
	for _, edit := range []func(*azblob.Options){small, func(o *azblob.Options) { small(o); o.Transport = tr }} {
		st := open(t, srv, edit)
		for _, key := range []string{"k", "plain"} {
			if obj := get(t, st, key); !bytes.Equal(obj.Data, data) || obj.Size != int64(len(data)) {
				t.Errorf("%s: got %d bytes, want %d", key, len(obj.Data), len(data))
			}
		}
		if err := list(st, t, ""); err != nil {
			t.Error(err)
		}
	}
	for _, e := range srv.Log() {
		if got := e.Header.Get("Accept-Encoding"); got != "" && got != "identity" {
			t.Errorf("%v offers %q", e, got)
		}
	}
}

// Metadata has lower-case names whatever the case in which a service returns them.
func TestMetadataNamesAreLowerCase(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	srv.PutBlob("box", "k", nil, &fakeaz.PutOptions{Metadata: map[string]string{"MixedCase": "v"}})
	info, err := open(t, srv, nil).Stat(t.Context(), "k")
	if err != nil || info.Metadata["mixedcase"] != "v" || len(info.Metadata) != 1 {
		t.Errorf("%v, %v", info.Metadata, err)
	}
}

// A version that an asked-for protocol has is sent with each request.
func TestAPIVersion(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	st := open(t, srv, func(o *azblob.Options) { o.APIVersion = "2024-11-04" })
	set(t, st, "k", content(5), nil)
	if err := st.DeleteAll(t.Context(), []string{"k"}); err != nil {
		t.Error(err)
	}
	for _, e := range srv.Log() {
		if got := e.Header.Get("x-ms-version"); got != "2024-11-04" {
			t.Errorf("%v has version %q", e, got)
		}
	}
}

// Sweep finds nothing to do, on a whole container too, and asks nobody.
func TestSweepHasNothingToDo(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	res, err := open(t, srv, nil).Sweep(t.Context(), 0)
	if err != nil || len(res.Aborted)+len(res.Failed)+res.Kept > 0 || len(srv.Log()) > 0 {
		t.Errorf("%+v, %v, requests: %s", res, err, srv.Log())
	}
}
