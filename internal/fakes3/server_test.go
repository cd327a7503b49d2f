package fakes3_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/wholeblob/wholeblob/internal/fakes3"
)

func TestVirtualHostedBuckets(t *testing.T) {
	for _, opts := range []fakes3.Options{{}, {TLS: true}, {TLS: true, Domain: "s3.test"}} {
		s := start(t, opts)
		domain := "localhost"
		if opts.Domain != "" {
			domain = opts.Domain
		}
		endpoint := strings.Replace(s.URL(), "127.0.0.1", domain, 1)
		client := sdkClient(t, s, func(o *s3.Options) { o.UsePathStyle = false; o.BaseEndpoint = &endpoint })
		f := &conf{Context: t.Context(), c: client, bucket: "bucket", prefix: "p/"}
		if err := f.roundTrip("a b//c"); err != nil {
			t.Error(err)
		}
		e := s.Log()[0]
		if !strings.HasPrefix(e.Host, "bucket."+domain) || e.RawPath != "/p/a%20b//c" {
			t.Errorf("host %q, path %q", e.Host, e.RawPath)
		}
	}
}

// TestSDKSendsTrailersOverTLS: else the conformance checks over TLS would say
// nothing about aws-chunked bodies.
func TestSDKSendsTrailersOverTLS(t *testing.T) {
	for _, tls := range []bool{false, true} {
		s := start(t, fakes3.Options{TLS: tls})
		f := &conf{Context: t.Context(), c: sdkClient(t, s), bucket: "bucket"}
		if _, err := f.put("k", []byte("data")); err != nil {
			t.Fatal(err)
		}
		e := s.Log()[0]
		if trailer := e.Header.Get("x-amz-trailer") != ""; trailer != tls || e.BodyLen != 4 {
			t.Errorf("TLS %v: trailer %v, %d bytes", tls, trailer, e.BodyLen)
		}
	}
}

func TestLogIsTheSameEveryTime(t *testing.T) {
	const wantLog = `PutObject k 4B -> 200
PutObject k 4B If-None-Match=* -> 412
GetObject k partNumber=1 -> 206
GetObject k bytes=1-2 If-Match=etag -> 206
GetObject "a b" -> 404
CreateMultipartUpload m -> 200
UploadPart m partNumber=1 5B -> 200
AbortMultipartUpload m -> 204
ListObjectsV2 prefix=a/ max-keys=1 -> 200
DeleteObjects 2 keys -> 200
DeleteObject k -> none
GetObject k -> 200 cut
HeadBucket -> 404
`
	for range 2 {
		r := startRaw(t, fakes3.Options{HashBodies: true})
		r.do("PUT", "/bucket/k", "data")
		r.do("PUT", "/bucket/k", "data", "If-None-Match", "*")
		r.do("GET", "/bucket/k?partNumber=1", "")
		o, _ := r.s.Object("bucket", "k")
		r.do("GET", "/bucket/k", "", "Range", "bytes=1-2", "If-Match", o.ETag)
		r.do("GET", "/bucket/a%20b", "")
		id := r.upload("m", "12345")
		r.do("DELETE", "/bucket/m?uploadId="+id, "")
		r.do("GET", "/bucket?list-type=2&prefix=a/&max-keys=1", "")
		r.do("POST", "/bucket?delete", deleteTwo, "Content-MD5", md5Of([]byte(deleteTwo)))
		r.s.Inject(fakes3.Fault{Op: "DeleteObject", Before: fakes3.Close})
		r.do("DELETE", "/bucket/k", "")
		r.s.Inject(fakes3.Fault{Op: "GetObject", Cut: &fakes3.Cut{At: 1}})
		r.do("GET", "/bucket/k", "")
		r.do("HEAD", "/other", "")
		log := r.s.Log()
		if got := log.String(); got != wantLog {
			t.Fatalf("log:\n%s\nwant:\n%s", got, wantLog)
		}
		const dataHash = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7"
		if e := log[0]; e.BodySHA256 != dataHash || e.BodyLen != 4 || e.Bucket != "bucket" || e.Conn == 0 || e.Time.IsZero() {
			t.Errorf("first entry: %+v", e)
		}
		if n := log.Count("GetObject", "HeadBucket"); n != 5 {
			t.Errorf("counted %d", n)
		}
		if s := log.Only("GetObject").Sorted().String(); !strings.HasPrefix(s, "GetObject \"a b\" -> 404\nGetObject k -> 200 cut\n") {
			t.Errorf("sorted:\n%s", s)
		}
		r.s.ResetLog()
		if n := r.s.Log().Count(); n != 0 {
			t.Errorf("%d entries after a reset", n)
		}
	}
}

func TestNoLogKeepsNothing(t *testing.T) {
	r := startRaw(t, fakes3.Options{NoLog: true})
	r.expect(r.do("PUT", "/bucket/k", "x"), want{status: 200})
	if n := len(r.s.Log()); n != 0 {
		t.Errorf("%d entries", n)
	}
}

func TestConnectionsAreCountedAndClosed(t *testing.T) {
	for _, mode := range []fakes3.Options{{}, {TLS: true}, {InMemory: true}} {
		r := startRaw(t, mode)
		for range 3 {
			r.expect(r.do("PUT", "/bucket/k", "x"), want{status: 200})
		}
		if n := r.s.OpenConns(); n != 1 {
			t.Errorf("%d connections open, want one that is used again", n)
		}
		if e := r.s.Log(); e[0].Conn != e[2].Conn {
			t.Errorf("connections %d and %d", e[0].Conn, e[2].Conn)
		}
		r.s.CloseIdleConns()
		if n := r.s.OpenConns(); n != 0 {
			t.Errorf("%d connections open after closing the idle ones", n)
		}
		// A client may or may not notice before it writes; a GET is sent again
		// by net/http in both cases.
		r.expect(r.do("GET", "/bucket/k", ""), want{status: 200, body: "x"})
		if e := r.s.Log(); e[3].Conn == e[2].Conn {
			t.Error("the idle connection was not closed")
		}
		r.s.Close()
		if n := r.s.OpenConns(); n != 0 {
			t.Errorf("%d connections open after Close", n)
		}
		r.s.Close()
	}
}

// TestStartReportsAnAddressInUse: New panics there, Start does not.
func TestStartReportsAnAddressInUse(t *testing.T) {
	s := start(t, fakes3.Options{})
	if _, err := fakes3.Start(fakes3.Options{Addr: s.Addr()}); err == nil {
		t.Error("no error")
	}
}

// TestReadersSeeOneVersion reads beside an overwriting writer: old or new,
// never mixed, and of the racing creators one wins.
func TestReadersSeeOneVersion(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	bodies := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 300_000)}
	r.s.PutObject("bucket", "k", [][]byte{[]byte(bodies[0])}, nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 20 {
				if i == 0 {
					r.expect(r.do("PUT", "/bucket/k", bodies[1]), want{status: 200})
					r.expect(r.do("PUT", "/bucket/k", bodies[0]), want{status: 200})
					continue
				}
				if got := r.do("GET", "/bucket/k", ""); got.body != bodies[0] && got.body != bodies[1] {
					t.Error("a mixed read")
				}
			}
		})
	}
	wg.Wait()
}

func TestShortBodyStoresNothing(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	conn, err := r.s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := r.s.Inject(fakes3.Fault{Op: "PutObject"})
	if _, err := io.WriteString(conn, "PUT /bucket/k HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-seen.Reached() // after it was handled
	if _, stored := r.s.Object("bucket", "k"); stored {
		t.Error("stored")
	}
}

func TestNoLengthIsRefused(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.s.URL()+"/bucket/k", io.MultiReader(strings.NewReader("x")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer closeBody(t, resp)
	if resp.StatusCode != http.StatusLengthRequired {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestTimePassesInABubble: latency and bandwidth use time that a synctest
// bubble makes up, over connections that a bubble can wait for.
func TestTimePassesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakes3.New(fakes3.Options{InMemory: true, Anonymous: true, Buckets: []string{"bucket"},
			Knobs: fakes3.Knobs{Latency: time.Minute, Bandwidth: 1 << 20}})
		defer s.Close()
		c := s.Client()
		defer c.CloseIdleConnections()
		s.PutObject("bucket", "k", [][]byte{make([]byte, 60<<20)}, nil)
		begin := time.Now()
		r := &raw{t, s, c}
		if got := r.do("GET", "/bucket/k", ""); got.err != nil || len(got.body) != 60<<20 {
			t.Fatalf("%d bytes, %v", len(got.body), got.err)
		}
		if took := time.Since(begin); took != 2*time.Minute {
			t.Errorf("took %v of the bubble's time, want 2m0s", took)
		}
		s.Inject(fakes3.Fault{Op: "HeadObject", Delay: time.Hour})
		begin = time.Now()
		if got := r.do("HEAD", "/bucket/k", ""); got.err != nil || time.Since(begin) != time.Hour+time.Minute {
			t.Errorf("%v after %v of the bubble's time, want 1h1m0s", got.err, time.Since(begin))
		}
		in := s.Inject(fakes3.Fault{Before: fakes3.Silence})
		c.Timeout = time.Hour
		if got := r.do("GET", "/bucket/k", ""); got.err == nil {
			t.Error("an answer out of the silence")
		}
		in.Release()
	})
}

// TestSuspendedVersioningKeepsOneNullVersion: writes replace the null version
// and leave those with an id alone.
func TestSuspendedVersioningKeepsOneNullVersion(t *testing.T) {
	r := startRaw(t, fakes3.Options{Versioned: true})
	r.do("PUT", "/bucket/k", "kept")
	r.s.SetVersioning("bucket", false)
	r.do("PUT", "/bucket/k", "replaced")
	r.expect(r.do("PUT", "/bucket/k", "null"), want{status: 200, header: map[string]string{"X-Amz-Version-Id": "null"}})
	vs := r.s.Versions("bucket", "k")
	if len(vs) != 2 || string(vs[0].Bytes()) != "null" || string(vs[1].Bytes()) != "kept" {
		t.Errorf("versions: %v", vs)
	}
	r.expect(r.do("DELETE", "/bucket/k", ""), want{status: 204, header: map[string]string{"X-Amz-Delete-Marker": "true"}})
	if vs = r.s.Versions("bucket", "k"); len(vs) != 2 || !vs[0].Marker || vs[0].VersionID != "null" {
		t.Errorf("versions after a delete: %v", vs)
	}
}

// TestClientThatGivesUpFreesTheServer: a silence ends on both sides.
func TestClientThatGivesUpFreesTheServer(t *testing.T) {
	for _, fault := range []fakes3.Fault{{Before: fakes3.Silence}, {Cut: &fakes3.Cut{At: 1, How: fakes3.Silence}}} {
		synctest.Test(t, func(t *testing.T) {
			s := fakes3.New(fakes3.Options{InMemory: true, Anonymous: true, Buckets: []string{"bucket"}})
			defer s.Close()
			r := &raw{t, s, s.Client()}
			defer r.c.CloseIdleConnections()
			r.c.Timeout = time.Second
			s.PutObject("bucket", "k", digits, nil)
			s.Inject(fault)
			if got := r.do("GET", "/bucket/k", ""); got.err == nil {
				t.Error("no error")
			}
			synctest.Wait()
			if n := s.OpenConns() + s.InFlight(); n != 0 {
				t.Errorf("%d connections and requests are left", n)
			}
		})
	}
}

func TestCopyOfAMultipartObjectIsOneObject(t *testing.T) {
	r := startRaw(t, fakes3.Options{})
	r.s.PutObject("bucket", "parts", digits, nil)
	r.s.PutObject("bucket", "plain", [][]byte{[]byte(allDigits)}, nil)
	r.expect(r.do("PUT", "/bucket/copy", "", "x-amz-copy-source", "/bucket/parts"), want{status: 200})
	plain, _ := r.s.Object("bucket", "plain")
	copied, ok := r.s.Object("bucket", "copy")
	if !ok || copied.ETag != plain.ETag || copied.Parts != nil || string(copied.Bytes()) != allDigits {
		t.Errorf("copy: %+v", copied)
	}
}

func TestVersionListingBeginsBehindTheMarker(t *testing.T) {
	r := startRaw(t, fakes3.Options{Versioned: true})
	for _, k := range []string{"a", "a", "b"} {
		r.s.PutObject("bucket", k, nil, nil)
	}
	for query, n := range map[string]int{
		"": 3, "&key-marker=a": 1, "&key-marker=a&version-id-marker=" + r.s.Versions("bucket", "a")[0].VersionID: 2,
	} {
		if got := strings.Count(r.do("GET", "/bucket?versions"+query, "").body, "<Version>"); got != n {
			t.Errorf("%q: %d versions, want %d", query, got, n)
		}
	}
}
