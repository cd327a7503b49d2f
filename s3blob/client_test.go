package s3blob_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// Without options for them, credentials and region are those the SDK finds.
func TestCredentialsOfTheEnvironment(t *testing.T) {
	srv := fake(t, fakes3.Options{Region: "eu-central-1"})
	c := fakes3.DefaultCredentials()
	t.Setenv("AWS_ACCESS_KEY_ID", c.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", c.SecretKey)
	t.Setenv("AWS_REGION", "eu-central-1")
	for _, region := range []string{"eu-central-1", ""} {
		st, err := s3blob.New(t.Context(), "b", &s3blob.Options{Endpoint: srv.URL(), PathStyle: true, Region: region})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeStore(t, st) })
		if _, err := st.Set(t.Context(), "k", blob.Bytes(nil), nil); err != nil {
			t.Error(err)
		}
	}
}

// Checksums of the SDK's own are sent to Amazon S3 or when asked for: other servers refuse them, or store their framing as
// data (google/go-cloud #3634).
func TestChecksumsAreSentOnlyWhereAskedFor(t *testing.T) {
	for _, tls := range []bool{false, true} {
		srv := fake(t, fakes3.Options{TLS: tls, MinPartSize: -1})
		tr := srv.Transport()
		t.Cleanup(tr.CloseIdleConnections)
		for sw, want := range map[s3blob.Switch]bool{s3blob.Auto: false, s3blob.Off: false, s3blob.On: true} {
			srv.ResetLog()
			st := open(t, srv, func(o *s3blob.Options) { small(o); o.Checksums, o.Transport = sw, tr })
			for _, size := range []int{10, 2*P + 1} {
				if _, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), nil); err != nil {
					t.Fatal(err)
				}
				wantBytes(t, mustGet(t, st, "k", nil).Data, content(size))
			}
			for _, e := range srv.Log().Only("PutObject", "CreateMultipartUpload", "UploadPart") {
				if got := hasChecksum(e.Header); got != want {
					t.Errorf("TLS %t, checksums %q: %s has a checksum: %t\n%v", tls, sw, e, got, e.Header)
				}
			}
		}
	}
}

func hasChecksum(h http.Header) bool {
	for name, v := range h {
		if n := strings.ToLower(name); strings.Contains(n, "checksum") || n == "x-amz-trailer" || strings.Contains(v[0], "aws-chunked") {
			return true
		}
	}
	return false
}

// A server that knows no checksums works by default.
func TestServersThatRefuseChecksums(t *testing.T) {
	for _, tls := range []bool{false, true} {
		srv := fake(t, fakes3.Options{TLS: tls, MinPartSize: -1, Knobs: fakes3.Knobs{RefuseChecksums: 400}})
		tr := srv.Transport()
		t.Cleanup(tr.CloseIdleConnections)
		st := open(t, srv, func(o *s3blob.Options) { small(o); o.Transport = tr })
		for _, size := range []int{0, 10, 2*P + 1} {
			if _, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), nil); err != nil {
				t.Errorf("TLS %t, %d bytes: %v", tls, size, err)
			}
		}
	}
}

// On an endpoint that nobody vouches for the first Set looks at what was stored: framing that is kept as data is an error, lost
// metadata a warning; later Sets cost what they cost elsewhere.
func TestFirstSetIsLookedAt(t *testing.T) {
	set := func(t *testing.T, knobs fakes3.Knobs, tls bool, checksums s3blob.Switch) (*fakes3.Server, string, error) {
		srv := fake(t, fakes3.Options{MinPartSize: -1, TLS: tls, Knobs: knobs})
		tr := srv.Transport()
		t.Cleanup(tr.CloseIdleConnections)
		var log strings.Builder
		st := open(t, srv, func(o *s3blob.Options) {
			o.Conditions, o.Checksums, o.Transport = s3blob.TrustAuto, checksums, tr
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		var err error
		for range 3 {
			if _, err = st.Set(t.Context(), "k", blob.Bytes(content(10)), nil); err != nil {
				break
			}
		}
		return srv, log.String(), err
	}
	srv, log, err := set(t, fakes3.Knobs{}, false, s3blob.Auto)
	if err != nil || log != "" || srv.Log().Count("PutObject") != 3 || srv.Log().Count("HeadObject") != 1 {
		t.Errorf("%v, %q, requests:\n%s", err, log, srv.Log())
	}
	if _, log, err = set(t, fakes3.Knobs{LosesMetadata: true}, false, s3blob.Auto); err != nil || !strings.Contains(log, "loses metadata") {
		t.Errorf("lost metadata: %v, %q", err, log)
	}
	srv, _, err = set(t, fakes3.Knobs{StoreFraming: true}, true, s3blob.On)
	obj, _ := srv.Object("b", "k")
	wantKind(t, err, blob.ErrCorrupt)
	if len(obj.Bytes()) == 10 {
		t.Error("the server did not store the framing: this test shows nothing")
	}
	if _, _, err = set(t, fakes3.Knobs{StoreFraming: true}, true, s3blob.Auto); err != nil {
		t.Errorf("framing is stored, but none is sent: %v", err)
	}
}
