package azblob_test

import (
	"crypto/md5"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/internal/realserver/storetable"
)

var updateStores = flag.Bool("update", false, "rewrite the table of docs/stores.md; needs every server")

// Docs say of each server what it answers today; a server that is not to be had keeps its column.
func TestStoresTable(t *testing.T) {
	table := storetable.Table{File: "../docs/stores.md", Package: "azblob", Service: "Azure"}
	storetable.Run(t, table, *updateStores, azureQuestions(), []storetable.Server[*azureServer]{
		{Name: "Azurite", Start: func(t *testing.T) *azureServer {
			srv := realserver.Azurite(t)
			return newAzureServer(t, srv.Version, srv.Endpoint, srv.Account, srv.Key, srv.NewContainer(t))
		}},
		{Name: "the fake of the tests", Start: func(t *testing.T) *azureServer {
			srv := fake(t, fakeaz.Options{})
			return newAzureServer(t, "this repository's", srv.Endpoint(), srv.Account(), fakeaz.DefaultKey(), "box")
		}},
	})
}

// azureServer is a server with what it takes to ask it in plain HTTP: a signature in the URL does for every request.
type azureServer struct {
	version   string
	client    *http.Client
	container string // its URL
	sas       string
}

func newAzureServer(t *testing.T, version, endpoint, account, key, container string) *azureServer {
	t.Helper()
	credential, err := service.NewSharedKeyCredential(account, key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := service.NewClientWithSharedKeyCredential(endpoint, credential, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := client.GetSASURL(sas.AccountResourceTypes{Service: true, Container: true, Object: true},
		sas.AccountPermissions{Read: true, Write: true, Delete: true, List: true, Add: true, Create: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(signed, "?")
	return &azureServer{
		version: version, container: endpoint + "/" + container, sas: query,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}},
	}
}

// azureReply is an answer read to its end.
type azureReply struct {
	*http.Response
	body string
}

// String is its status, and its code if it refuses.
func (r azureReply) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.StatusCode, r.Header.Get("x-ms-error-code")))
}

// azureProbe is one question put to one server.
type azureProbe struct {
	*testing.T
	*azureServer
	key string
}

// do sends a request; headers are pairs.
func (p *azureProbe) do(method, name, query, body string, headers ...string) azureReply {
	p.Helper()
	address := p.container
	if name != "" {
		address += "/" + url.PathEscape(p.key+name)
	}
	req, err := http.NewRequestWithContext(p.Context(), method, address+"?"+strings.TrimPrefix(query+"&"+p.sas, "&"), strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	req.Header["x-ms-version"] = []string{"2021-12-02"}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header[headers[i]] = []string{headers[i+1]} // in the case that it is written in
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return azureReply{&http.Response{Header: http.Header{"X-Ms-Error-Code": {"no answer"}}}, ""}
	}
	data, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		p.Fatal(err)
	}
	return azureReply{resp, string(data)}
}

// must ends the test if what only prepares a question is refused.
func (p *azureProbe) must(r azureReply) azureReply {
	p.Helper()
	if r.StatusCode/100 != 2 {
		p.Fatalf("%s: %s", r, r.body)
	}
	return r
}

func (p *azureProbe) put(name, body string, headers ...string) azureReply {
	p.Helper()
	return p.do("PUT", name, "", body, append([]string{"x-ms-blob-type", "BlockBlob"}, headers...)...)
}

// get, stage and commit are about the blob "k" of the question.
func (p *azureProbe) get(headers ...string) azureReply {
	p.Helper()
	return p.do("GET", "k", "", "", headers...)
}

func (p *azureProbe) stage(id, body string, headers ...string) azureReply {
	p.Helper()
	return p.do("PUT", "k", "comp=block&blockid="+url.QueryEscape(blockID(id)), body, headers...)
}

func (p *azureProbe) commit(ids []string, headers ...string) azureReply {
	p.Helper()
	doc := `<?xml version="1.0" encoding="utf-8"?><BlockList>`
	for _, id := range ids {
		doc += "<Latest>" + blockID(id) + "</Latest>"
	}
	return p.do("PUT", "k", "comp=blocklist", doc+"</BlockList>", headers...)
}

func blockID(id string) string { return base64.StdEncoding.EncodeToString([]byte(id)) }

func (p *azureProbe) list(query string) azureReply {
	p.Helper()
	return p.do("GET", "", "restype=container&comp=list&prefix="+url.QueryEscape(p.key)+query, "")
}

var nameTag = regexp.MustCompile(`<Name(?: Encoded="true")?>(.*?)</Name>`)

// names are those in a listing, without the key of the question, and still escaped.
func (p *azureProbe) names(query string) []string {
	p.Helper()
	var names []string
	for _, m := range nameTag.FindAllStringSubmatch(p.must(p.list(query)).body, -1) {
		names = append(names, strings.TrimPrefix(m[1], p.key))
	}
	return names
}

func md5Of(s string) string {
	sum := md5.Sum([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}
