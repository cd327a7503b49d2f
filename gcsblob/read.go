package gcsblob

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	rawstorage "google.golang.org/api/storage/v1"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// Read implements transfer.Requests. It goes to the XML API, whose reply has all that the store says of an object in its headers; that
// of the JSON API lacks the metadata ("GET Object" there; Reader.Metadata of the Go client says so).
//
// The version goes as a condition and not as the generation parameter, which would find an old generation in a bucket that
// keeps them: a version that is not the current one any more is a change.
func (r *requests) Read(ctx context.Context, req transfer.ReadRequest) (*transfer.ReadReply, error) {
	// Asking for gzip keeps the service from unpacking ("Transcoding of gzip-compressed files"); asking by itself keeps net/http from it.
	h := http.Header{"Accept-Encoding": {"gzip"}}
	switch {
	case req.Suffix > 0:
		h.Set("Range", fmt.Sprintf("bytes=-%d", req.Suffix))
	case req.N > 0:
		h.Set("Range", fmt.Sprintf("bytes=%d-%d", req.Off, req.Off+min(req.N-1, math.MaxInt64-req.Off)))
	}
	if req.Version != "" {
		h.Set("X-Goog-If-Generation-Match", req.Version)
	}
	st := &sent{}
	res, err := r.send(ctx, st, request{method: http.MethodGet, url: r.root + "/" + r.bucket + "/" + url.PathEscape(req.Key), header: h})
	if err != nil {
		return nil, err
	}
	rep := &transfer.ReadReply{
		Body:    res.Body,
		Length:  res.ContentLength,
		Partial: res.StatusCode == http.StatusPartialContent,
		Head:    headOf(res.Header),
	}
	if v := res.Header.Get("Content-Range"); v != "" {
		rep.Off, rep.End, rep.Total, rep.HasRange = wire.ContentRange(v)
	}
	if err := asStored(res, rep); err != nil {
		_ = res.Body.Close()
		return nil, err
	}
	return rep, nil
}

// headOf reads what the headers of the XML API say of an object ("HTTP headers and common query string parameters for XML").
func headOf(h http.Header) transfer.Head {
	head := transfer.Head{
		Size: -1, Version: h.Get("X-Goog-Generation"), ContentType: h.Get("Content-Type"), Metadata: make(map[string]string),
	}
	head.ModTime, _ = http.ParseTime(h.Get("Last-Modified"))
	for name, values := range h {
		if key, ok := strings.CutPrefix(name, "X-Goog-Meta-"); ok && len(values) > 0 {
			head.Metadata[strings.ToLower(key)] = values[0]
		}
	}
	for _, line := range h.Values("X-Goog-Hash") {
		for spec := range strings.SplitSeq(line, ",") {
			if sum, ok := strings.CutPrefix(strings.TrimSpace(spec), "crc32c="); ok {
				head.CRC32C, head.HasCRC32C = parseSum(sum)
			}
		}
	}
	return head
}

// Head implements transfer.Requests. It asks the JSON API, whose errors tell a missing bucket from a missing object, and not through
// the SDK, which asks for the access control lists too: they take a permission of their own.
func (r *requests) Head(ctx context.Context, key string) (transfer.Head, error) {
	st := &sent{}
	obj, err := r.raw.Objects.Get(r.bucket, key).Projection("noAcl").
		Fields("kind", "name", "size", "generation", "updated", "contentType", "metadata", "crc32c").
		Context(st.watch(ctx)).Do()
	if err != nil {
		return transfer.Head{}, r.fault(ctx, err, st)
	}
	if obj.Name != key {
		return transfer.Head{}, unreadable(fmt.Errorf("the reply is of %q", obj.Name))
	}
	head := transfer.Head{
		Size: -1, Version: generationText(obj.Generation), ModTime: timeOf(obj.Updated),
		ContentType: obj.ContentType, Metadata: make(map[string]string, len(obj.Metadata)),
	}
	if n := int64(obj.Size); n >= 0 && obj.Crc32c+obj.Updated != "" { // a document without anything does not mean size 0
		head.Size = n
	}
	for k, v := range obj.Metadata {
		head.Metadata[strings.ToLower(k)] = v // as in the headers of a Read
	}
	head.CRC32C, head.HasCRC32C = parseSum(obj.Crc32c)
	return head, nil
}

// infoOf is what a listing says of an object.
func infoOf(obj *rawstorage.Object) blob.Info {
	return blob.Info{Key: obj.Name, Size: int64(obj.Size), Version: generationText(obj.Generation), ModTime: timeOf(obj.Updated)}
}

// objectFields are those of infoOf.
const objectFields googleapi.Field = "items(name,size,generation,updated)"

func generationText(gen int64) string {
	if gen <= 0 {
		return ""
	}
	return strconv.FormatInt(gen, 10)
}

// timeOf reads a time of the JSON API, to the second: the headers of a Read do not tell it better, and an object has one time.
func timeOf(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t.Truncate(time.Second)
}

// parseSum reads a CRC-32C as the service writes it: base64 of the bytes in big-endian order ("Data validation and change detection").
func parseSum(s string) (sum uint32, ok bool) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(b), true
}

func formatSum(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}
