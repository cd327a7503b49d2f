package cache

import (
	"hash/maphash"
	"sync"
)

// epochs make fills lose every race against the writes of this process.
//
// A key has a state while something is going on with it: a fetch, a write, a look at the disk. The state has an epoch, which moves
// when a write begins and again when it ends, whatever became of it. What was learned about a key is put into the tiers only under the
// lock, if no write is going on and the epoch is still the one of before the learning began. The interleavings:
//
//	fetch begins, reads v1 | write begins, applies v2, ends | fetch would put v1:    the epoch moved
//	write begins | fetch begins, reads v1 | v2 is applied | fetch would put v1:      a write is going on
//	write begins | fetch begins, reads v1 | v2 is applied, write ends | put v1:      the epoch moved at the end
//	fetch puts v1 | write begins:                                                    the beginning empties the tiers
//	two writes overlap, and each would put its own bytes as they end:                 neither may: nobody knows which came last
//
// So between the beginning of a write and its end the tiers hold nothing of the key, and afterwards nothing from before. That
// makes a failed write, and one of unknown outcome, like any other: the next read asks the store.
//
// For the same reason fetches are shared only within an epoch, and not at all during a write: else a reader that
// began after the write had returned, or after another reader had seen its effect, could be given what was there before.
//
// A hit takes no lock. It finds a head or it does not, and one that it found before a write began is of a read that began
// before that write returned.
type epochs struct {
	seed   maphash.Seed
	shards [64]shard
}

type shard struct {
	mu   sync.Mutex
	keys map[string]*state
}

// state is guarded by the lock of its shard. It is dropped with its last user, so that nothing stays of keys that have left.
type state struct {
	*shard
	key     string
	users   int
	writers int
	epoch   uint64
	flights map[request]*flight // of this epoch, which others may join
}

func newEpochs() *epochs {
	e := &epochs{seed: maphash.MakeSeed()}
	for i := range e.shards {
		e.shards[i].keys = make(map[string]*state)
	}
	return e
}

// lock returns the state of key with its shard locked, and one user more.
func (e *epochs) lock(key string) *state {
	sh := &e.shards[maphash.String(e.seed, key)%uint64(len(e.shards))]
	sh.mu.Lock()
	s := sh.keys[key]
	if s == nil {
		s = &state{shard: sh, key: key}
		sh.keys[key] = s
	}
	s.users++
	return s
}

// leaveLocked gives up one use. The caller holds the lock.
func (s *state) leaveLocked() {
	if s.users--; s.users == 0 {
		delete(s.keys, s.key)
	}
}

// turnLocked begins a new epoch. The caller holds the lock.
func (s *state) turnLocked() {
	s.epoch++
	s.flights = nil
}

// watch is a use of a key's state that remembers the epoch in which it began.
type watch struct {
	s     *state
	epoch uint64
}

func (e *epochs) watch(key string) watch {
	s := e.lock(key)
	defer s.mu.Unlock()
	return watch{s, s.epoch}
}

// end ends the watch, and before that calls put if nothing was written since it began.
func (w watch) end(put func()) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.s.writers == 0 && w.s.epoch == w.epoch {
		put()
	}
	w.s.leaveLocked()
}

// begin begins a write of key; empty is called under the lock.
func (e *epochs) begin(key string, empty func()) watch {
	s := e.lock(key)
	defer s.mu.Unlock()
	s.writers++
	s.turnLocked()
	empty()
	return watch{s, s.epoch}
}

// written ends a write. put, if not nil, is called under the lock if no other write of the key overlapped.
func (w watch) written(put func()) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if put != nil && w.s.writers == 1 && w.s.epoch == w.epoch {
		put()
	}
	w.s.turnLocked()
	w.s.writers--
	w.s.leaveLocked()
}
