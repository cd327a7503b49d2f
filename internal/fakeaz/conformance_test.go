package fakeaz_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakeaz"
)

// check is one named fact about Azure Blob Storage.
type check struct {
	name string
	run  func(*conf) error
}

// conf is what a check has at hand: a client that speaks plain HTTP, a container, and a prefix that no other check uses.
type conf struct {
	context.Context
	c                      *http.Client
	endpoint, account, key string
	container, prefix      string
}

// conform runs every check against a server. dev names the checks that this server is known to fail, with what it does
// instead: such a check must fail, so that a list that has gone stale is noticed.
func conform(t *testing.T, base conf, dev map[string]string) {
	t.Helper()
	known := map[string]bool{}
	run := rand.Uint32()
	for _, ck := range slices.Concat(objectChecks, rangeChecks, conditionChecks, blockChecks, listChecks, batchChecks) {
		known[ck.name] = true
		t.Run(ck.name, func(t *testing.T) {
			f := base
			f.Context, f.prefix = t.Context(), fmt.Sprintf("%08x/%s/", run, ck.name)
			err := ck.run(&f)
			what, listed := dev[ck.name]
			switch {
			case listed && err == nil:
				t.Errorf("listed as a deviation (%s), but it holds now", what)
			case listed:
				t.Logf("known deviation, %s: %v", what, err)
			case err != nil:
				t.Error(err)
			}
		})
	}
	for name := range dev {
		if !known[name] {
			t.Errorf("the list of deviations names an unknown check %q", name)
		}
	}
}

func TestTheFakeConforms(t *testing.T) {
	s := start(t, fakeaz.Options{})
	c := s.Client()
	t.Cleanup(c.CloseIdleConnections)
	conform(t, conf{c: c, endpoint: s.Endpoint(), account: s.Account(), key: fakeaz.DefaultKey(), container: "cont"}, nil)
}

// reply is an answer read to its end.
type reply struct {
	*http.Response
	body string
}

// at is the address of a blob of this check.
func (f *conf) at(name, query string) string {
	var escaped []string
	for part := range strings.SplitSeq(f.prefix+name, "/") {
		escaped = append(escaped, strings.ReplaceAll(url.PathEscape(part), "+", "%2B"))
	}
	u := f.endpoint + "/" + f.container + "/" + strings.Join(escaped, "/")
	if query != "" {
		u += "?" + query
	}
	return u
}

// do sends one signed request; headers are pairs.
func (f *conf) do(method, address, body string, headers ...string) reply {
	req, err := http.NewRequestWithContext(f, method, address, bytes.NewReader([]byte(body)))
	if err != nil {
		panic(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header[http.CanonicalHeaderKey(headers[i])] = []string{headers[i+1]}
	}
	if req.Header.Get("Content-Length") == "-1" {
		req.ContentLength = -1
		req.Body = io.NopCloser(strings.NewReader(body))
		req.Header.Del("Content-Length")
	}
	req.Header.Set("x-ms-version", "2021-12-02")
	f.sign(req)
	return f.send(req)
}

func (f *conf) send(req *http.Request) reply {
	resp, err := f.c.Do(req)
	if err != nil {
		return reply{&http.Response{Status: err.Error(), Header: http.Header{}}, ""}
	}
	data, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return reply{&http.Response{Status: err.Error(), Header: http.Header{}}, ""}
	}
	return reply{resp, string(data)}
}

// sign is "Authorize with Shared Key", written for these tests.
func (f *conf) sign(req *http.Request) {
	req.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	h := req.Header
	length := ""
	if req.ContentLength > 0 {
		length = fmt.Sprint(req.ContentLength)
	}
	text := strings.Join([]string{
		req.Method, h.Get("Content-Encoding"), h.Get("Content-Language"), length, h.Get("Content-MD5"), h.Get("Content-Type"), "",
		h.Get("If-Modified-Since"), h.Get("If-Match"), h.Get("If-None-Match"), h.Get("If-Unmodified-Since"), h.Get("Range"),
	}, "\n") + "\n"
	lower := map[string]string{}
	for name, v := range h {
		lower[strings.ToLower(name)] = v[0]
	}
	for _, name := range slices.Sorted(maps.Keys(lower)) {
		if strings.HasPrefix(name, "x-ms-") {
			text += name + ":" + lower[name] + "\n"
		}
	}
	text += "/" + f.account + req.URL.EscapedPath()
	q := req.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		text += "\n" + strings.ToLower(name) + ":" + strings.Join(q[name], ",")
	}
	key, err := base64.StdEncoding.DecodeString(f.key)
	if err != nil {
		panic(err)
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	h.Set("Authorization", "SharedKey "+f.account+":"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
}

// Requests that many checks make.

func (f *conf) put(name, body string, headers ...string) reply {
	return f.do("PUT", f.at(name, ""), body, append([]string{"x-ms-blob-type", "BlockBlob"}, headers...)...)
}

func (f *conf) get(name string, headers ...string) reply {
	return f.do("GET", f.at(name, ""), "", headers...)
}

func (f *conf) head(name string, headers ...string) reply {
	return f.do("HEAD", f.at(name, ""), "", headers...)
}

func (f *conf) del(name string, headers ...string) reply {
	return f.do("DELETE", f.at(name, ""), "", headers...)
}

func blockID(id string) string { return base64.StdEncoding.EncodeToString([]byte(id)) }

func (f *conf) stage(name, id, body string, headers ...string) reply {
	return f.do("PUT", f.at(name, "comp=block&blockid="+url.QueryEscape(blockID(id))), body, headers...)
}

// commit commits a list such as "Latest:a", "Committed:b".
func (f *conf) commit(name string, list []string, headers ...string) reply {
	doc := "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>"
	for _, l := range list {
		kind, id, _ := strings.Cut(l, ":")
		doc += "<" + kind + ">" + blockID(id) + "</" + kind + ">"
	}
	return f.do("PUT", f.at(name, "comp=blocklist"), doc+"</BlockList>", headers...)
}

// list lists this check's blobs; query is in url form.
func (f *conf) list(query string) reply {
	q := "restype=container&comp=list"
	if !strings.Contains(query, "prefix=") {
		q += "&prefix=" + url.QueryEscape(f.prefix)
	}
	if query != "" {
		q += "&" + query
	}
	return f.do("GET", f.endpoint+"/"+f.container+"?"+q, "")
}

// Expectations: nil when they are met.

func (r reply) is(status int) error {
	if r.StatusCode != status {
		return fmt.Errorf("%s: want %d: %.300s", r.Status, status, r.body)
	}
	return nil
}

// refused checks the status, the code in the header, and the document where there is one.
func (r reply) refused(status int, code string) error {
	if r.StatusCode != status || r.Header.Get("x-ms-error-code") != code {
		return fmt.Errorf("%s, code %q: want %d %s: %.300s", r.Status, r.Header.Get("x-ms-error-code"), status, code, r.body)
	}
	if r.Request.Method != http.MethodHead && status != http.StatusNotModified && !strings.Contains(r.body, "<Code>"+code+"</Code>") {
		return fmt.Errorf("the document does not say %s: %.300s", code, r.body)
	}
	return nil
}

func (r reply) has(name, want string) error {
	if got := r.Header.Get(name); got != want {
		return fmt.Errorf("%s: %q, want %q", name, got, want)
	}
	return nil
}

func (r reply) holds(status int, body string) error {
	if err := r.is(status); err != nil {
		return err
	}
	return same("body", r.body, body)
}

func same[T comparable](what string, have, want T) error {
	if have != want {
		return fmt.Errorf("%s: have %.200v, want %.200v", what, have, want)
	}
	return nil
}

func all(errs ...error) error { return errors.Join(errs...) }

// signedPart is a request that is only there to be signed.
func signedPart(f *conf, u *url.URL) *http.Request {
	req, err := http.NewRequestWithContext(f, http.MethodDelete, u.String(), nil)
	if err != nil {
		panic(err)
	}
	f.sign(req)
	return req
}
