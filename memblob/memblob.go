// Package memblob keeps objects in memory: for unit tests of programs that embed a Blob, and as the
// inner store of tests of decorators. It implements the whole contract of package blob, is
// linearizable in every operation, and forgets everything with the process.
//
// Not built yet: SetOptions.SHA256 is ErrUnsupported, and no checksum is kept, so Info.HasCRC32C is
// false. Want.CRC32C is checked on whole reads.
package memblob

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/gate"
)

const storeName = "memory"

// Options are the options of New. nil is the zero value.
type Options struct {
	// MaxGet is the most bytes that one Get or GetRanges returns. Zero or less: blob.DefaultMaxGet.
	MaxGet int64
	// MaxObject is the largest object in bytes that Set accepts. Zero or less: no limit.
	MaxObject int64
	// Restore keeps the newest deleted object of each absent key, so that Restore can bring it back.
	Restore bool
	// Now is the clock of Info.ModTime. nil: time.Now.
	Now func() time.Time
}

// Store is a Blob in memory. Make it with New.
type Store struct {
	opts Options
	gate gate.Gate

	// No I/O happens under the lock, no Source is read and no payload copied: an object never changes once it
	// is in a map, so a pointer taken under the lock can be read without it.
	mu struct {
		sync.Mutex
		objects map[string]*object
		keys    []string           // of objects, sorted
		deleted map[string]*object // with Options.Restore. INVARIANT: no key is in both maps
	}
}

var _ blob.Blob = (*Store)(nil)

// object is immutable from the moment it is published.
type object struct {
	info blob.Info
	data []byte
}

// New returns an empty store.
func New(opts *Options) *Store {
	s := new(Store)
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.MaxGet <= 0 {
		s.opts.MaxGet = blob.DefaultMaxGet
	}
	s.opts.MaxObject = max(s.opts.MaxObject, 0)
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	s.mu.objects = make(map[string]*object)
	s.mu.deleted = make(map[string]*object)
	return s
}

// Capabilities implements blob.Blob.
func (s *Store) Capabilities() blob.Capabilities {
	return blob.Capabilities{
		Store:       storeName,
		Conditions:  true,
		Restore:     s.opts.Restore,
		BatchDelete: true,
		MaxObject:   s.opts.MaxObject,
	}
}

// Close implements blob.Blob. Nothing is owed but the calls in flight.
func (s *Store) Close(ctx context.Context) error {
	if err := s.gate.Shut(ctx); err != nil {
		return &blob.OwedError{Err: err}
	}
	return nil
}

// lookup returns the object of key, nil if there is none.
func (s *Store) lookup(key string) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.objects[key]
}

// putLocked makes o the object of its key. The caller holds the lock.
func (s *Store) putLocked(o *object) {
	key := o.info.Key
	if _, ok := s.mu.objects[key]; !ok {
		i, _ := slices.BinarySearch(s.mu.keys, key)
		s.mu.keys = slices.Insert(s.mu.keys, i, key)
	}
	s.mu.objects[key] = o
	// Once the key exists again an older delete of it can never be the newest when it is absent.
	delete(s.mu.deleted, key)
}

// removeLocked removes key and keeps its object for Restore. The caller holds the lock.
func (s *Store) removeLocked(key string) {
	o, ok := s.mu.objects[key]
	if !ok {
		return
	}
	delete(s.mu.objects, key)
	i, _ := slices.BinarySearch(s.mu.keys, key)
	s.mu.keys = slices.Delete(s.mu.keys, i, i+1)
	if s.opts.Restore {
		s.mu.deleted[key] = o
	}
}
