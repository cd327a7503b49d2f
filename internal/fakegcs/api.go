package fakegcs

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// Object is one generation of an object as the Go side sees it.
type Object struct {
	Key                        string
	Size                       int64
	Generation, Metageneration int64
	CRC32C                     uint32
	MD5                        []byte
	Created, Updated           time.Time
	// Noncurrent is when another generation, or none, became live. Zero: it is live.
	Noncurrent time.Time
	// SoftDeleted is when it was soft-deleted. Zero: it was not.
	SoftDeleted                                time.Time
	ContentType, ContentEncoding, CacheControl string
	Metadata                                   map[string]string

	data fakehttp.Rope
}

// Bytes returns the content in a new slice.
func (o *Object) Bytes() []byte { return o.data.Bytes() }

func (o *object) public() *Object {
	return &Object{
		Key: o.name, Size: o.size, Generation: o.generation, Metageneration: o.metageneration, CRC32C: o.crc, MD5: slices.Clone(o.md5),
		Created: o.created, Updated: o.updated, Noncurrent: o.noncurrent, SoftDeleted: o.softDeleted,
		ContentType: o.attrs.contentType, ContentEncoding: o.attrs.contentEncoding, CacheControl: o.attrs.cacheControl,
		Metadata: maps.Clone(o.attrs.meta), data: o.data,
	}
}

// PutOptions describe an object made by PutObject. The zero value is an object
// without a type and without metadata.
type PutOptions struct {
	Metadata                                   map[string]string
	ContentType, ContentEncoding, CacheControl string
	// CRC32C is stored instead of the true sum, for objects that are not what
	// they say. Nil: the true sum.
	CRC32C *uint32
}

// CreateBucket makes a bucket; it reports false when there was one already.
func (s *Server) CreateBucket(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.buckets[name] != nil {
		return false
	}
	s.mu.buckets[name] = newBucket(name, s.Now(), s.opts.Versioned, s.opts.SoftDelete)
	return true
}

// SetVersioning switches Object Versioning of a bucket on or off.
func (s *Server) SetVersioning(bucket string, on bool) {
	b := s.mustBucket(bucket)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.versioning = on
}

// SetSoftDelete sets how long a bucket keeps what is deleted or replaced from
// now on. Zero: not at all.
func (s *Server) SetSoftDelete(bucket string, retention time.Duration) {
	b := s.mustBucket(bucket)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.retention = retention
}

// mustBucket panics for a bucket that does not exist: a mistake in a test.
func (s *Server) mustBucket(name string) *bucket {
	b := s.bucket(name)
	if b == nil {
		panic("fakegcs: no bucket " + name)
	}
	return b
}

// PutObject stores an object without a request, of any name. The bytes are
// kept, not copied. It returns the generation.
func (s *Server) PutObject(bucket, key string, data []byte, opts *PutOptions) int64 {
	if opts == nil {
		opts = &PutOptions{}
	}
	o := &object{name: key, attrs: attrs{
		contentType: opts.ContentType, contentEncoding: opts.ContentEncoding, cacheControl: opts.CacheControl,
		storageClass: "STANDARD", meta: maps.Clone(opts.Metadata),
	}}
	o.fill(fakehttp.Rope{data})
	if opts.CRC32C != nil {
		o.crc = *opts.CRC32C
	}
	_ = s.mustBucket(bucket).commit(s, o, nil) // without a check it cannot fail
	return o.generation
}

// Object returns the live generation of a key.
func (s *Server) Object(bucket, key string) (*Object, bool) {
	o := s.mustBucket(bucket).find(key, 0)
	if o == nil {
		return nil, false
	}
	return o.public(), true
}

// Objects returns the live objects of a bucket by key.
func (s *Server) Objects(bucket string) []*Object {
	b := s.mustBucket(bucket)
	var out []*Object
	for _, key := range b.names() {
		if o := b.find(key, 0); o != nil {
			out = append(out, o.public())
		}
	}
	return out
}

// Versions returns the noncurrent and the live generations of a key, by
// ascending generation, then those that are soft-deleted.
func (s *Server) Versions(bucket, key string) []*Object {
	b := s.mustBucket(bucket)
	var out []*Object
	for _, w := range []which{liveAndOld, softOnes} {
		for _, o := range b.generations(key, w, s.Now()) {
			out = append(out, o.public())
		}
	}
	return out
}

// DeleteObject deletes the live generation as a DELETE request does.
func (s *Server) DeleteObject(bucket, key string) {
	_ = s.mustBucket(bucket).remove(key, 0, s.Now(), nil) // nothing to delete is fine
}

// Upload is a session that is neither finished nor over.
type Upload struct {
	ID, Key string
	Started time.Time
	// Size is the number of bytes persisted, Total that of the object, -1
	// while unknown.
	Size, Total int64
}

// Uploads returns the sessions of a bucket in progress by their start.
func (s *Server) Uploads(bucket string) []Upload {
	s.mu.RLock()
	var us []*session
	for _, u := range s.mu.sessions {
		if u.bucket == bucket {
			us = append(us, u)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(us, func(x, y *session) int { return strings.Compare(x.id, y.id) })
	var out []Upload
	for _, u := range us {
		u.mu.Lock()
		if u.mu.done == nil && u.over(s) == nil {
			out = append(out, Upload{ID: u.id, Key: u.key, Started: u.started, Size: u.mu.size, Total: u.mu.total})
		}
		u.mu.Unlock()
	}
	return out
}

// ExpireUploads ends all sessions of a bucket in progress: from then on they
// answer 410, which the documents give to one that is lost within its week.
func (s *Server) ExpireUploads(bucket string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, u := range s.mu.sessions {
		u.mu.Lock()
		if u.bucket == bucket && u.mu.done == nil && u.mu.verdict == nil {
			u.mu.data, u.mu.verdict = nil, errGone()
		}
		u.mu.Unlock()
	}
}
