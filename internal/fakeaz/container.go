package fakeaz

import (
	"slices"
	"sync"
	"time"
)

// weekOld is when uncommitted blocks are discarded: one week after the last successful Put Block ("Put Block").
const weekOld = 7 * 24 * time.Hour

// container is one container. Its lock is held for map operations only; a condition and what it guards happen under it
// together.
type container struct {
	name    string
	etag    string
	created time.Time

	mu struct {
		sync.Mutex
		entries map[string]*entry
		sorted  []string // names in byte order; nil when one was added since
	}
}

// entry is everything that exists under one name.
type entry struct {
	current *revision
	gone    *past   // the blob itself, soft-deleted; then current is nil
	past    []*past // versions and snapshots, oldest first
	blocks  map[string]*block
	order   []string // ids of blocks, oldest first
	touched time.Time
}

func newContainer(name, etag string, now time.Time) *container {
	c := &container{name: name, etag: etag, created: now}
	c.mu.entries = make(map[string]*entry)
	return c
}

func (s *Server) container(name string) *container {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.containers[name]
}

// entry returns what is under a name, without what is past its time, or nil. The caller holds the lock.
func (c *container) entry(s *Server, name string) *entry {
	e := c.mu.entries[name]
	if e == nil {
		return nil
	}
	e.expire(s.now(), s.retention())
	if e.empty() {
		delete(c.mu.entries, name)
		return nil
	}
	return e
}

// make returns the entry of a name, a new one where there is none. The caller holds the lock and puts something in.
func (c *container) make(s *Server, name string) *entry {
	if e := c.entry(s, name); e != nil {
		return e
	}
	e := &entry{blocks: map[string]*block{}}
	c.mu.entries[name] = e
	c.mu.sorted = nil
	return e
}

// names returns the names in byte order; some may be gone. The caller holds the lock.
func (c *container) names() []string {
	if c.mu.sorted == nil {
		c.mu.sorted = make([]string, 0, len(c.mu.entries))
		for name := range c.mu.entries {
			c.mu.sorted = append(c.mu.sorted, name)
		}
		slices.Sort(c.mu.sorted)
	}
	return c.mu.sorted
}

func (e *entry) empty() bool {
	return e.current == nil && e.gone == nil && len(e.past) == 0 && len(e.blocks) == 0
}

// expire drops soft-deleted revisions whose retention has ended and blocks that nobody has added to for a week.
func (e *entry) expire(now time.Time, retention time.Duration) {
	over := func(p *past) bool { return !p.deleted.IsZero() && !now.Before(p.deleted.Add(retention)) }
	if e.gone != nil && over(e.gone) {
		e.gone = nil
	}
	e.past = slices.DeleteFunc(e.past, over)
	if len(e.blocks) > 0 && !now.Before(e.touched.Add(weekOld)) {
		e.discardBlocks()
	}
}

func (e *entry) discardBlocks() { e.blocks, e.order = map[string]*block{}, nil }

// find returns the revision that a request names: the blob itself, a version or a snapshot. Deleted ones are not found
// ("Soft delete for blobs": they can be listed and undeleted, nothing else).
func (e *entry) find(version, snapshot string) *revision {
	if e == nil {
		return nil
	}
	if version == "" && snapshot == "" {
		return e.current
	}
	if e.current != nil && snapshot == "" && e.current.version == version {
		return e.current
	}
	for _, p := range e.past {
		if p.deleted.IsZero() && p.snapshot == snapshot && (version == "" || p.version == version) {
			return p.revision
		}
	}
	return nil
}

// put makes r the blob. What was there becomes a previous version with versioning, a soft-deleted snapshot with soft
// delete alone ("Soft delete for blobs", overwriting), else nothing. All uncommitted blocks are discarded ("Put Blob",
// "Put Block List"). The caller holds the lock.
func (e *entry) put(s *Server, r *revision) {
	k := s.Knobs()
	r.etag, r.modTime = s.newETag(), s.now()
	if r.created.IsZero() {
		r.created = r.modTime
	}
	e.retire(s)
	if e.gone != nil {
		e.keep(s, e.gone.revision, e.gone.deleted)
		e.gone = nil
	}
	if k.Versioning {
		r.version = s.stamp()
	}
	e.current = r
	e.discardBlocks()
}

// retire moves the current revision aside before another takes its place.
func (e *entry) retire(s *Server) {
	old := e.current
	e.current = nil
	switch k := s.Knobs(); {
	case old == nil:
	case k.Versioning:
		e.pastVersion(s, old)
	case k.Retention > 0:
		e.keep(s, old, s.now())
	}
}

// pastVersion makes a previous version of r. A blob from before versioning was switched on gets its id now.
func (e *entry) pastVersion(s *Server, r *revision) {
	if r.version == "" {
		c := *r
		c.version = s.stamp()
		r = &c
	}
	e.past = append(e.past, &past{revision: r})
}

// keep makes a soft-deleted snapshot of r.
func (e *entry) keep(s *Server, r *revision, deleted time.Time) {
	c := *r
	c.snapshot = s.stamp()
	e.past = append(e.past, &past{revision: &c, deleted: deleted})
}

// snapshots is whether there are snapshots that are not deleted.
func (e *entry) snapshots() bool {
	return slices.ContainsFunc(e.past, func(p *past) bool { return p.snapshot != "" && p.deleted.IsZero() })
}

// undelete is Undelete Blob: the blob and every soft-deleted snapshot and version come back. It promotes no version
// ("Soft delete for blobs": to restore with versioning, copy a version over the blob), and where nothing is deleted it has
// no effect and still succeeds.
func (e *entry) undelete() {
	if e.gone != nil {
		e.current, e.gone = e.gone.revision, nil
	}
	for i, p := range e.past {
		if !p.deleted.IsZero() {
			e.past[i] = &past{revision: p.revision}
		}
	}
}
