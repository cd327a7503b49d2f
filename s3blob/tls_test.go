package s3blob_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/s3blob"
)

// tlsSeen counts the uploads that reached a server over TLS, and those of them with a checksum in a trailer.
type tlsSeen struct {
	mu                 sync.Mutex
	uploads, inTrailer int
}

func (s *tlsSeen) request(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != http.MethodPut {
		return
	}
	s.uploads++
	if r.Header.Get("X-Amz-Trailer") != "" || strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") {
		s.inTrailer++
	}
}

// Over TLS the SDK sends checksums in trailers unless told not to, and by default s3blob tells it so on endpoints that are not Amazon's:
// some keep the framing of the trailer as data, others the Content-Encoding that announces it.
func TestDefaultSendsNoTrailersOverTLS(t *testing.T) {
	onRealServers(t, func(t *testing.T, srv *realserver.S3) {
		seen := &tlsSeen{}
		roundTripOverTLS(t, srv, s3blob.Auto, seen, map[string]string{"single": "", "parts": ""})
		if seen.uploads != 3 || seen.inTrailer != 0 {
			t.Errorf("%d of %d uploads had trailers, want 0 of 3", seen.inTrailer, seen.uploads)
		}
	})
}

// What the two servers make of trailers, for those who turn checksums on.
func TestChecksumsOnOverTLS(t *testing.T) {
	encodings := map[string]map[string]string{
		// Kept, although it is how the body travelled and not part of the object; parts lose it.
		"versitygw": {"single": "aws-chunked", "parts": ""},
		"seaweedfs": {"single": "", "parts": ""},
	}
	onRealServers(t, func(t *testing.T, srv *realserver.S3) {
		seen := &tlsSeen{}
		roundTripOverTLS(t, srv, s3blob.On, seen, encodings[srv.Name])
		if seen.uploads != 3 || seen.inTrailer != 3 {
			t.Errorf("%d of %d uploads had trailers, want 3 of 3", seen.inTrailer, seen.uploads)
		}
	})
}

// roundTripOverTLS writes an object in one request and one in two parts, and checks what is stored of each: its bytes, and its
// Content-Encoding, which nobody has set.
func roundTripOverTLS(t *testing.T, srv *realserver.S3, checksums s3blob.Switch, seen *tlsSeen, encodings map[string]string) {
	t.Helper()
	front, transport := srv.TLSFront(t, seen.request)
	bucket := srv.NewBucket(t)
	st := openReal(t, front, bucket, func(o *s3blob.Options) {
		realSizes(o)
		o.Transport, o.Checksums = transport, checksums
	})
	for key, data := range map[string][]byte{"single": content(1000), "parts": content(realPart + 1)} {
		if _, err := st.Set(t.Context(), key, blob.Bytes(data), nil); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, mustGet(t, st, key, nil).Data, data)
		head, err := srv.Client().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
		if err != nil {
			t.Fatal(err)
		}
		if got := aws.ToString(head.ContentEncoding); got != encodings[key] || aws.ToInt64(head.ContentLength) != int64(len(data)) {
			t.Errorf("%s: stored %d bytes with Content-Encoding %q, want %d with %q", key, aws.ToInt64(head.ContentLength), got, len(data), encodings[key])
		}
	}
}

// The same on the fake, which answers as Amazon does: the endpoint decides, not the server.
func TestDefaultSendsNoTrailersToTheFakeOverTLS(t *testing.T) {
	for checksums, want := range map[s3blob.Switch]bool{s3blob.Auto: false, s3blob.On: true} {
		srv := fake(t, fakes3.Options{TLS: true, MinPartSize: -1})
		transport := srv.Transport()
		t.Cleanup(transport.CloseIdleConnections)
		st := open(t, srv, func(o *s3blob.Options) { small(o); o.Transport, o.Checksums = transport, checksums })
		for key, data := range map[string][]byte{"single": content(100), "parts": content(2*P + 1)} {
			if _, err := st.Set(t.Context(), key, blob.Bytes(data), nil); err != nil {
				t.Fatal(err)
			}
			wantBytes(t, mustGet(t, st, key, nil).Data, data)
		}
		for _, e := range srv.Log() {
			if e.Op == "PutObject" || e.Op == "UploadPart" {
				if got := e.Header.Get("X-Amz-Trailer") != ""; got != want {
					t.Errorf("Checksums %q: %s with a trailer: %v, want %v", checksums, e.Op, got, want)
				}
			}
		}
	}
}
