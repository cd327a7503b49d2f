package fakeaz

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// request is one request, or one part of a batch, taken apart.
type request struct {
	op                              string
	method, host, rawPath, rawQuery string
	query                           url.Values
	header                          http.Header
	length                          int64 // announced; -1: not
	tls                             bool
	part                            bool // of a batch

	account, container, blob string
}

// take takes an address apart. The name is decoded once from the path as it was sent, so "+" stays a plus and %2F is a
// slash of the name.
func (s *Server) take(method, host, target string, h http.Header, length int64) (*request, *apiError) {
	path, query, _ := strings.Cut(target, "?")
	r := &request{op: "Unknown", method: method, host: host, rawPath: path, rawQuery: query, header: h, length: length}
	// ParseQuery returns what it could parse beside the error.
	r.query, _ = url.ParseQuery(query)
	rest := strings.TrimPrefix(path, "/")
	if strings.HasPrefix(host, s.opts.Account+".") {
		r.account = s.opts.Account
	} else {
		r.account, rest, _ = strings.Cut(rest, "/")
	}
	container, rawName, _ := strings.Cut(rest, "/")
	name, err := url.PathUnescape(rawName)
	r.container, r.blob = container, name
	r.op = operation(r)
	switch {
	case err != nil || !utf8.ValidString(name):
		return r, fail(http.StatusBadRequest, "InvalidUri", "The requested URI does not represent any resource on the server.")
	case len(name) > 1024: // "Naming and referencing containers, blobs, and metadata"
		return r, errOutOfRange()
	case strings.Count(name, "/") >= 254:
		return r, fail(http.StatusBadRequest, "InvalidUri", "The requested URI does not represent any resource on the server.")
	}
	return r, nil
}

// operation names the operation as the REST API reference does.
func operation(r *request) string {
	comp := strings.ToLower(r.query.Get("comp"))
	switch {
	case r.container == "":
		return accountOperation(r, comp)
	case r.blob == "":
		return containerOperation(r, comp)
	}
	switch r.method + " " + comp {
	case "PUT ":
		return putOperation(r.header)
	case "PUT block":
		if r.header.Get("x-ms-copy-source") != "" {
			return "PutBlockFromURL"
		}
		return "PutBlock"
	case "PUT blocklist":
		return "PutBlockList"
	case "PUT undelete":
		return "UndeleteBlob"
	case "PUT snapshot":
		return "SnapshotBlob"
	case "GET blocklist":
		return "GetBlockList"
	case "GET ":
		return "GetBlob"
	case "HEAD ":
		return "GetBlobProperties"
	case "DELETE ":
		return "DeleteBlob"
	}
	return "Unknown"
}

func putOperation(h http.Header) string {
	switch {
	case h.Get("x-ms-copy-source") == "":
		return "PutBlob"
	case h.Get("x-ms-blob-type") != "":
		return "PutBlobFromURL"
	case strings.EqualFold(h.Get("x-ms-requires-sync"), "true"):
		return "CopyBlobFromURL"
	}
	return "CopyBlob"
}

func accountOperation(r *request, comp string) string {
	switch {
	case r.method == http.MethodPost && comp == "batch":
		return "BlobBatch"
	case r.method == http.MethodGet && comp == "list":
		return "ListContainers"
	case r.method == http.MethodGet && comp == "properties" && r.query.Get("restype") == "service":
		return "GetBlobServiceProperties"
	}
	return "Unknown"
}

func containerOperation(r *request, comp string) string {
	if r.query.Get("restype") != "container" {
		return "Unknown"
	}
	switch r.method + " " + comp {
	case "GET list":
		return "ListBlobs"
	case "POST batch":
		return "BlobBatch"
	case "PUT ":
		return "CreateContainer"
	case "GET ", "HEAD ":
		return "GetContainerProperties"
	case "DELETE ":
		return "DeleteContainer"
	}
	return "Unknown"
}
