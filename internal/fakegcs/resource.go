package fakegcs

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/url"
	"strconv"
	"time"
)

// resource is the Object resource of the JSON API, as far as this server has
// it. 64-bit numbers are strings, as the discovery document says.
type resource struct {
	Kind               string            `json:"kind,omitempty"`
	ID                 string            `json:"id,omitempty"`
	SelfLink           string            `json:"selfLink,omitempty"`
	MediaLink          string            `json:"mediaLink,omitempty"`
	Name               string            `json:"name,omitempty"`
	Bucket             string            `json:"bucket,omitempty"`
	Generation         string            `json:"generation,omitempty"`
	Metageneration     string            `json:"metageneration,omitempty"`
	ContentType        string            `json:"contentType,omitempty"`
	ContentEncoding    string            `json:"contentEncoding,omitempty"`
	ContentDisposition string            `json:"contentDisposition,omitempty"`
	ContentLanguage    string            `json:"contentLanguage,omitempty"`
	CacheControl       string            `json:"cacheControl,omitempty"`
	StorageClass       string            `json:"storageClass,omitempty"`
	CustomTime         string            `json:"customTime,omitempty"`
	Size               string            `json:"size,omitempty"`
	MD5                string            `json:"md5Hash,omitempty"`
	CRC32C             string            `json:"crc32c,omitempty"`
	ETag               string            `json:"etag,omitempty"`
	TimeCreated        string            `json:"timeCreated,omitempty"`
	Updated            string            `json:"updated,omitempty"`
	ClassUpdated       string            `json:"timeStorageClassUpdated,omitempty"`
	Finalized          string            `json:"timeFinalized,omitempty"`
	TimeDeleted        string            `json:"timeDeleted,omitempty"`
	SoftDeleteTime     string            `json:"softDeleteTime,omitempty"`
	HardDeleteTime     string            `json:"hardDeleteTime,omitempty"`
	Metadata           map[string]string `json:"metadata,omitempty"`
}

// rfc3339 has milliseconds, as the service sends.
const rfc3339 = "2006-01-02T15:04:05.000Z07:00"

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(rfc3339)
}

func (c *call) resource(bucket string, o *object) *resource {
	gen := itoa(o.generation)
	scheme := "http://"
	if c.HTTP.TLS != nil {
		scheme = "https://"
	}
	path := "/storage/v1/b/" + url.PathEscape(bucket) + "/o/" + url.PathEscape(o.name)
	r := &resource{
		Kind: "storage#object", ID: bucket + "/" + o.name + "/" + gen, Name: o.name, Bucket: bucket,
		SelfLink:   scheme + c.Host + path,
		MediaLink:  scheme + c.Host + "/download" + path + "?generation=" + gen + "&alt=media",
		Generation: c.ETagOf(gen), Metageneration: itoa(o.metageneration),
		ContentType: o.attrs.contentType, ContentEncoding: o.attrs.contentEncoding,
		ContentDisposition: o.attrs.contentDisposition, ContentLanguage: o.attrs.contentLanguage,
		CacheControl: o.attrs.cacheControl, StorageClass: o.attrs.storageClass, CustomTime: o.attrs.customTime,
		Size: itoa(o.size), MD5: base64.StdEncoding.EncodeToString(o.md5), CRC32C: crcText(o.crc), ETag: o.etag(),
		TimeCreated: stamp(o.created), Updated: stamp(o.updated), ClassUpdated: stamp(o.created), Finalized: stamp(o.created),
		TimeDeleted: stamp(o.noncurrent), SoftDeleteTime: stamp(o.softDeleted), HardDeleteTime: stamp(o.hardDelete),
		Metadata: o.attrs.meta,
	}
	return r
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// crcText is base64 of the checksum in big-endian order ("Data validation and
// change detection").
func crcText(crc uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
}

// etag is that of the JSON API, which changes with the metadata too.
func (o *object) etag() string {
	b := binary.AppendUvarint([]byte{0x08}, uint64(o.generation))
	b = binary.AppendUvarint(append(b, 0x10), uint64(o.metageneration))
	return base64.StdEncoding.EncodeToString(b)
}

// maxMetadata is the limit of names and values together ("Quotas & limits").
const maxMetadata = 8 << 10

// parseResource reads the metadata that comes with an upload or a copy. An
// empty body is an empty resource.
func parseResource(body []byte) (*resource, *apiError) {
	r := &resource{}
	if len(bytes.TrimSpace(body)) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fail(400, "parseError", "InvalidArgument", "Parse Error: %v", err)
	}
	return r, nil
}

// attrs takes over what a writer may say.
func (r *resource) attrs(k *Knobs) (attrs, *apiError) {
	a := attrs{
		contentType: r.ContentType, contentEncoding: r.ContentEncoding, contentDisposition: r.ContentDisposition,
		contentLanguage: r.ContentLanguage, cacheControl: r.CacheControl, storageClass: r.StorageClass,
		customTime: r.CustomTime, meta: r.Metadata,
	}
	if a.storageClass == "" {
		a.storageClass = "STANDARD"
	}
	if err := checkMetadata(a.meta); err != nil {
		return a, err
	}
	if k.LosesMetadata {
		a.meta = nil
	}
	return a, nil
}

func checkMetadata(meta map[string]string) *apiError {
	total := 0
	for k, v := range meta {
		total += len(k) + len(v)
	}
	if total > maxMetadata {
		return fail(400, "invalid", "MetadataTooLarge", "The custom metadata has %d bytes, the limit is %d.", total, maxMetadata)
	}
	return nil
}
