package fakegcs

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// address names an object.
type address struct{ bucket, key string }

// The roots of the JSON API ("Cloud Storage request endpoints" and the
// discovery document).
const (
	jsonRoot     = "/storage/v1/b"
	downloadRoot = "/download/storage/v1/b"
	uploadRoot   = "/upload/storage/v1/b"
	sessionRoot  = "/resumable/upload/storage/v1/b"
	batchRoot    = "/batch/storage/v1"
)

// parse names the operation and takes the address apart. Names are decoded
// once, segment by segment, from the path on the wire: a slash within an
// object's name must come as %2F ("Encoding URI path parts").
func (c *call) parse() *apiError {
	for _, root := range []string{jsonRoot, downloadRoot, uploadRoot, sessionRoot} {
		rest, ok := strings.CutPrefix(c.RawPath, root)
		if !ok || rest != "" && rest[0] != '/' {
			continue
		}
		return c.parseJSON(root, strings.Split(strings.TrimPrefix(rest, "/"), "/"))
	}
	if c.RawPath == batchRoot || c.RawPath == "/batch" {
		if c.Method == http.MethodPost {
			c.Op = "batch"
		}
		return nil
	}
	return c.parseXML()
}

func (c *call) parseJSON(root string, segments []string) *apiError {
	names := make([]string, len(segments))
	for i, s := range segments {
		name, err := url.PathUnescape(s)
		if err != nil || !utf8.ValidString(name) {
			return errInvalid("Invalid path")
		}
		names[i] = name
	}
	c.Bucket = names[0]
	if root == uploadRoot || root == sessionRoot {
		c.parseUpload(names)
		return nil
	}
	switch {
	case len(names) == 1:
		c.Op = bucketOperation(c.Method, c.Bucket)
	case names[1] != "o":
	case len(names) == 2 && c.Method == http.MethodGet:
		c.Op = "objects.list"
	case len(names) > 2 && names[2] != "":
		c.Key = names[2]
		c.Op = c.objectOperation(root, names[3:])
	}
	return nil
}

func bucketOperation(method, name string) string {
	switch {
	case name == "" && method == http.MethodPost:
		return "buckets.insert"
	case name == "":
	case method == http.MethodGet:
		return "buckets.get"
	case method == http.MethodPatch:
		return "buckets.patch"
	case method == http.MethodDelete:
		return "buckets.delete"
	}
	return "Unknown"
}

// objectOperation names what is asked of an object; rest is what follows its name.
func (c *call) objectOperation(root string, rest []string) string {
	if len(rest) == 5 && rest[1] == "b" && rest[3] == "o" && c.Method == http.MethodPost {
		c.dst = address{rest[2], rest[4]}
		return map[string]string{"rewriteTo": "objects.rewrite", "copyTo": "objects.copy"}[rest[0]]
	}
	if len(rest) == 1 && rest[0] == "restore" && c.Method == http.MethodPost {
		return "objects.restore"
	}
	if len(rest) > 0 {
		return "Unknown"
	}
	switch c.Method {
	case http.MethodGet:
		if root == downloadRoot || c.Query.Get("alt") == "media" {
			return "objects.media"
		}
		return "objects.get"
	case http.MethodDelete:
		return "objects.delete"
	case http.MethodPatch:
		return "objects.patch"
	case http.MethodPut:
		return "objects.update"
	}
	return "Unknown"
}

// parseUpload names the requests to the upload endpoint. Those to a session
// may be PUT or POST.
func (c *call) parseUpload(names []string) {
	if len(names) != 2 || names[1] != "o" {
		return
	}
	c.Key = c.Query.Get("name")
	if id := c.Query.Get("upload_id"); id != "" {
		c.UploadID = id
		if u := c.s.session(id); u != nil {
			c.Key = u.key
		}
		switch {
		case c.Method == http.MethodDelete:
			c.Op = "uploads.cancel"
		case c.Method != http.MethodPut && c.Method != http.MethodPost:
		case strings.HasPrefix(c.Header.Get("Content-Range"), "bytes */"):
			c.Op = "uploads.query"
		default:
			c.Op, c.Content = "uploads.put", true
		}
		return
	}
	if c.Method != http.MethodPost {
		return
	}
	if c.Query.Get("uploadType") == "resumable" {
		c.Op = "uploads.start"
		return
	}
	c.Op, c.Content = "objects.insert", true
}

// parseXML names the requests to the XML API: reads of objects, path-style.
func (c *call) parseXML() *apiError {
	c.xml = true
	name, rawKey, _ := strings.Cut(strings.TrimPrefix(c.RawPath, "/"), "/")
	key, err := url.PathUnescape(rawKey)
	if err != nil || !utf8.ValidString(key) {
		return fail(http.StatusBadRequest, "invalid", "InvalidURI", "Couldn't parse the specified URI.")
	}
	c.Bucket, c.Key = name, key
	switch {
	case key == "":
	case c.Method == http.MethodGet:
		c.Op = "xml.get"
	case c.Method == http.MethodHead:
		c.Op = "xml.head"
	}
	return nil
}

// handler is the code of an operation, nil for none.
func handler(op string) func(*call) (*fakehttp.Answer, *apiError) {
	switch op {
	case "objects.get":
		return (*call).getMetadata
	case "objects.media", "xml.get", "xml.head":
		return (*call).getMedia
	case "objects.insert":
		return (*call).insert
	case "uploads.start":
		return (*call).startUpload
	case "uploads.put", "uploads.query":
		return (*call).putChunk
	case "uploads.cancel":
		return (*call).cancelUpload
	case "objects.list":
		return (*call).list
	case "objects.delete":
		return (*call).deleteObject
	case "objects.restore":
		return (*call).restore
	case "objects.rewrite", "objects.copy":
		return (*call).rewrite
	case "objects.patch", "objects.update":
		return (*call).patch
	case "batch":
		return (*call).batch
	case "buckets.get":
		return (*call).getBucket
	case "buckets.insert":
		return (*call).insertBucket
	case "buckets.patch":
		return (*call).patchBucket
	case "buckets.delete":
		return (*call).deleteBucket
	}
	return nil
}

// notes are the words of the log for what a request asks.
func (c *call) notes() []string {
	var out []string
	q := c.Query
	for _, name := range []string{"prefix", "delimiter", "startOffset", "endOffset"} {
		if v := q.Get(name); v != "" {
			out = append(out, name+"="+fakehttp.QuoteKey(v))
		}
	}
	for _, name := range []string{"maxResults", "versions", "softDeleted", "uploadType"} {
		if v := q.Get(name); v != "" && c.UploadID == "" {
			out = append(out, name+"="+v)
		}
	}
	if q.Get("pageToken") != "" {
		out = append(out, "token")
	}
	if v := c.Header.Get("Content-Range"); v != "" {
		out = append(out, v)
	}
	if c.dst.key != "" {
		out = append(out, "to "+fakehttp.QuoteKey(c.dst.key))
	}
	return append(out, c.versionNotes()...)
}

// versionNotes tell which conditions there are; generations differ between runs.
func (c *call) versionNotes() []string {
	var out []string
	for _, name := range []string{"generation", "sourceGeneration"} {
		if c.Query.Get(name) != "" {
			out = append(out, name)
		}
	}
	for _, name := range []string{"ifGenerationMatch", "ifGenerationNotMatch", "ifMetagenerationMatch", "ifMetagenerationNotMatch", "ifSourceGenerationMatch"} {
		v := c.Query.Get(name)
		switch v {
		case "":
		case "0":
			out = append(out, name+"=0")
		default:
			out = append(out, name)
		}
	}
	for _, name := range []string{"X-Goog-If-Generation-Match", "X-Goog-If-Metageneration-Match"} {
		if c.Header.Get(name) != "" {
			out = append(out, strings.ToLower(name))
		}
	}
	return out
}

// generation is the query parameter of that name, 0 without one.
func (c *call) generation(name string) (int64, *apiError) {
	v := c.Query.Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n <= 0 {
		return 0, errInvalid("Invalid value for: %s is not a valid number", v).at(name)
	}
	return n, nil
}

// checkName holds a new object's name to "About Cloud Storage objects",
// section "Naming considerations".
func checkName(key string) *apiError {
	switch {
	case key == "":
		return errRequired("name")
	case len(key) > 1024:
		return fail(http.StatusBadRequest, "invalid", "KeyTooLongError", "The specified object name is too long: %d bytes, the limit is 1024.", len(key))
	case !utf8.ValidString(key), strings.ContainsAny(key, "\r\n"), key == ".", key == "..", strings.HasPrefix(key, ".well-known/acme-challenge/"):
		return fail(http.StatusBadRequest, "invalid", "InvalidObjectName", "Invalid object name: %q", key)
	}
	return nil
}
