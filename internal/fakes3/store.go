package fakes3

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

func itoa(n int) string     { return strconv.Itoa(n) }
func itoa64(n int64) string { return strconv.FormatInt(n, 10) }

type rope = fakehttp.Rope

// storedPart is one part of an object or of an upload. Immutable.
type storedPart struct {
	number  int
	off     int64 // within the finished object
	data    []byte
	md5     []byte
	etag    string
	sums    map[string]string
	modTime time.Time
}

// version is one version of an object, or a delete marker. Immutable.
type version struct {
	id      string // "null" without versioning
	key     string
	marker  bool
	etag    string // quoted
	data    rope
	size    int64
	parts   []*storedPart // nil for an object of one PUT
	header  http.Header   // Content-Type and its like, as stored
	meta    map[string]string
	modTime time.Time
	sums    map[string]string
	sumType string // FULL_OBJECT or COMPOSITE

	crc64 func() string // computed on demand, where no checksum was given
}

const nullVersion = "null"

// bucket is one bucket. Its lock is held for map operations only.
type bucket struct {
	name    string
	created time.Time

	mu struct {
		sync.RWMutex
		versioning string                // "", Enabled or Suspended
		keys       map[string][]*version // newest first, never empty
		sorted     []string              // keys in order; nil when a key was added since
		uploads    map[string]*upload
		done       map[string]*finished // completed uploads, for a repeated Complete
	}
}

func newBucket(name string, now time.Time) *bucket {
	b := &bucket{name: name, created: now}
	b.mu.keys = make(map[string][]*version)
	b.mu.uploads = make(map[string]*upload)
	b.mu.done = make(map[string]*finished)
	return b
}

// current returns the newest version of key unless that is a marker; the
// caller holds the lock.
func (b *bucket) current(key string) *version {
	if vs := b.mu.keys[key]; len(vs) > 0 && !vs[0].marker {
		return vs[0]
	}
	return nil
}

// find returns the version with an id, or the newest one, marker or not.
func (b *bucket) find(key, id string) *version {
	b.mu.RLock()
	defer b.mu.RUnlock()
	vs := b.mu.keys[key]
	if id == "" {
		if len(vs) == 0 {
			return nil
		}
		return vs[0]
	}
	for _, v := range vs {
		if v.id == id {
			return v
		}
	}
	return nil
}

// commit makes v the newest version of its key if check agrees with the
// present one (nil when absent).
func (b *bucket) commit(s *Server, v *version, check func(cur *version) *apiError) *apiError {
	b.mu.Lock()
	defer b.mu.Unlock()
	if check != nil {
		if err := check(b.current(v.key)); err != nil {
			return err
		}
	}
	b.put(s, v)
	return nil
}

// put stores v as the newest version; the caller holds the lock.
func (b *bucket) put(s *Server, v *version) {
	v.id = nullVersion
	if b.mu.versioning == "Enabled" {
		v.id = s.unique("v")
	}
	old := b.mu.keys[v.key]
	if old == nil {
		b.mu.sorted = nil
	}
	vs := make([]*version, 0, len(old)+1)
	vs = append(vs, v)
	for _, o := range old {
		if o.id != v.id { // only "null" can repeat: it is replaced
			vs = append(vs, o)
		}
	}
	b.mu.keys[v.key] = vs
}

// remove deletes one version for good; the caller holds the lock.
func (b *bucket) remove(key, id string) *version {
	vs := b.mu.keys[key]
	i := slices.IndexFunc(vs, func(v *version) bool { return v.id == id })
	if i < 0 {
		return nil
	}
	gone := vs[i]
	if vs = slices.Delete(slices.Clone(vs), i, i+1); len(vs) == 0 {
		delete(b.mu.keys, key)
	} else {
		b.mu.keys[key] = vs
	}
	return gone
}

// names returns the keys in byte order. Keys deleted since may be among them.
func (b *bucket) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.sorted == nil {
		b.mu.sorted = make([]string, 0, len(b.mu.keys))
		for k := range b.mu.keys {
			b.mu.sorted = append(b.mu.sorted, k)
		}
		slices.Sort(b.mu.sorted)
	}
	return b.mu.sorted
}

// all returns the versions of key, newest first.
func (b *bucket) all(key string) []*version {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.mu.keys[key]
}

func (s *Server) bucket(name string) *bucket {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.buckets[name]
}

// unique makes an id that no other call makes, of the length of AWS's.
func (s *Server) unique(kind string) string {
	return fmt.Sprintf("%s%031x", kind, s.versions.Add(1))
}

// etagOf is the ETag of one body: its MD5, or with FastETag a fresh value.
func (s *Server) etagOf(sum []byte) string {
	if sum == nil {
		return fmt.Sprintf(`"%032x"`, s.versions.Add(1))
	}
	return `"` + hex.EncodeToString(sum) + `"`
}

// etagOfParts is the MD5 of the parts' MD5 sums, dash, number of parts.
func (s *Server) etagOfParts(parts []*storedPart) string {
	h := md5.New()
	for _, p := range parts {
		if p.md5 == nil {
			return fmt.Sprintf(`"%032x-%d"`, s.versions.Add(1), len(parts))
		}
		h.Write(p.md5)
	}
	return fmt.Sprintf(`"%x-%d"`, h.Sum(nil), len(parts))
}
