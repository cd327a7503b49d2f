package fakegcs_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// batch sends calls in one request and returns what answers each, as
// "id: status body".
func (r *raw) batch(calls ...string) []string {
	r.t.Helper()
	body, kind := batchBody(calls...)
	a := r.want(200, "POST", "/batch/storage/v1", body, "Content-Type", kind)
	_, params, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for m := multipart.NewReader(strings.NewReader(a.text), params["boundary"]); ; {
		p, err := m.NextPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			r.t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(p), nil)
		if err != nil {
			r.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if cerr := resp.Body.Close(); err != nil || cerr != nil {
			r.t.Fatal(err, cerr)
		}
		out = append(out, fmt.Sprintf("%s: %d %s", p.Header.Get("Content-ID"), resp.StatusCode, text))
	}
}

func batchBody(calls ...string) (body []byte, contentType string) {
	var b bytes.Buffer
	for i, c := range calls {
		fmt.Fprintf(&b, "--xx\r\nContent-Type: application/http\r\nContent-ID: <b+%d>\r\n\r\n%s\r\n", i, c)
	}
	b.WriteString("--xx--\r\n")
	return b.Bytes(), "multipart/mixed; boundary=xx"
}

func TestABatchAnswersEveryCall(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	for _, k := range []string{"a", "b/c", "d", "e"} {
		r.put(k, "text")
	}
	got := r.batch(
		"DELETE "+object+"a HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		"DELETE "+object+"b%2Fc HTTP/1.1",
		"DELETE "+object+"missing",
		"DELETE "+object+"d?ifGenerationMatch=7 HTTP/1.1\r\n\r\n",
		"GET "+object+"e?fields=name HTTP/1.1\r\n\r\n",
		"PATCH "+object+"e?fields=metadata HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 24\r\n\r\n{\"metadata\":{\"one\":\"1\"}}",
		"GET "+object+"e?alt=media HTTP/1.1\r\n\r\n",
		"POST "+upload+"media&name=new HTTP/1.1\r\n\r\n",
		"DELETE "+object+"e HTTP/1.1\r\nAuthorization: Bearer wrong\r\n\r\n",
	)
	want := []string{
		"<response-b+0>: 204 ", "<response-b+1>: 204 ", "<response-b+2>: 404 {", "<response-b+3>: 412 {", `<response-b+4>: 200 {"name":"e"}`,
		`<response-b+5>: 200 {"metadata":{"one":"1"}}`, "<response-b+6>: 400 ", "<response-b+7>: 400 {", "<response-b+8>: 401 {",
	}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
	if left := r.walk(""); left[0] != "d|e" {
		t.Errorf("%q are left", left)
	}
	if log := r.s.Log(); !strings.HasSuffix(log[:len(log)-1].String(), "batch 9 keys -> 200\n") {
		t.Errorf("%s", log)
	}
}

func TestABatchIsLimited(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	calls := make([]string, 101)
	for i := range calls {
		calls[i] = fmt.Sprintf("DELETE %sk%d HTTP/1.1", object, i)
	}
	body, kind := batchBody(calls...)
	r.want(400, "POST", "/batch/storage/v1", body, "Content-Type", kind)
	if got := r.batch(calls[:100]...); len(got) != 100 {
		t.Errorf("%d answers", len(got))
	}
	r.want(400, "POST", "/batch/storage/v1", body, "Content-Type", "text/plain")
	r.want(400, "POST", "/batch/storage/v1", []byte("x"), "Content-Type", kind)
	r.want(400, "POST", "/batch/storage/v1", []byte("--xx--\r\n"), "Content-Type", kind)
	r.want(400, "POST", "/batch/storage/v1", []byte("--xx\r\nContent-Type: application/http\r\n\r\nwhat\r\n--xx--\r\n"), "Content-Type", kind)
	r.want(413, "POST", "/batch/storage/v1", make([]byte, 10<<20+1), "Content-Type", kind)
	r.want(401, "POST", "/batch/storage/v1", body, "Content-Type", kind, "Authorization", "")
}

func TestCallsOfABatchCanFail(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	r.put("a", "1")
	r.put("b", "2")
	r.s.Inject(fakehttp.Fault{Op: "batch", Shape: fakehttp.Shape{DeleteError: func(key string) string {
		return map[string]string{"a": "503"}[key]
	}}})
	got := r.batch("DELETE "+object+"a HTTP/1.1", "DELETE "+object+"b HTTP/1.1")
	if !strings.Contains(got[0], ": 503 ") || !strings.Contains(got[0], `"reason":"backendError"`) || !strings.Contains(got[1], ": 204 ") {
		t.Errorf("%q", got)
	}
	r.holds("a", []byte("1"))
	r.absent("b")
}
