package gcsblob

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// Put implements transfer.Requests: a multipart upload, whose first part is the metadata and whose second is the content ("Objects:
// insert", JSON API).
func (r *requests) Put(ctx context.Context, req transfer.PutRequest) (transfer.Written, error) {
	boundary := rand.Text()
	head := "--" + boundary + "\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n" + resource(req.Key, req.Meta, req.Sum) +
		"\r\n--" + boundary + "\r\nContent-Type: " + req.ContentType + "\r\n\r\n"
	st := &sent{Sent: wire.Sent{Body: newBody(head, req.Body(), req.Size, "\r\n--"+boundary+"--\r\n")}}
	defer st.Body.LetGo()
	res, err := r.send(ctx, st, request{ //nolint:bodyclose // written closes it
		method: http.MethodPost, url: r.insertURL("multipart", req.Key, req.Cond),
		header: http.Header{"Content-Type": {"multipart/related; boundary=" + boundary}},
	})
	if err != nil {
		return transfer.Written{}, badSum(req.Sum.Has, onKey(req.Cond, err))
	}
	return written(res, st, req.Key, req.Size, req.Sum)
}

// insertURL is where an upload of a type begins.
func (r *requests) insertURL(kind, key string, cond blob.Condition) string {
	q := url.Values{"uploadType": {kind}, "name": {key}}
	if gen, ok := generation(cond); ok {
		q.Set("ifGenerationMatch", strconv.FormatInt(gen, 10))
	}
	return r.root + "/upload/storage/v1/b/" + r.bucket + "/o?" + q.Encode()
}

// resource is the metadata of a new object ("Objects", JSON API). A checksum in it makes the service compare ("Data validation and change
// detection"); it is only for uploads of one request.
func resource(key string, meta transfer.Meta, sum transfer.Sum) string {
	doc := struct {
		Name         string            `json:"name"`
		ContentType  string            `json:"contentType"`
		CacheControl string            `json:"cacheControl"`
		Metadata     map[string]string `json:"metadata,omitempty"`
		CRC32C       string            `json:"crc32c,omitempty"`
	}{Name: key, ContentType: meta.ContentType, CacheControl: "no-store", Metadata: meta.Metadata}
	if sum.Has {
		doc.CRC32C = formatSum(sum.CRC32C)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err) // strings and a map of strings
	}
	return string(b)
}

// written reads the reply to a write that made an object: what it says about the object must be what was sent.
func written(res *http.Response, st *sent, key string, size int64, sum transfer.Sum) (transfer.Written, error) {
	defer discard(res)
	if err := st.Unread(http.StatusOK); err != nil {
		return transfer.Written{}, err
	}
	var doc struct {
		Name, Generation, CRC32C string
		Size                     *string
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&doc); err != nil {
		return transfer.Written{}, &blob.Error{Kind: blob.ErrUnavailable, Status: res.StatusCode, Err: fmt.Errorf("a write was answered without a document: %w", err)}
	}
	if doc.Name == "" && doc.Generation == "" && doc.Size == nil {
		return transfer.Written{}, &blob.Error{Kind: blob.ErrUnavailable, Status: res.StatusCode, Err: errors.New("a write was answered with a document that is not an object's")}
	}
	w := transfer.Written{}
	if validGeneration(doc.Generation) {
		w.Version = doc.Generation
	}
	var wrong error
	got, known := parseSum(doc.CRC32C)
	switch {
	case doc.Name != "" && doc.Name != key:
		wrong = fmt.Errorf("the reply is of %q", doc.Name)
	case doc.Size != nil && *doc.Size != strconv.FormatInt(size, 10):
		wrong = fmt.Errorf("the store keeps %s bytes of an object of %d", *doc.Size, size)
	case sum.Has && known && got != sum.CRC32C:
		wrong = fmt.Errorf("the store keeps bytes of CRC32C %08x, %08x was sent", got, sum.CRC32C)
	}
	if wrong != nil { // it is stored, and wrong
		return transfer.Written{}, &blob.Error{Kind: blob.ErrCorrupt, Status: res.StatusCode, Err: wrong}
	}
	return w, nil
}

// errNoSession is the error of a request for an upload that this Store does not know.
var errNoSession = errors.New("no such resumable session")
