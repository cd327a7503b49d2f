package s3blob_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// A service that lists other uploads than those asked for makes Sweep fail before it aborts one.
func TestSweepAbortsNothingUnderAnotherPrefix(t *testing.T) {
	srv := fake(t, fakes3.Options{Anonymous: true, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	reply, err := srv.Client().Post(srv.URL()+"/b/theirs/x?uploads", "", http.NoBody) //nolint:noctx // a server in this process
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	st := through(t, srv, func(o *s3blob.Options) { o.Prefix = "mine" }, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "prefix=mine%2F", "prefix=")
		return next.RoundTrip(r)
	})
	res, err := st.Sweep(t.Context(), time.Minute)
	wantKind(t, err, blob.ErrCorrupt)
	if len(res.Aborted) > 0 || len(srv.Uploads("b")) != 1 {
		t.Errorf("%+v, left: %v", res, srv.Uploads("b"))
	}
	srv.CloseIdleConns()
}
