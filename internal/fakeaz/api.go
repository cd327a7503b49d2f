package fakeaz

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// Blob is a stored blob as the Go side sees it.
type Blob struct {
	Key         string
	Size        int64
	ETag        string // quoted
	VersionID   string // empty without versioning
	Snapshot    string // empty but for snapshots
	ModTime     time.Time
	Blocks      []int64 // sizes of the blocks; nil for a blob of one Put Blob
	Metadata    map[string]string
	Header      http.Header // Content-Type and its like
	MD5         []byte      // nil when it is not known
	SoftDeleted bool

	data rope
}

// Bytes returns the content in a new slice.
func (b *Blob) Bytes() []byte { return b.data.Bytes() }

// PutOptions describe a blob made by PutBlob. The zero value is a blob of type application/octet-stream without metadata.
type PutOptions struct {
	Metadata        map[string]string // without the x-ms-meta- prefix; names keep their case
	ContentType     string
	ContentEncoding string
	// NoMD5 leaves Content-MD5 out, as with blobs of blocks.
	NoMD5 bool
	// BlockIDs are the ids of the blocks, in base64, of PutObject. Nil: ids of this server's own.
	BlockIDs []string
}

// CreateContainer makes a container; it reports false when there was one already.
func (s *Server) CreateContainer(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.containers[name] != nil {
		return false
	}
	s.mu.containers[name] = newContainer(name, s.newETag(), s.now())
	return true
}

// mustContainer panics for a container that does not exist: a mistake in a test.
func (s *Server) mustContainer(name string) *container {
	c := s.container(name)
	if c == nil {
		panic("fakeaz: no container " + name)
	}
	return c
}

// PutBlob stores a blob of one Put Blob, without a request. The bytes are kept, not copied. It returns the ETag.
func (s *Server) PutBlob(container, key string, data []byte, opts *PutOptions) string {
	return s.PutObject(container, key, [][]byte{data}, opts)
}

// PutObject stores a blob without a request: one element of parts makes one of a Put Blob, more make one of blocks. No
// elements: an empty blob. The bytes are kept, not copied. It returns the ETag.
func (s *Server) PutObject(container, key string, parts [][]byte, opts *PutOptions) string {
	if opts == nil {
		opts = &PutOptions{}
	}
	r := &revision{name: key, header: http.Header{}, meta: maps.Clone(opts.Metadata), data: slices.Clone(parts)}
	r.size = r.data.Size()
	r.header.Set("Content-Type", opts.ContentType)
	if opts.ContentType == "" {
		r.header.Set("Content-Type", "application/octet-stream")
	}
	if opts.ContentEncoding != "" {
		r.header.Set("Content-Encoding", opts.ContentEncoding)
	}
	switch {
	case len(parts) > 1 || opts.BlockIDs != nil:
		for i, data := range parts {
			id := serverID(i)
			if opts.BlockIDs != nil {
				id = opts.BlockIDs[i]
			}
			r.blocks = append(r.blocks, &block{id: id, data: data, added: s.now()})
		}
	case !opts.NoMD5:
		r.md5 = md5Of(r.data)
	}
	c := s.mustContainer(container)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.make(s, key).put(s, r)
	return r.etag
}

// Blob returns the blob of a name.
func (s *Server) Blob(container, key string) (*Blob, bool) {
	c := s.mustContainer(container)
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.entry(s, key).find("", "")
	if r == nil {
		return nil, false
	}
	return r.blob(false), true
}

// Object is Blob, by the name it has with other fakes.
func (s *Server) Object(container, key string) (*Blob, bool) { return s.Blob(container, key) }

// Objects returns the blobs of a container by name.
func (s *Server) Objects(container string) []*Blob {
	var out []*Blob
	s.each(container, func(e *entry) {
		if e.current != nil {
			out = append(out, e.current.blob(false))
		}
	})
	return out
}

// Past returns the previous versions and snapshots of a name, and what is soft-deleted of it, oldest first.
func (s *Server) Past(container, key string) []*Blob {
	c := s.mustContainer(container)
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(s, key)
	if e == nil {
		return nil
	}
	var out []*Blob
	for _, p := range e.past {
		out = append(out, p.blob(!p.deleted.IsZero()))
	}
	if e.gone != nil {
		out = append(out, e.gone.blob(true))
	}
	return out
}

// DeleteBlob deletes as Delete Blob with x-ms-delete-snapshots: include does.
func (s *Server) DeleteBlob(container, key string) {
	c := s.mustContainer(container)
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(s, key)
	if e == nil || e.current == nil {
		return
	}
	_ = e.deleteBase(s, "include") // with that mode it cannot fail
	if e.empty() {
		delete(c.mu.entries, key)
	}
}

// DeleteObject is DeleteBlob, by the name it has with other fakes.
func (s *Server) DeleteObject(container, key string) { s.DeleteBlob(container, key) }

// Upload is a name with uncommitted blocks.
type Upload struct {
	Key string
	// Exists says that there is a blob of that name too.
	Exists bool
	IDs    []string // of the blocks, oldest first
	Sizes  []int64
	// Touched is when the last block came.
	Touched time.Time
}

// Uploads returns the names with uncommitted blocks, by name.
func (s *Server) Uploads(container string) []Upload {
	var out []Upload
	c := s.mustContainer(container)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.names() {
		e := c.entry(s, name)
		if e == nil || len(e.blocks) == 0 {
			continue
		}
		u := Upload{Key: name, Exists: e.current != nil, IDs: slices.Clone(e.order), Touched: e.touched}
		for _, id := range e.order {
			u.Sizes = append(u.Sizes, int64(len(e.blocks[id].data)))
		}
		out = append(out, u)
	}
	return out
}

// Uncommitted is Uploads, by the name it has in the service.
func (s *Server) Uncommitted(container string) []Upload { return s.Uploads(container) }

func (s *Server) each(container string, do func(*entry)) {
	c := s.mustContainer(container)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.names() {
		if e := c.entry(s, name); e != nil {
			do(e)
		}
	}
}

func (r *revision) blob(deleted bool) *Blob {
	b := &Blob{
		Key: r.name, Size: r.size, ETag: r.etag, VersionID: r.version, Snapshot: r.snapshot, ModTime: r.modTime,
		Metadata: maps.Clone(r.meta), Header: r.header.Clone(), MD5: r.md5, SoftDeleted: deleted, data: r.data,
	}
	for _, x := range r.blocks {
		b.Blocks = append(b.Blocks, int64(len(x.data)))
	}
	return b
}
