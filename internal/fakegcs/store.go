package fakegcs

import (
	"crypto/md5"
	"hash/crc32"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// attrs are what a writer says of an object.
type attrs struct {
	contentType, contentEncoding, contentDisposition, contentLanguage, cacheControl string
	storageClass, customTime                                                        string
	meta                                                                            map[string]string
}

// object is one generation of an object. Immutable: a change of its metadata
// or of its state makes a copy.
type object struct {
	name                       string
	generation, metageneration int64
	attrs                      attrs
	data                       fakehttp.Rope
	size                       int64
	crc                        uint32
	md5                        []byte

	created, updated        time.Time
	noncurrent              time.Time // zero: it is live, or soft-deleted while live
	softDeleted, hardDelete time.Time // zero: not soft-deleted
}

// fill gives o its content.
func (o *object) fill(data fakehttp.Rope) {
	o.data, o.size = data, data.Size()
	h := md5.New()
	for _, b := range data {
		h.Write(b)
		o.crc = crc32.Update(o.crc, castagnoli, b)
	}
	o.md5 = h.Sum(nil)
}

// bucket is one bucket. Its lock is held for map operations only, and every
// condition is decided under the lock that makes its effect.
type bucket struct {
	name    string
	created time.Time

	mu struct {
		sync.RWMutex
		versioning bool
		retention  time.Duration        // of soft-deleted objects; 0: nothing is kept
		live       map[string]*object   // at most one generation of each name
		old        map[string][]*object // noncurrent, by ascending generation
		soft       map[string][]*object // soft-deleted, by ascending generation
		sorted     []string             // all names in byte order; nil when one was added since
	}
}

func newBucket(name string, now time.Time, versioning bool, retention time.Duration) *bucket {
	b := &bucket{name: name, created: now}
	b.mu.versioning, b.mu.retention = versioning, retention
	b.mu.live = map[string]*object{}
	b.mu.old, b.mu.soft = map[string][]*object{}, map[string][]*object{}
	return b
}

// nextGeneration is later than all before it. Real generations are times in
// microseconds too, which nobody may rely on ("Objects": generation numbers
// only tell versions apart).
func (s *Server) nextGeneration() int64 {
	for {
		last := s.generation.Load()
		next := max(s.Now().UnixMicro(), last+1)
		if s.generation.CompareAndSwap(last, next) {
			return next
		}
	}
}

// commit makes o the live generation of its name if check agrees with the
// present one (nil when there is none).
func (b *bucket) commit(s *Server, o *object, check func(live *object) *apiError) *apiError {
	b.mu.Lock()
	defer b.mu.Unlock()
	live := b.mu.live[o.name]
	if check != nil {
		if err := check(live); err != nil {
			return err
		}
	}
	now := s.Now()
	o.generation, o.metageneration = s.nextGeneration(), 1
	o.created, o.updated = now, now
	if live != nil {
		b.retire(live, now)
	}
	b.mu.live[o.name] = o
	b.mu.sorted = nil
	return nil
}

// retire takes the live generation away: "Object Versioning" makes it
// noncurrent, else "Soft delete" keeps it for a time. The caller holds the lock.
func (b *bucket) retire(o *object, now time.Time) {
	delete(b.mu.live, o.name)
	if !b.mu.versioning {
		b.softDelete(o, now)
		return
	}
	was := *o
	was.noncurrent = now
	b.mu.old[o.name] = append(slices.Clip(b.mu.old[o.name]), &was)
}

func (b *bucket) softDelete(o *object, now time.Time) {
	if b.mu.retention == 0 {
		return
	}
	was := *o
	was.softDeleted, was.hardDelete = now, now.Add(b.mu.retention)
	list := append(slices.Clone(b.mu.soft[o.name]), &was)
	slices.SortFunc(list, func(x, y *object) int { return int(x.generation - y.generation) })
	b.mu.soft[o.name] = list
}

// find returns the live generation, or with gen a live or noncurrent one.
func (b *bucket) find(name string, gen int64) *object {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.lookup(name, gen)
}

func (b *bucket) lookup(name string, gen int64) *object {
	live := b.mu.live[name]
	if gen == 0 || live != nil && live.generation == gen {
		return live
	}
	for _, o := range b.mu.old[name] {
		if o.generation == gen {
			return o
		}
	}
	return nil
}

// findSoft returns a soft-deleted generation that is still kept.
func (b *bucket) findSoft(name string, gen int64, now time.Time) *object {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, o := range b.mu.soft[name] {
		if o.generation == gen && now.Before(o.hardDelete) {
			return o
		}
	}
	return nil
}

// remove deletes the live generation, which versioning keeps as noncurrent, or
// with gen one generation for good, but for soft deletion.
func (b *bucket) remove(name string, gen int64, now time.Time, check func(target *object) *apiError) *apiError {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.lookup(name, gen)
	if check != nil {
		if err := check(o); err != nil {
			return err
		}
	}
	switch {
	case o == nil:
		return errNoObject(b.name, name)
	case gen == 0:
		b.retire(o, now)
		return nil
	case o == b.mu.live[name]:
		delete(b.mu.live, name)
	default:
		b.mu.old[name] = slices.DeleteFunc(slices.Clone(b.mu.old[name]), func(x *object) bool { return x == o })
	}
	b.softDelete(o, now)
	return nil
}

// change replaces the attributes of a generation, if check agrees with it.
func (b *bucket) change(s *Server, name string, gen int64, check func(target *object) *apiError, change func(*attrs) *apiError) (*object, *apiError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.lookup(name, gen)
	if err := check(o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errNoObject(b.name, name)
	}
	next := *o
	next.attrs.meta = maps.Clone(o.attrs.meta)
	if err := change(&next.attrs); err != nil {
		return nil, err
	}
	next.metageneration++
	next.updated = s.Now()
	if b.mu.live[name] == o {
		b.mu.live[name] = &next
		return &next, nil
	}
	list := slices.Clone(b.mu.old[name])
	list[slices.Index(list, o)] = &next
	b.mu.old[name] = list
	return &next, nil
}

// names returns all names in byte order. Names without any generation left may
// be among them.
func (b *bucket) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.sorted == nil {
		for _, m := range []map[string][]*object{b.mu.old, b.mu.soft} {
			b.mu.sorted = slices.AppendSeq(b.mu.sorted, maps.Keys(m))
		}
		b.mu.sorted = slices.AppendSeq(b.mu.sorted, maps.Keys(b.mu.live))
		slices.Sort(b.mu.sorted)
		b.mu.sorted = slices.Compact(b.mu.sorted)
	}
	return b.mu.sorted
}

// which selects generations in a listing.
type which int

const (
	liveOnes which = iota
	liveAndOld
	softOnes
)

// generations returns those of one name by ascending generation.
func (b *bucket) generations(name string, w which, now time.Time) []*object {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []*object
	switch w {
	case softOnes:
		for _, o := range b.mu.soft[name] {
			if now.Before(o.hardDelete) {
				out = append(out, o)
			}
		}
		return out
	case liveAndOld:
		out = append(out, b.mu.old[name]...)
	case liveOnes:
	}
	if live := b.mu.live[name]; live != nil {
		out = append(out, live)
	}
	return out
}

func (s *Server) bucket(name string) *bucket {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.buckets[name]
}
