package diskcache

import (
	"cmp"
	"slices"
	"sync"
)

// sieve says which run goes next. It is the SIEVE of Zhang et al. (NSDI 2024): a queue in order of arrival and a hand that
// moves from the oldest to the newest, spares what was read since it last came by, and takes the rest. A scan does not flush what is
// read again and again, and a read only sets a flag: it takes no lock here.
type sieve struct {
	mu      sync.Mutex
	newest  *run
	oldest  *run
	hand    *run  // the next to look at; nil: the oldest
	bytes   int64 // of the runs in the queue
	entries int64
}

func (s *sieve) add(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push(r)
	r.listed = true
	s.bytes += r.foot
	s.entries++
}

func (s *sieve) push(r *run) {
	r.prev, r.next = nil, s.newest
	if s.newest != nil {
		s.newest.prev = r
	} else {
		s.oldest = r
	}
	s.newest = r
}

func (s *sieve) remove(runs []*run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range runs {
		if !r.listed { // two may have removed the file at the same time
			continue
		}
		if s.hand == r {
			s.hand = r.prev
		}
		if r.prev != nil {
			r.prev.next = r.next
		} else {
			s.newest = r.next
		}
		if r.next != nil {
			r.next.prev = r.prev
		} else {
			s.oldest = r.prev
		}
		r.prev, r.next, r.listed = nil, nil, false
		s.bytes -= r.foot
		s.entries--
	}
}

// victim returns the run to evict, which stays in the queue until it is removed; nil if there is none.
func (s *sieve) victim() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.hand
	if r == nil {
		r = s.oldest
	}
	// The second round at the latest finds one, unless readers set flags as fast as the hand clears them.
	for range 2 * s.entries {
		if !r.visited.Swap(false) {
			break
		}
		if r = r.prev; r == nil {
			r = s.oldest
		}
	}
	if r != nil {
		s.hand = r.prev
	}
	return r
}

// order puts the queue in order of age: the shards were found in the order of their names.
func (s *sieve) order() {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*run, 0, s.entries)
	for r := s.oldest; r != nil; r = r.prev {
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b *run) int { return cmp.Compare(a.born, b.born) })
	s.newest, s.oldest, s.hand = nil, nil, nil
	for _, r := range all {
		s.push(r)
	}
}

func (s *sieve) size() (bytes, entries int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, s.entries
}
