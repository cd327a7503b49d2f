package fakes3

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// parse names the operation and takes the address apart. The key is decoded
// once from the path on the wire, so "+" stays a plus.
func (c *call) parse() *apiError {
	c.PartNumber, _ = strconv.Atoi(c.Query.Get("partNumber"))
	c.UploadID = c.Query.Get("uploadId")
	c.Notes = notes(c.Query)

	rest := strings.TrimPrefix(c.RawPath, "/")
	bucketName, rawKey := c.s.hostBucket(c.Host), rest
	if bucketName == "" {
		bucketName, rawKey, _ = strings.Cut(rest, "/")
	}
	key, err := url.PathUnescape(rawKey)
	if err != nil {
		return fail(http.StatusBadRequest, "InvalidURI", "Couldn't parse the specified URI.")
	}
	if c.knobs.FoldSlashes {
		key = foldSlashes(key)
	}
	c.Bucket, c.Key = bucketName, key
	c.Op = operation(c.HTTP, c.Request)
	c.Content = c.Op == "PutObject" || c.Op == "UploadPart"
	if len(key) > 1024 {
		return fail(http.StatusBadRequest, "KeyTooLongError", "Your key is too long").
			elem("Size", strconv.Itoa(len(key))).elem("MaxSizeAllowed", "1024")
	}
	if !utf8.ValidString(key) {
		return fail(http.StatusBadRequest, "InvalidURI", "Couldn't parse the specified URI.")
	}
	return nil
}

// notes are what the log says of the query; values that differ from run to run are named only.
func notes(q url.Values) []string {
	var out []string
	if q.Get("versionId") != "" {
		out = append(out, "versionId")
	}
	for _, name := range []string{"prefix", "delimiter", "start-after", "key-marker"} {
		if v := q.Get(name); v != "" {
			out = append(out, name+"="+fakehttp.QuoteKey(v))
		}
	}
	if q.Get("continuation-token") != "" {
		out = append(out, "token")
	}
	if v := q.Get("max-keys"); v != "" {
		out = append(out, "max-keys="+v)
	}
	return out
}

// hostBucket is the bucket that a virtual-hosted address names, or "".
func (s *Server) hostBucket(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	name, ok := strings.CutSuffix(host, "."+s.opts.Domain)
	if !ok {
		return ""
	}
	return name
}

func foldSlashes(key string) string {
	key = strings.TrimLeft(key, "/")
	for strings.Contains(key, "//") {
		key = strings.ReplaceAll(key, "//", "/")
	}
	return key
}

// subresources are the query names that select operations this server does
// not have.
var subresources = []string{
	"acl", "tagging", "attributes", "torrent", "retention", "legal-hold", "policy", "lifecycle", "cors",
	"encryption", "website", "notification", "replication", "object-lock", "logging", "select", "restore",
	"accelerate", "requestPayment", "ownershipControls", "publicAccessBlock", "inventory", "metrics", "analytics",
}

func operation(r *http.Request, req *Request) string {
	for _, sub := range subresources {
		if req.Query.Has(sub) {
			return "Unknown"
		}
	}
	switch {
	case req.Bucket == "":
		if r.Method == http.MethodGet {
			return "ListBuckets"
		}
		return "Unknown"
	case req.Key == "":
		return bucketOperation(r.Method, req.Query)
	default:
		return objectOperation(r, req.Query)
	}
}

func bucketOperation(method string, q url.Values) string {
	switch method {
	case http.MethodPut:
		if q.Has("versioning") {
			return "PutBucketVersioning"
		}
		return "CreateBucket"
	case http.MethodHead:
		return "HeadBucket"
	case http.MethodDelete:
		return "DeleteBucket"
	case http.MethodPost:
		if q.Has("delete") {
			return "DeleteObjects"
		}
	case http.MethodGet:
		switch {
		case q.Has("location"):
			return "GetBucketLocation"
		case q.Has("versioning"):
			return "GetBucketVersioning"
		case q.Has("versions"):
			return "ListObjectVersions"
		case q.Has("uploads"):
			return "ListMultipartUploads"
		case q.Get("list-type") == "2":
			return "ListObjectsV2"
		}
	}
	return "Unknown"
}

func objectOperation(r *http.Request, q url.Values) string {
	upload := q.Has("uploadId")
	switch r.Method {
	case http.MethodPut:
		copied := r.Header.Get("x-amz-copy-source") != ""
		switch {
		case upload && copied:
			return "UploadPartCopy"
		case upload:
			return "UploadPart"
		case copied:
			return "CopyObject"
		}
		return "PutObject"
	case http.MethodGet:
		if upload {
			return "ListParts"
		}
		return "GetObject"
	case http.MethodHead:
		return "HeadObject"
	case http.MethodDelete:
		if upload {
			return "AbortMultipartUpload"
		}
		return "DeleteObject"
	case http.MethodPost:
		switch {
		case q.Has("uploads"):
			return "CreateMultipartUpload"
		case upload:
			return "CompleteMultipartUpload"
		}
	}
	return "Unknown"
}

// handlers are the operations of the server.
func handler(op string) func(*call) (*response, *apiError) {
	switch op {
	case "PutObject":
		return (*call).putObject
	case "GetObject", "HeadObject":
		return (*call).getObject
	case "DeleteObject":
		return (*call).deleteObject
	case "DeleteObjects":
		return (*call).deleteObjects
	case "CopyObject":
		return (*call).copyObject
	case "CreateMultipartUpload":
		return (*call).createUpload
	case "UploadPart":
		return (*call).uploadPart
	case "CompleteMultipartUpload":
		return (*call).completeUpload
	case "AbortMultipartUpload":
		return (*call).abortUpload
	case "ListParts":
		return (*call).listParts
	case "ListMultipartUploads":
		return (*call).listUploads
	case "ListObjectsV2":
		return (*call).listObjects
	case "ListObjectVersions":
		return (*call).listVersions
	case "CreateBucket":
		return (*call).createBucket
	case "HeadBucket":
		return (*call).headBucket
	case "DeleteBucket":
		return (*call).deleteBucket
	case "ListBuckets":
		return (*call).listBuckets
	case "GetBucketLocation":
		return (*call).getLocation
	case "GetBucketVersioning":
		return (*call).getVersioning
	case "PutBucketVersioning":
		return (*call).putVersioning
	}
	return nil
}
