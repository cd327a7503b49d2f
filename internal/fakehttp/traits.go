package fakehttp

import (
	"sync/atomic"
	"time"
)

// Traits are the steady traits that every fake has.
type Traits struct {
	Shape

	// Latency is slept before every request is handled. Zero: none.
	Latency time.Duration
	// Bandwidth is the bytes per second of each connection, in bodies of
	// requests and answers. Zero: no limit.
	Bandwidth int64
}

// Steady holds the traits of a server, K, which change while it serves. Its zero value holds the zero K.
type Steady[K any] struct{ p atomic.Pointer[K] }

// Load returns the traits now, which must not be changed. A request that keeps them keeps the traits it began with.
func (s *Steady[K]) Load() *K {
	if k := s.p.Load(); k != nil {
		return k
	}
	return new(K)
}

// Set changes the traits. change may be called several times, with a copy each.
func (s *Steady[K]) Set(change func(*K)) {
	for {
		old := s.p.Load()
		var k K
		if old != nil {
			k = *old
		}
		change(&k)
		if s.p.CompareAndSwap(old, &k) {
			return
		}
	}
}
