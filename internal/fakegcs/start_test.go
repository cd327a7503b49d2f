package fakegcs_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
)

// start runs a server that ends with the test.
func start(t *testing.T, opts fakegcs.Options) *fakegcs.Server {
	t.Helper()
	if opts.Buckets == nil {
		opts.Buckets = []string{"bucket"}
	}
	s := fakegcs.New(opts)
	t.Cleanup(s.Close)
	return s
}

// raw sends requests that are written out by hand.
type raw struct {
	t    *testing.T
	s    *fakegcs.Server
	base string // where paths lead
	hc   *http.Client
}

func newRaw(t *testing.T, opts fakegcs.Options) *raw {
	t.Helper()
	s := start(t, opts)
	hc := s.Client()
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(hc.CloseIdleConnections)
	return &raw{t, s, s.URL(), hc}
}

// answer is a response that was read to its end.
type answer struct {
	*http.Response
	text string
}

// send makes one request. Headers are pairs of name and value. The token is
// the default one, unless Authorization is among them; "" leaves a header out.
func (r *raw) send(method, url string, body []byte, headers ...string) answer {
	r.t.Helper()
	if strings.HasPrefix(url, "/") {
		url = r.base + url
	}
	var reader io.Reader = http.NoBody
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, url, reader)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+fakegcs.DefaultToken)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Del(headers[i])
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := r.hc.Do(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, url, err)
	}
	text, err := io.ReadAll(resp.Body)
	if cerr := resp.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, url, err)
	}
	return answer{resp, string(text)}
}

// want sends a request that must have this status.
func (r *raw) want(status int, method, url string, body []byte, headers ...string) answer {
	r.t.Helper()
	a := r.send(method, url, body, headers...)
	if a.StatusCode != status {
		r.t.Fatalf("%s %s: %d %s, want %d", method, url, a.StatusCode, a.text, status)
	}
	return a
}

// resource is the part of an object's metadata that tests look at.
type resource struct {
	Name, Generation, Metageneration, Size, CRC32C, MD5Hash, ContentType, ContentEncoding string
	TimeCreated, Updated, TimeDeleted, SoftDeleteTime, HardDeleteTime, ETag, MediaLink    string
	Metadata                                                                              map[string]string
}

func (a answer) resource(t *testing.T) resource {
	t.Helper()
	var r resource
	a.decode(t, &r)
	return r
}

func (a answer) decode(t *testing.T, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.text), to); err != nil {
		t.Fatalf("not JSON: %v: %s", err, a.text)
	}
}

// put stores an object by one request, and returns its metadata.
func (r *raw) put(key, text string, query ...string) resource {
	r.t.Helper()
	url := "/upload/storage/v1/b/bucket/o?uploadType=media&name=" + escape(key)
	for _, q := range query {
		url += "&" + q
	}
	return r.want(200, "POST", url, []byte(text), "Content-Type", "text/plain").resource(r.t)
}

// escape is the percent-encoding of one path segment or query value.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			b.WriteByte(c)
		} else {
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// list is the names, and the prefixes, of a page.
func (a answer) list(t *testing.T) string {
	t.Helper()
	var doc page
	a.decode(t, &doc)
	return doc.String()
}

// page is a page of a listing.
type page struct {
	Items         []resource
	Prefixes      []string
	NextPageToken string
}

func (p page) String() string {
	var out []string
	for _, o := range p.Items {
		out = append(out, o.Name)
	}
	for _, x := range p.Prefixes {
		out = append(out, x+" prefix")
	}
	return strings.Join(out, "|")
}
