package gcsblob_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/internal/realserver/storetable"
)

var updateStores = flag.Bool("update", false, "rewrite the table of docs/stores.md; needs every server")

// Docs say of each server what it answers today; a server that is not to be had keeps its column.
func TestStoresTable(t *testing.T) {
	table := storetable.Table{File: "../docs/stores.md", Package: "gcsblob", Service: "Google"}
	storetable.Run(t, table, *updateStores, googleQuestions(), []storetable.Server[*googleServer]{
		{Name: "fake-gcs-server", Start: func(t *testing.T) *googleServer {
			srv := realserver.FakeGCS(t)
			return newGoogleServer(srv.Version, srv.Endpoint, srv.NewBucket(t), srv.NewBucket(t, realserver.Versioned))
		}},
		{Name: "the fake of the tests", Start: func(t *testing.T) *googleServer {
			plain, versioned := fake(t, fakegcs.Options{}), fake(t, fakegcs.Options{Buckets: []string{"v"}, Versioned: true})
			s := newGoogleServer("this repository's", plain.URL(), "b", "v")
			s.versionedRoot, s.token = versioned.URL(), fakegcs.DefaultToken
			return s
		}},
	})
}

// googleServer is a server with what it takes to ask it in plain HTTP.
type googleServer struct {
	version             string
	client              *http.Client
	root, versionedRoot string // of the endpoints
	bucket, versioned   string
	token               string // "": none is asked for
}

func newGoogleServer(version, root, bucket, versioned string) *googleServer {
	return &googleServer{
		version: version, root: root, versionedRoot: root, bucket: bucket, versioned: versioned,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}},
	}
}

// googleReply is an answer read to its end.
type googleReply struct {
	*http.Response
	body string
}

// String is its status.
func (r googleReply) String() string {
	if r.StatusCode == 0 {
		return "no answer"
	}
	return fmt.Sprint(r.StatusCode)
}

// generation is the one in a resource that was answered.
func (r googleReply) generation() string {
	var object struct{ Generation string }
	_ = json.Unmarshal([]byte(r.body), &object)
	return object.Generation
}

// googleProbe is one question put to one server.
type googleProbe struct {
	*testing.T
	*googleServer
	key string
}

// do sends a request; headers are pairs.
func (p *googleProbe) do(method, address, body string, headers ...string) googleReply {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), method, address, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return googleReply{&http.Response{Header: http.Header{}}, ""}
	}
	data, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		p.Fatal(err)
	}
	return googleReply{resp, string(data)}
}

// must ends the test if what only prepares a question is refused.
func (p *googleProbe) must(r googleReply) googleReply {
	p.Helper()
	if r.StatusCode/100 != 2 {
		p.Fatalf("%s: %s", r, r.body)
	}
	return r
}

// at is the address of an object in the JSON API.
func (p *googleProbe) at(name, query string) string {
	return p.root + "/storage/v1/b/" + p.bucket + "/o/" + url.PathEscape(p.key+name) + query
}

// insert uploads in one request; query begins with "&".
func (p *googleProbe) insert(name, body, query string) googleReply {
	p.Helper()
	return p.do("POST", p.root+"/upload/storage/v1/b/"+p.bucket+"/o?uploadType=media&name="+url.QueryEscape(p.key+name)+query, body)
}

// related uploads in one request with metadata, which is a JSON object without its name.
func (p *googleProbe) related(name, metadata, body string) googleReply {
	p.Helper()
	object := fmt.Sprintf(`{"name": %q%s}`, p.key+name, metadata)
	parts := "--part\r\nContent-Type: application/json\r\n\r\n" + object + "\r\n--part\r\nContent-Type: text/plain\r\n\r\n" + body + "\r\n--part--\r\n"
	return p.do("POST", p.root+"/upload/storage/v1/b/"+p.bucket+"/o?uploadType=multipart", parts, "Content-Type", "multipart/related; boundary=part")
}

// begin begins a resumable upload.
func (p *googleProbe) begin(name, metadata, query string) googleReply {
	p.Helper()
	return p.do("POST", p.root+"/upload/storage/v1/b/"+p.bucket+"/o?uploadType=resumable&name="+url.QueryEscape(p.key+name)+query,
		"{"+metadata+"}", "Content-Type", "application/json")
}

func (p *googleProbe) session(name, metadata string) (uri string) {
	p.Helper()
	return p.must(p.begin(name, metadata, "")).Header.Get("Location")
}

func (p *googleProbe) chunk(session, body, contentRange string) googleReply {
	p.Helper()
	return p.do("PUT", session, body, "Content-Range", contentRange)
}

// names are those of one page, prefixes behind objects, without the key of the question; query begins with "&".
func (p *googleProbe) names(query string) (names []string, next string) {
	p.Helper()
	var page struct {
		Items         []struct{ Name string }
		Prefixes      []string
		NextPageToken string
	}
	r := p.must(p.do("GET", p.root+"/storage/v1/b/"+p.bucket+"/o?prefix="+url.QueryEscape(p.key)+query, ""))
	if err := json.Unmarshal([]byte(r.body), &page); err != nil {
		p.Fatal(err)
	}
	for _, item := range page.Items {
		names = append(names, strings.TrimPrefix(item.Name, p.key))
	}
	for _, prefix := range page.Prefixes {
		names = append(names, strings.TrimPrefix(prefix, p.key))
	}
	return names, page.NextPageToken
}
