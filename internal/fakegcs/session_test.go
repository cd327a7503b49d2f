package fakegcs_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

const quantum = 256 << 10

// begin starts a session and returns its URI.
func (r *raw) begin(key string, headers ...string) string {
	r.t.Helper()
	a := r.want(200, "POST", upload+"resumable&name="+escape(key), nil, headers...)
	if a.text != "" || a.Header.Get("X-Guploader-Uploadid") == "" {
		r.t.Fatalf("%q, %v", a.text, a.Header)
	}
	return a.Header.Get("Location")
}

// chunk sends bytes [from, to) of data; total < 0 is a total that is not known yet.
func (r *raw) chunk(status int, uri string, data []byte, from, to, total int, headers ...string) answer {
	r.t.Helper()
	text := "*"
	if total >= 0 {
		text = fmt.Sprint(total)
	}
	headers = append(headers, "Content-Range", fmt.Sprintf("bytes %d-%d/%s", from, to-1, text))
	return r.want(status, "PUT", uri, data[from:to], headers...)
}

// query asks for the state, and checks how much is persisted.
func (r *raw) query(uri, total string, persisted int) {
	r.t.Helper()
	a := r.want(308, "PUT", uri, nil, "Content-Range", "bytes */"+total)
	if got := a.Header.Get("Range"); got != persistedRange(persisted) {
		r.t.Fatalf("query of %s: Range %q, want %q", total, got, persistedRange(persisted))
	}
}

func persistedRange(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("bytes=0-%d", n-1)
}

func (r *raw) holds(key string, data []byte) {
	r.t.Helper()
	o, ok := r.s.Object("bucket", key)
	if !ok || !bytes.Equal(o.Bytes(), data) {
		r.t.Fatalf("%s does not hold the %d bytes", key, len(data))
	}
}

func (r *raw) absent(key string) {
	r.t.Helper()
	if _, ok := r.s.Object("bucket", key); ok {
		r.t.Fatalf("%s is there", key)
	}
}

func TestASessionTakesChunks(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	data := content(2*quantum + 100)
	uri := r.begin("k", "X-Upload-Content-Type", "text/css")
	r.query(uri, "*", 0)
	r.chunk(308, uri, data, 0, quantum, -1)
	r.query(uri, "*", quantum)
	r.query(uri, fmt.Sprint(len(data)), quantum) // a question, for the total is not there yet
	r.query(uri, "7", quantum)
	if us := r.s.Uploads("bucket"); len(us) != 1 || us[0].Key != "k" || us[0].Size != quantum || us[0].Total != -1 {
		t.Errorf("%+v", us)
	}
	if a := r.chunk(308, uri, data, quantum, 2*quantum, len(data)); a.Header.Get("Range") != persistedRange(2*quantum) {
		t.Errorf("Range %q", a.Header.Get("Range"))
	}
	r.absent("k")
	last := r.chunk(200, uri, data, 2*quantum, len(data), len(data)).resource(t)
	r.holds("k", data)
	if last.ContentType != "text/css" || last.Size != fmt.Sprint(len(data)) || len(r.s.Uploads("bucket")) != 0 {
		t.Errorf("%+v, uploads %v", last, r.s.Uploads("bucket"))
	}
	// A finished session answers whatever comes with its object, even if that
	// has been replaced.
	r.put("k", "newer")
	for _, form := range []string{"bytes */*", "bytes */7", fmt.Sprintf("bytes */%d", len(data))} {
		if a := r.want(200, "PUT", uri, nil, "Content-Range", form); a.resource(t).Generation != last.Generation {
			t.Errorf("%s: %s", form, a.text)
		}
	}
	r.chunk(200, uri, data, 0, quantum, -1)
	r.chunk(200, uri, data, 2*quantum, len(data), len(data))
	r.want(410, "DELETE", uri, nil)
	r.holds("k", []byte("newer"))
}

func TestEveryFormOfTheLastRequestFinishes(t *testing.T) {
	data := content(2 * quantum)
	odd := content(quantum + 5)
	for name, finish := range map[string]func(r *raw, uri string) []byte{
		"the total at the end": func(r *raw, uri string) []byte { r.chunk(200, uri, odd, quantum, len(odd), len(odd)); return odd },
		"nothing more": func(r *raw, uri string) []byte {
			r.want(200, "PUT", uri, nil, "Content-Range", "bytes */262144")
			return odd[:quantum]
		},
		"a stream of open end": func(r *raw, uri string) []byte {
			r.want(200, "PUT", uri, odd[quantum:], "Content-Range", "bytes 262144-*/*")
			return odd
		},
		"an open end with a total": func(r *raw, uri string) []byte {
			r.want(200, "PUT", uri, odd[quantum:], "Content-Range", "bytes 262144-*/262149")
			return odd
		},
		"all again, no header": func(r *raw, uri string) []byte { r.want(200, "PUT", uri, odd); return odd },
		"POST": func(r *raw, uri string) []byte {
			r.want(200, "POST", uri, odd[quantum:], "Content-Range", "bytes 262144-262148/262149")
			return odd
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRaw(t, fakegcs.Options{})
			uri := r.begin("k")
			r.chunk(308, uri, odd, 0, quantum, -1)
			r.holds("k", finish(r, uri))
		})
	}
	r := newRaw(t, fakegcs.Options{})
	uri := r.begin("empty")
	r.query(uri, "5", 0)
	r.want(200, "PUT", uri, nil, "Content-Range", "bytes */0")
	r.holds("empty", nil)
	r.want(200, "PUT", r.begin("one request"), data)
	r.holds("one request", data)
	announced := r.begin("announced", "X-Upload-Content-Length", fmt.Sprint(len(data)))
	r.chunk(308, announced, data, 0, quantum, -1)
	r.want(308, "PUT", announced, nil, "Content-Range", "bytes */262144") // not the total that was announced
	r.chunk(200, announced, data, quantum, len(data), len(data))
	r.holds("announced", data)
}

func TestChunksInTheWrongPlaceAreRefusedOrIgnored(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	data := content(3 * quantum)
	other := bytes.Repeat([]byte("x"), 3*quantum)
	uri := r.begin("k")
	gap := r.chunk(503, uri, data, quantum, 2*quantum, -1)
	if gap.text != "Invalid request.  According to the Content-Range header, the upload offset is 262144 byte(s), which exceeds already uploaded size of 0 byte(s)." ||
		!strings.HasPrefix(gap.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%q %v", gap.text, gap.Header)
	}
	r.chunk(308, uri, data, 0, quantum, -1)
	r.chunk(308, uri, other, 0, quantum, -1) // persisted already: ignored
	r.query(uri, "*", quantum)
	if a := r.chunk(308, uri, append(other[:quantum:quantum], data[quantum:]...), 0, 2*quantum, -1); a.Header.Get("Range") != persistedRange(2*quantum) {
		t.Errorf("overlap: %q", a.Header.Get("Range"))
	}
	for _, bad := range []string{"bytes 5-4/10", "bytes 0-9/5", "bytes x-9/10", "0-9/10", "bytes 0-9", "bytes -5/10", "bytes 0-4/10", "bytes */5", "bytes 0-+9/10"} {
		r.want(400, "PUT", uri, data[:10], "Content-Range", bad)
	}
	r.want(400, "PUT", uri, nil, "Content-Range", "bytes 5-4/10")
	r.query(uri, "*", 2*quantum)
	r.chunk(200, uri, data, quantum, len(data), len(data))
	r.holds("k", data)

	announced := r.begin("announced", "X-Upload-Content-Length", fmt.Sprint(2*quantum))
	r.chunk(400, announced, data, 0, len(data), len(data))
	r.chunk(400, announced, data, 0, quantum, len(data))
	r.chunk(400, announced, data, 0, len(data), -1)
	r.chunk(200, announced, data, 0, 2*quantum, 2*quantum)
	r.want(400, "POST", upload+"resumable&name=k", nil, "X-Upload-Content-Length", "x")
}

func TestLessThanAChunkMayPersist(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	data := content(4 * quantum)
	uri := r.begin("k")
	// A chunk that is no multiple of 256 KiB and not the last is rounded down.
	if a := r.chunk(308, uri, data, 0, quantum+7, -1); a.Header.Get("Range") != persistedRange(quantum) {
		t.Errorf("%q", a.Header.Get("Range"))
	}
	r.s.Inject(fakehttp.Fault{Op: "uploads.put", Shape: fakehttp.Shape{Extra: fakegcs.Keep(quantum + 1)}})
	if a := r.chunk(308, uri, data, quantum, 4*quantum, 4*quantum); a.Header.Get("Range") != persistedRange(2*quantum) {
		t.Errorf("%q", a.Header.Get("Range"))
	}
	r.s.Set(func(k *fakegcs.Knobs) { k.Keep = func(_ *fakehttp.Request, n int64) int64 { return n - 1 } })
	if a := r.chunk(308, uri, data, 2*quantum, 4*quantum, 4*quantum); a.Header.Get("Range") != persistedRange(3*quantum) {
		t.Errorf("%q", a.Header.Get("Range"))
	}
	r.absent("k")
	r.s.Set(func(k *fakegcs.Knobs) { k.Keep = nil })
	r.chunk(200, uri, data, 3*quantum, 4*quantum, 4*quantum)
	r.holds("k", data)
	first := r.begin("none")
	r.s.Inject(fakehttp.Fault{Op: "uploads.put", Shape: fakehttp.Shape{Extra: fakegcs.Keep(0)}})
	if a := r.chunk(308, first, data, 0, quantum, -1); a.Header.Get("Range") != "" {
		t.Errorf("%q", a.Header.Get("Range"))
	}
}

func TestOfAChunkThatIsCutWholeQuantaMayPersist(t *testing.T) {
	for _, drop := range []bool{false, true} {
		r := newRaw(t, fakegcs.Options{Knobs: fakegcs.Knobs{DropCut: drop}})
		data := content(3 * quantum)
		uri := r.begin("k")
		conn := exact(t, r.s, "PUT "+strings.TrimPrefix(uri, r.s.URL())+" HTTP/1.1\r\nHost: x\r\nContent-Range: bytes 0-786431/786432\r\nContent-Length: 786432\r\n\r\n", data[:2*quantum+9])
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503") {
			t.Errorf("%q, %v", answer, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		kept := 2 * quantum
		if drop {
			kept = 0
		}
		r.query(uri, "*", kept)
		r.chunk(200, uri, data, kept, len(data), len(data))
		r.holds("k", data)
	}
}

// All bytes may be there, but not the end of the body: that is no last chunk.
func TestABodyWithoutItsEndFinishesNothing(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	uri := r.begin("k")
	conn := exact(t, r.s, "PUT "+strings.TrimPrefix(uri, r.s.URL())+" HTTP/1.1\r\nHost: x\r\nContent-Range: bytes 0-4/5\r\nTransfer-Encoding: chunked\r\n\r\n", []byte("5\r\nhello\r\n"))
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503") {
		t.Errorf("%q, %v", answer, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	r.query(uri, "*", 0)
	r.absent("k")
}

func TestTheFinishedObjectIsHeldToItsChecksums(t *testing.T) {
	data := content(quantum + 10)
	for name, x := range map[string]struct{ metadata, header string }{
		"in the metadata": {`{"crc32c":"AAAAAA=="}`, ""},
		"at the end":      {`{}`, "crc32c=AAAAAA=="},
		"the MD5":         {`{"md5Hash":"AAAA"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRaw(t, fakegcs.Options{})
			uri := r.want(200, "POST", upload+"resumable&name=k", []byte(x.metadata)).Header.Get("Location")
			r.chunk(308, uri, data, 0, quantum, -1, "X-Goog-Hash", x.header)
			r.chunk(400, uri, data, quantum, len(data), len(data), "X-Goog-Hash", x.header)
			r.absent("k")
			r.want(400, "PUT", uri, nil, "Content-Range", "bytes */*")
		})
	}
	r := newRaw(t, fakegcs.Options{})
	sums := r.put("first", string(data))
	uri := r.want(200, "POST", upload+"resumable&name=k", []byte(`{"crc32c":"`+sums.CRC32C+`","metadata":{"one":"1"}}`)).Header.Get("Location")
	got := r.want(200, "PUT", uri, data, "X-Goog-Hash", "crc32c="+sums.CRC32C+",md5="+sums.MD5Hash, "X-Goog-Meta-Two", "2").resource(t)
	if got.Metadata["one"] != "1" || got.Metadata["two"] != "2" || got.CRC32C != sums.CRC32C {
		t.Errorf("%+v", got)
	}
	r.want(400, "PUT", r.begin("big"), data, "X-Goog-Meta-Two", strings.Repeat("2", 8190))
	r.absent("big")
}

func TestConditionsOfASessionAreDecidedTwice(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	const resumable = upload + "resumable&name=k&ifGenerationMatch="
	uri := r.want(200, "POST", resumable+"0", nil).Header.Get("Location")
	gen := r.put("k", "meanwhile").Generation
	r.want(412, "POST", resumable+"0", nil)
	r.want(412, "PUT", uri, []byte("late"))
	r.want(412, "PUT", uri, nil, "Content-Range", "bytes */*")
	r.holds("k", []byte("meanwhile"))
	r.want(200, "PUT", r.want(200, "POST", resumable+gen, nil).Header.Get("Location"), []byte("right"))
	r.holds("k", []byte("right"))
	if us := r.s.Uploads("bucket"); len(us) != 0 {
		t.Errorf("%+v", us)
	}
}

func TestASessionCanBeCancelled(t *testing.T) {
	r := newRaw(t, fakegcs.Options{Buckets: []string{"bucket", "other"}})
	data := content(2 * quantum)
	uri := r.begin("k")
	r.chunk(308, uri, data, 0, quantum, -1)
	elsewhere := strings.Replace(uri, "/b/bucket/", "/b/other/", 1)
	r.want(404, "PUT", elsewhere, nil, "Content-Range", "bytes */*")
	r.want(404, "DELETE", elsewhere, nil)
	r.want(499, "DELETE", uri, nil, "Authorization", "")
	for range 2 {
		r.want(499, "PUT", uri, nil, "Content-Range", "bytes */*")
		r.chunk(499, uri, data, quantum, len(data), len(data))
		r.want(499, "DELETE", uri, nil)
	}
	r.absent("k")
	if us := r.s.Uploads("bucket"); len(us) != 0 {
		t.Errorf("%+v", us)
	}
}

func TestASessionEnds(t *testing.T) {
	c := newClock()
	r := newRaw(t, fakegcs.Options{Now: c.now})
	old, done := r.begin("k"), r.begin("done")
	r.want(200, "PUT", done, []byte("x"))
	c.turn(7*24*time.Hour - 1)
	lost := r.begin("k")
	r.query(old, "*", 0)
	c.turn(1)
	r.want(404, "PUT", old, nil, "Content-Range", "bytes */*") // after a week
	r.want(404, "PUT", old, []byte("x"))
	r.want(404, "DELETE", old, nil)
	r.want(200, "PUT", done, nil, "Content-Range", "bytes */*")
	if us := r.s.Uploads("bucket"); len(us) != 1 {
		t.Errorf("%+v", us)
	}
	r.s.ExpireUploads("bucket")
	r.want(410, "PUT", lost, nil, "Content-Range", "bytes */*") // within it
	r.want(200, "PUT", done, nil, "Content-Range", "bytes */*")
	r.want(404, "PUT", strings.Replace(lost, "upload_id=", "upload_id=not", 1), nil, "Content-Range", "bytes */*")
	r.absent("k")
}

func TestClientsMayAskForNo308(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	a := r.want(200, "PUT", r.begin("k"), content(quantum), "Content-Range", "bytes 0-262143/*", "X-GUploader-No-308", "yes")
	if a.Header.Get("X-Http-Status-Code-Override") != "308" || a.Header.Get("Range") != persistedRange(quantum) {
		t.Errorf("%v", a.Header)
	}
}
