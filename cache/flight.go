package cache

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/wholeblob/wholeblob/blob"
)

// request is one read of the inner store, and the identity of a flight: callers who would send the same share it.
type request struct {
	Range blob.Range
	If    blob.Condition
	Want  blob.Want
	Size  int64 // of the object in the version that If names; 0: not known
}

// flight is one request that is under way, for any number of callers.
//
// It runs in a goroutine of its own under a context of its own, so the caller who began it may leave like any other. When the last
// one leaves, it is cancelled and nobody can join it any more.
type flight struct {
	watch  watch
	req    request
	size   int64 // bytes reserved for it
	cancel context.CancelFunc
	done   chan struct{}

	waiters int       // guarded by the lock of watch.s
	refuted sync.Once // to drop what the answer shows to be gone, once for all who wait: the second would drop what the first has fetched instead

	// Set before done is closed. The result is shared and read-only.
	obj   blob.Object
	err   error
	sound bool // obj is exactly what req asks for
	woe   any  // what the store panicked with
}

// question is the request for what is current, without its bytes.
var question = request{Range: blob.Span(0, 0)}

// errStraight says that the caller's read has to go to the store as it is; errAgain that it should look once more.
var (
	errStraight = errors.New("cache: ask the store")
	errAgain    = errors.New("cache: look again")
)

// join returns a flight for req, one that is under way or a new one, with the caller as a waiter. It returns errStraight if a write of the key
// is going on or the bytes of fills are used up, and errAgain if landed says that what the caller missed has come since it looked: it
// is called under the lock, under which flights land, so that no second request follows one that has just ended.
func (c *Cache) join(ctx context.Context, key string, req request, size int64, landed func() bool) (*flight, error) {
	// Else the answer could be older than the question. What is fetched of a version that was just confirmed has its size, and cannot.
	alone := c.opts.Revalidate == Always && req.Size == 0
	s := c.epochs.lock(key)
	defer s.mu.Unlock()
	defer s.leaveLocked()
	if s.writers > 0 {
		return nil, errStraight
	}
	if f := s.flights[req]; f != nil && !alone {
		f.waiters++
		c.count.joined.Add(1)
		return f, nil
	}
	if !alone && landed() {
		return nil, errAgain
	}
	size = max(size, minBlock)
	if !c.fills.take(size) {
		c.count.skipped.Add(1)
		return nil, errStraight
	}
	// The gate of flights is shut only after that of the calls has drained, and the caller is one of those.
	fctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if err := c.flying.Enter(fctx, blob.OpGet, key); err != nil {
		cancel()
		c.fills.give(size)
		return nil, errStraight
	}
	s.users++
	f := &flight{watch: watch{s, s.epoch}, req: req, size: size, cancel: cancel, done: make(chan struct{}), waiters: 1}
	if !alone {
		if s.flights == nil {
			s.flights = make(map[request]*flight)
		}
		s.flights[req] = f
	}
	go c.fly(fctx, key, f)
	return f, nil
}

// fly sends the request and puts what comes into the tiers.
func (c *Cache) fly(ctx context.Context, key string, f *flight) {
	// Whatever the store does to this goroutine, those who wait are let go and what was taken is given back.
	defer c.arrive(key, f, c.now(), c.seq.Add(1))
	defer func() {
		if f.woe = recover(); f.woe != nil {
			c.opts.Logger.Error("cache: the store panicked", "store", c.store, "key", key, "panic", f.woe, "stack", string(debug.Stack()))
		}
	}()
	c.count.fetches.Add(1)
	f.err = errStraight // stays if the store ends this goroutine: each caller has its own
	f.obj, f.err = c.inner.Get(ctx, key, &blob.GetOptions{Range: f.req.Range, If: f.req.If, Want: f.req.Want})
}

// arrive puts the answer to a request that began at that time with that number into the tiers, and hands it to those who wait.
func (c *Cache) arrive(key string, f *flight, began int64, seq uint64) {
	defer c.flying.Leave()
	defer f.cancel()
	contradicts := f.err == nil && c.contradicts(f.req, f.obj.Info)
	f.sound = f.err == nil && !contradicts && sound(key, f.req, f.obj)
	size := f.size
	if n := int64(len(f.obj.Data)); f.sound && n > size { // its size was not known ahead
		if c.fills.take(n - size) {
			size = n
		} else {
			c.count.skipped.Add(1)
		}
	}
	cargo := freight{obj: f.obj} // tells what is current and no more
	if f.sound && int64(len(f.obj.Data)) <= size {
		cargo = c.unload(f.obj)
	}
	if f.sound && c.disk != nil && c.disk.Other(key, f.obj.Version) {
		c.disk.Drop(key) // whether or not what came will be written in its place
	}
	f.land(func() {
		if f.sound {
			c.admit(cargo, seq, began, true)
		}
	}, &c.count)
	if contradicts { // nobody knows which of the answers was wrong, this one or the one that was kept
		c.invalidate(key)
	}
	c.fills.give(size)
	close(f.done)
}

// land ends the flight's watch; put is called if nothing was written meanwhile. Nobody can join between put and the end.
func (f *flight) land(put func(), count *counters) {
	s := f.watch.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.writers == 0 && s.epoch == f.watch.epoch:
		put()
	case f.sound:
		count.dropped.Add(1)
	}
	if s.flights[f.req] == f {
		delete(s.flights, f.req)
	}
	s.leaveLocked()
}

// wait returns the result, or the error of ctx. A panic of the store goes on here, where it would have come without a cache.
func (f *flight) wait(ctx context.Context) (blob.Object, error) {
	select {
	case <-f.done:
		if f.woe != nil {
			panic(f.woe)
		}
		return f.obj, f.err
	case <-ctx.Done():
		return blob.Object{}, ctx.Err()
	}
}

// leave gives up the caller's share. Each that joined leaves once.
func (f *flight) leave() {
	s := f.watch.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiters--; f.waiters > 0 {
		return
	}
	if s.flights[f.req] == f {
		delete(s.flights, f.req)
	}
	f.cancel()
}

// sound reports whether obj is exactly what req asks for: what a store promises, looked at once more before it is kept.
func sound(key string, req request, obj blob.Object) bool {
	off, n, err := req.Range.Resolve(obj.Size)
	if err != nil || obj.Key != key || obj.Version == "" || obj.Offset != off || int64(len(obj.Data)) != n {
		return false
	}
	if v, ok := req.If.Version(); ok && v != obj.Version {
		return false
	}
	w := blob.Want{Size: req.Want.Size, HasSize: req.Want.HasSize, CRC32C: obj.CRC32C, HasCRC32C: obj.HasCRC32C}
	return w.Verify(obj.Size, obj.Offset, obj.Data) == nil
}
