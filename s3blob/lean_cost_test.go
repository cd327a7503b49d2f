package s3blob

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/wholeblob/wholeblob/internal/transfer"
)

// still answers at once, so that all that is measured is the making of requests and the reading of replies.
type still struct{ header http.Header }

// RoundTrip implements http.RoundTripper.
func (s still) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: s.header, Body: http.NoBody, Request: req,
	}, nil
}

// small are the requests of small objects, where what is done for each request counts most.
var small = map[string]func(context.Context, *requests) error{
	"put": func(ctx context.Context, r *requests) error {
		body := func() io.ReadSeeker { return bytes.NewReader(make([]byte, 100)) }
		_, err := r.Put(ctx, transfer.PutRequest{Key: "some/key", Body: body, Size: 100, Meta: transfer.Meta{ContentType: "a/b", Metadata: map[string]string{"wholeblobtoken": "t"}}})
		return err
	},
	"get": func(ctx context.Context, r *requests) error {
		rep, err := r.Read(ctx, transfer.ReadRequest{Key: "some/key", Part: 1})
		if err == nil {
			err = rep.Body.Close()
		}
		return err
	},
	"head": func(ctx context.Context, r *requests) error {
		_, err := r.Head(ctx, "some/key")
		return err
	},
}

func smallWays(tb testing.TB) (ways map[string]*requests) {
	short, sdk := bothWays(tb, "bucket", Options{Endpoint: "http://127.0.0.1:1", PathStyle: true, UnsignedPayload: true}, still{http.Header{
		"Etag": {`"e"`}, "Content-Length": {"0"}, "Last-Modified": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Date": {"Sun, 06 Nov 1994 08:49:37 GMT"},
	}})
	return map[string]*requests{"lean": short, "sdk": sdk}
}

// A request of a small object makes at most a quarter of the allocations of one through the SDK.
func TestAllocationsOfLeanRequests(t *testing.T) {
	for name, do := range small {
		count := make(map[string]float64)
		for way, r := range smallWays(t) {
			count[way] = testing.AllocsPerRun(50, func() {
				if err := do(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			})
		}
		t.Logf("%s: %v", name, count)
		if count["lean"] > count["sdk"]/4 {
			t.Errorf("%s: %v", name, count)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	for name, do := range small {
		for way, r := range smallWays(b) {
			b.Run(name+"/"+way, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := do(b.Context(), r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
