package fakeaz

import (
	"net/http"
	"strings"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// call is one request being served. It is also made for every part of a batch, which has no body.
type call struct {
	*request
	s     *Server
	who   principal
	shape *fakehttp.Shape
	body  func(limit int64) (*content, *apiError)
	c     *container // set for every operation on a container that exists
	keys  int        // parts of a batch, for the log
}

// handler are the operations of the server.
func handler(op string) func(*call) (*response, *apiError) {
	switch op {
	case "PutBlob":
		return (*call).putBlob
	case "PutBlock":
		return (*call).putBlock
	case "PutBlockList":
		return (*call).putBlockList
	case "GetBlockList":
		return (*call).getBlockList
	case "GetBlob", "GetBlobProperties":
		return (*call).getBlob
	case "DeleteBlob":
		return (*call).deleteBlob
	case "UndeleteBlob":
		return (*call).undeleteBlob
	case "SnapshotBlob":
		return (*call).snapshotBlob
	case "CopyBlob", "CopyBlobFromURL":
		return (*call).copyBlob
	case "BlobBatch":
		return (*call).batch
	case "ListBlobs":
		return (*call).listBlobs
	case "ListContainers":
		return (*call).listContainers
	case "CreateContainer":
		return (*call).createContainer
	case "GetContainerProperties":
		return (*call).containerProperties
	case "DeleteContainer":
		return (*call).deleteContainer
	case "GetBlobServiceProperties":
		return (*call).serviceProperties
	}
	return nil
}

// unheard are headers that would change what an operation means and that this server does not know: a client that sends
// one must not be left thinking it was heard.
var unheard = []string{
	"x-ms-lease-id", "x-ms-if-tags", "x-ms-tags", "x-ms-structured-body", "x-ms-encryption-key", "x-ms-encryption-scope",
	"x-ms-immutability-policy-until-date", "x-ms-legal-hold", "x-ms-source-if-tags", "x-ms-expiry-option",
}

// handle runs the operation, once its container is known to exist.
func (c *call) handle() (*response, *apiError) {
	h := handler(c.op)
	if h == nil {
		return nil, errNotImplemented(c.method + " " + c.rawPath + "?" + c.rawQuery)
	}
	for _, name := range unheard {
		if c.header.Get(name) != "" {
			return nil, errUnsupportedHeader(name)
		}
	}
	if c.container != "" && c.op != "CreateContainer" {
		if c.c = c.s.container(c.container); c.c == nil {
			return nil, errContainerNotFound()
		}
	}
	return h(c)
}

// describe sets the headers that name the revision.
func (c *call) describe(resp *response, r *revision) {
	resp.Set("ETag", c.shape.ETagOf(r.etag))
	resp.Set("Last-Modified", httpDate(r.modTime))
	resp.Set("x-ms-version-id", r.version)
}

// metadata reads x-ms-meta-* ("Setting and retrieving properties and metadata"): names are C# identifiers, at most 8 KiB
// in all. net/http tells header names in a case of its own, so here they are in lower case.
func metadata(h http.Header) (map[string]string, *apiError) {
	meta := map[string]string{}
	total := 0
	for name, values := range h {
		k, ok := strings.CutPrefix(strings.ToLower(name), metaPrefix)
		if !ok {
			continue
		}
		if k == "" {
			return nil, fail(http.StatusBadRequest, "EmptyMetadataKey", "The key for one of the metadata key-value pairs is empty.")
		}
		if !identifier(k) {
			return nil, fail(http.StatusBadRequest, "InvalidMetadata", "The specified metadata is invalid. It includes characters that are not permitted.")
		}
		meta[k] = strings.Join(values, ",")
		total += len(k) + len(meta[k])
	}
	if total > maxMetadata {
		return nil, fail(http.StatusBadRequest, "MetadataTooLarge", "The size of the specified metadata exceeds the maximum size permitted.")
	}
	return meta, nil
}

const (
	metaPrefix  = "x-ms-meta-"
	maxMetadata = 8 << 10
)

func identifier(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r >= 0x80
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
