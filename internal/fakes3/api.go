package fakes3

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// Object is a stored object as the Go side sees it.
type Object struct {
	Key       string
	Size      int64
	ETag      string // quoted
	VersionID string // "null" without versioning
	ModTime   time.Time
	Parts     []int64 // sizes of the parts; nil for an object of one PUT
	Metadata  map[string]string
	Header    http.Header // Content-Type and its like
	// Marker says that this is a delete marker.
	Marker bool

	data rope
}

// Bytes returns the content in a new slice.
func (o *Object) Bytes() []byte { return o.data.Bytes() }

// PutOptions describe an object made by PutObject. The zero value is an
// object of type binary/octet-stream without metadata.
type PutOptions struct {
	Metadata        map[string]string // without the x-amz-meta- prefix
	ContentType     string
	ContentEncoding string
	// PartNumbers are the numbers of the parts. Nil: 1, 2, 3 ...
	PartNumbers []int
}

// CreateBucket makes a bucket; it reports false when there was one already.
func (s *Server) CreateBucket(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.buckets[name] != nil {
		return false
	}
	s.mu.buckets[name] = newBucket(name, s.Now())
	return true
}

// SetVersioning switches versioning of a bucket on, or suspends it.
func (s *Server) SetVersioning(name string, on bool) {
	b := s.mustBucket(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.versioning = "Suspended"
	if on {
		b.mu.versioning = "Enabled"
	}
}

// mustBucket panics for a bucket that does not exist: a mistake in a test.
func (s *Server) mustBucket(name string) *bucket {
	b := s.bucket(name)
	if b == nil {
		panic("fakes3: no bucket " + name)
	}
	return b
}

// PutObject stores an object without a request and without limits on parts:
// one element of parts makes an object of one PUT, more make a multipart
// object; any part may be empty or huge. No elements: an empty object. With
// PartNumbers even one element makes a multipart object. The bytes are kept,
// not copied. It returns the ETag.
func (s *Server) PutObject(bucket, key string, parts [][]byte, opts *PutOptions) string {
	if opts == nil {
		opts = &PutOptions{}
	}
	v := &version{key: key, header: http.Header{}, meta: maps.Clone(opts.Metadata), modTime: s.Now()}
	v.header.Set("Content-Type", opts.ContentType)
	if opts.ContentType == "" {
		v.header.Set("Content-Type", "binary/octet-stream")
	}
	if opts.ContentEncoding != "" {
		v.header.Set("Content-Encoding", opts.ContentEncoding)
	}
	v.fill(slices.Clone(parts))
	if len(parts) > 1 || opts.PartNumbers != nil {
		v.parts = s.makeParts(parts, opts.PartNumbers)
		v.etag = s.etagOfParts(v.parts)
	} else {
		v.etag = s.etagOf(md5Of(v.data, s.opts.FastETag))
	}
	_ = s.mustBucket(bucket).commit(s, v, nil) // without a check it cannot fail
	return v.etag
}

func (s *Server) makeParts(parts [][]byte, numbers []int) []*storedPart {
	var out []*storedPart
	var off int64
	for i, data := range parts {
		p := &storedPart{number: i + 1, off: off, data: data, md5: md5Of(rope{data}, s.opts.FastETag), modTime: s.Now()}
		if numbers != nil {
			p.number = numbers[i]
		}
		p.etag = s.etagOf(p.md5)
		out = append(out, p)
		off += int64(len(data))
	}
	return out
}

// Object returns the present version of a key.
func (s *Server) Object(bucket, key string) (*Object, bool) {
	v := s.mustBucket(bucket).find(key, "")
	if v == nil || v.marker {
		return nil, false
	}
	return v.object(), true
}

// Objects returns the present objects of a bucket by key.
func (s *Server) Objects(bucket string) []*Object {
	b := s.mustBucket(bucket)
	var out []*Object
	for _, key := range b.names() {
		if v := b.find(key, ""); v != nil && !v.marker {
			out = append(out, v.object())
		}
	}
	return out
}

// Versions returns all versions and delete markers of a key, newest first.
func (s *Server) Versions(bucket, key string) []*Object {
	var out []*Object
	for _, v := range s.mustBucket(bucket).all(key) {
		out = append(out, v.object())
	}
	return out
}

// DeleteObject deletes as a DELETE request does.
func (s *Server) DeleteObject(bucket, key string) {
	_, _, _ = s.mustBucket(bucket).delete(s, key, "", nil) // without a check it cannot fail
}

func (v *version) object() *Object {
	o := &Object{
		Key: v.key, Size: v.size, ETag: v.etag, VersionID: v.id, ModTime: v.modTime,
		Metadata: maps.Clone(v.meta), Header: v.header.Clone(), Marker: v.marker, data: v.data,
	}
	for _, p := range v.parts {
		o.Parts = append(o.Parts, int64(len(p.data)))
	}
	return o
}

// Upload is a multipart upload in progress.
type Upload struct {
	ID, Key   string
	Initiated time.Time
	Parts     map[int]int64 // number -> size
}

// Uploads returns the multipart uploads in progress by key, then by age.
func (s *Server) Uploads(bucket string) []Upload {
	var out []Upload
	for _, u := range s.mustBucket(bucket).openUploads() {
		x := Upload{ID: u.id, Key: u.key, Initiated: u.initiated, Parts: map[int]int64{}}
		for _, p := range u.sortedParts() {
			x.Parts[p.number] = int64(len(p.data))
		}
		out = append(out, x)
	}
	return out
}
