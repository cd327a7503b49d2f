package fakehttp

import (
	"context"
	"sync"
	"sync/atomic"
)

// Injected is a fault in force.
type Injected struct {
	fault   Fault
	list    *faultList
	seen    int // matching requests so far, under the list's lock
	hits    int
	gate    chan struct{}
	release sync.Once

	mu struct {
		sync.Mutex
		arrived int
		next    chan struct{} // closed at the next arrival
		reached chan struct{} // closed at the first
	}
}

// Inject puts a fault in force, beside those there are. Faults that hit the
// same request add up.
func (s *Server) Inject(f Fault) *Injected {
	if f.Nth == 0 {
		f.Nth = 1
	}
	if f.Times == 0 {
		f.Times = max(1, len(f.Replies))
	}
	in := &Injected{fault: f, list: &s.faults, gate: make(chan struct{})}
	in.mu.next, in.mu.reached = make(chan struct{}), make(chan struct{})
	s.faults.add(in)
	return in
}

// ClearFaults removes every fault and releases what they hold.
func (s *Server) ClearFaults() {
	for _, in := range s.faults.clear() {
		in.Release()
	}
}

// Hits is the number of requests hit so far.
func (in *Injected) Hits() int {
	in.list.mu.Lock()
	defer in.list.mu.Unlock()
	return in.hits
}

// Seen is the number of requests that matched so far, hit or not.
func (in *Injected) Seen() int {
	in.list.mu.Lock()
	defer in.list.mu.Unlock()
	return in.seen
}

// Reached is closed when the first request has come to the fault: for
// HoldBefore and Before that is before it is handled, for the others after it
// was handled (and committed).
func (in *Injected) Reached() <-chan struct{} { return in.mu.reached }

// WaitFor waits until n requests have come to the fault, as Reached does for
// one.
func (in *Injected) WaitFor(ctx context.Context, n int) error {
	for {
		in.mu.Lock()
		arrived, next := in.mu.arrived, in.mu.next
		in.mu.Unlock()
		if arrived >= n {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Release lets every request go that the fault holds or will hold.
func (in *Injected) Release() { in.release.Do(func() { close(in.gate) }) }

// Remove ends the fault and releases what it holds.
func (in *Injected) Remove() {
	in.list.remove(in)
	in.Release()
}

func (in *Injected) reach() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mu.arrived++; in.mu.arrived == 1 {
		close(in.mu.reached)
	}
	close(in.mu.next)
	in.mu.next = make(chan struct{})
}

type faultList struct {
	n  atomic.Int32 // spares the lock where there are none
	mu struct {
		sync.Mutex
		list []*Injected
	}
}

func (l *faultList) add(in *Injected) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.list = append(l.mu.list, in)
	l.n.Add(1)
}

func (l *faultList) remove(in *Injected) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, x := range l.mu.list {
		if x == in {
			l.mu.list = append(l.mu.list[:i:i], l.mu.list[i+1:]...)
			l.n.Add(-1)
			return
		}
	}
}

func (l *faultList) clear() []*Injected {
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := l.mu.list
	l.mu.list = nil
	l.n.Store(0)
	return gone
}
