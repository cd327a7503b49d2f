package diskcache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
)

const (
	shardCount = 256 // directories of a generation, named by the first byte of the hash of the keys in them

	tempPrefix = "tmp-"
)

// keyHash names a key on disk and in the index: the first half of its SHA-256. The header has the key itself.
type keyHash [16]byte

func hashKey(key string) (h keyHash) {
	sum := sha256.Sum256([]byte(key))
	copy(h[:], sum[:])
	return h
}

// hashVersion tells versions apart by name; the header has the version itself.
func hashVersion(version string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(version)) // a hash never fails
	return h.Sum64()
}

// run is one file: the bytes [off, off+length) of one version of an object. About 200 bytes of memory with
// its share of the map and of its object.
type run struct {
	hash        keyHash
	ver         uint64
	off, length int64
	seq         uint64 // makes the name unlike any other: a name is never used twice
	foot        int64  // bytes of disk
	born        int64  // when it was written, in nanoseconds since 1970

	prev, next *run // in the sieve, guarded by its lock

	// No run before this one in its object, nor this one, ends later. Guarded by the shard's lock.
	reach int64

	// Beside each other, for their size: there may be millions of runs.
	listed  bool        // in the sieve, guarded by its lock
	dead    bool        // guarded by the shard's lock: found by no read, its file about to go
	visited atomic.Bool // read since the sieve's hand last came by
}

func (r *run) end() int64 { return r.off + r.length }

// name is the name of the run's file.
func (r *run) name() string {
	return fmt.Sprintf("%x-%016x-%x-%x-%x", r.hash, r.ver, r.off, r.length, r.seq)
}

// parseName is the inverse of name; only what name writes is accepted.
func parseName(name string) (*run, bool) {
	p := strings.Split(name, "-")
	if len(p) != 5 || len(p[0]) != 2*len(keyHash{}) {
		return nil, false
	}
	r := &run{}
	if _, err := hex.Decode(r.hash[:], []byte(p[0])); err != nil {
		return nil, false
	}
	var err [4]error
	r.ver, err[0] = strconv.ParseUint(p[1], 16, 64)
	r.off, err[1] = strconv.ParseInt(p[2], 16, 64)
	r.length, err[2] = strconv.ParseInt(p[3], 16, 64)
	r.seq, err[3] = strconv.ParseUint(p[4], 16, 64)
	for _, e := range err {
		if e != nil {
			return nil, false
		}
	}
	return r, r.off >= 0 && r.length >= 0 && r.end() >= r.off && r.name() == name
}

// footprint is what a file of n bytes takes of the disk: whole file-system blocks.
func footprint(n int64) int64 { return (n + page - 1) &^ (page - 1) }

// object is what is known of a key: runs of one version, ordered by offset.
type object struct {
	ver  uint64
	runs []*run
	said *blob.Info // nil if the headers say it all, as far as is known; unsaid if they do not; otherwise what was learned
}

// unsaid stands for what nobody has said yet.
var unsaid = new(blob.Info)

// covers reports whether live runs hold all of [off, end).
func (o *object) covers(off, end int64) bool {
	for first := true; first || off < end; first = false {
		r := o.find(off)
		if r == nil || r.length == 0 {
			return r != nil && off == end
		}
		off = r.end()
	}
	return true
}

// find returns the live run that holds the byte at off and most after it. For an empty object it is the only one.
func (o *object) find(off int64) *run {
	var best *run
	i, _ := slices.BinarySearchFunc(o.runs, off, func(r *run, off int64) int {
		if r.off > off {
			return 1
		}
		return -1
	})
	// An object may have thousands of runs: only those are looked at that reach off, or lie behind one that does.
	for i--; i >= 0 && o.runs[i].reach >= off; i-- {
		r := o.runs[i]
		if !r.dead && (off < r.end() || r.length == 0) && (best == nil || r.end() > best.end()) {
			best = r
		}
	}
	return best
}

// insert adds r and returns the runs that it makes superfluous, dead from now on.
func (o *object) insert(r *run) (covered []*run) {
	for _, old := range o.runs {
		if !old.dead && r.off <= old.off && old.end() <= r.end() {
			old.dead = true
			covered = append(covered, old)
		}
	}
	at, _ := slices.BinarySearchFunc(o.runs, r, byOffset)
	o.runs = slices.Insert(o.runs, at, r)
	o.reached(at)
	return covered
}

// reached works out the reach of the runs from number i on.
func (o *object) reached(i int) {
	reach := int64(0)
	if i > 0 {
		reach = o.runs[i-1].reach
	}
	for _, r := range o.runs[i:] {
		reach = max(reach, r.end())
		r.reach = reach
	}
}

func byOffset(a, b *run) int {
	return cmp.Or(cmp.Compare(a.off, b.off), cmp.Compare(a.length, b.length))
}

// kill makes all runs dead and returns them, with those that were dead already: their files may still be there.
func (o *object) kill() []*run {
	if o == nil {
		return nil
	}
	for _, r := range o.runs {
		r.dead = true
	}
	return slices.Clone(o.runs)
}

// shard is a directory of entries and the part of the index that describes it.
//
// INVARIANT: while a shard is ready, each file in its directory that has an entry's name is in objects, or belongs to an item in
// pending that is being published. So what drop does not find there is not on disk either, and no crash can bring it back.
// That is why a file is removed first and forgotten then.
type shard struct {
	name string

	mu       sync.Mutex
	ready    bool          // objects is complete
	scanning chan struct{} // closed when the scan under way ends; nil if there is none
	dir      *os.Root      // once ready
	objects  map[keyHash]*object
	pending  map[keyHash][]*item // accepted by put and neither published nor given up
	removed  bool                // a file may have been removed and the directory not synced since
}

// generation is a generation: one directory with all shards, replaced as a whole when the tier can no longer vouch for it.
type generation struct {
	name   string
	root   *os.Root
	shards [shardCount]shard
	sieve  sieve

	indexed atomic.Bool
	foreign atomic.Int64 // names in the shards that are not ours
}

func newGen(name string, root *os.Root) *generation {
	g := &generation{name: name, root: root}
	for i := range g.shards {
		g.shards[i].name = fmt.Sprintf("%02x", i)
	}
	return g
}

func (g *generation) shard(h keyHash) *shard { return &g.shards[h[0]] }

// close gives up the open directories. Calls under way end with os.ErrClosed.
func (g *generation) close() {
	for i := range g.shards {
		sh := &g.shards[i]
		sh.mu.Lock()
		dir := sh.dir
		sh.mu.Unlock()
		if dir != nil {
			_ = dir.Close()
		}
	}
	_ = g.root.Close()
}

// find returns the live run that holds the byte at off of the version, and most after it.
func (sh *shard) find(h keyHash, ver uint64, off int64) *run {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	o := sh.objects[h]
	if o == nil || o.ver != ver {
		return nil
	}
	return o.find(off)
}

// any returns a live run of the key, and what was learned of the object since.
func (sh *shard) any(h keyHash) (*run, *blob.Info) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if o := sh.objects[h]; o != nil {
		for _, r := range o.runs {
			if !r.dead {
				return r, o.said
			}
		}
	}
	return nil, nil
}

// learn notes what was said of an object of which the headers do not say all, or that they do not.
func (sh *shard) learn(h keyHash, ver uint64, said *blob.Info) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if o := sh.objects[h]; o != nil && o.ver == ver && (o.said == nil) == (said == unsaid) {
		o.said = said
	}
}

// condemn makes r dead and reports whether it was not before.
func (sh *shard) condemn(r *run) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	was := r.dead
	r.dead = true
	return !was
}

// forget takes runs whose files are gone out of the index.
func (g *generation) forget(sh *shard, runs []*run) {
	sh.mu.Lock()
	for _, r := range runs {
		o := sh.objects[r.hash]
		if o == nil {
			continue
		}
		if i := slices.Index(o.runs, r); i >= 0 {
			o.runs = slices.Delete(o.runs, i, i+1)
		}
		if len(o.runs) == 0 {
			delete(sh.objects, r.hash)
		}
	}
	sh.mu.Unlock()
	g.sieve.remove(runs)
}
