package diskcache

import (
	"errors"
	"io/fs"
	"os"

	"github.com/wholeblob/wholeblob/blob"
)

// Lookup returns what the tier knows of key. It finds entries that the scan at the start has not reached: a shard is read
// when it is first asked for. The metadata is read-only. Without a ModTime it is the Info of an entry that was put so, and of which nothing
// was learned since.
func (d *Tier) Lookup(key string) (blob.Info, bool) {
	g := d.gen.Load()
	if g == nil {
		return blob.Info{}, false
	}
	hash := hashKey(key)
	sh := g.shard(hash)
	if d.ready(g, sh) != nil {
		return blob.Info{}, false
	}
	for {
		r, said := sh.any(hash)
		if r == nil {
			break
		}
		if said != nil && said != unsaid && said.Key == key {
			return *said, true
		}
		h, again := d.acquire(g, sh, r)
		if h == nil {
			if again {
				continue
			}
			break
		}
		info := h.info
		d.handles.release(h)
		if info.Key != key {
			break
		}
		if info.ModTime.IsZero() {
			sh.learn(hash, r.ver, unsaid)
		}
		return info, true
	}
	return blob.Info{}, false
}

// Learn notes all that there is to say of an object, if the tier has entries of it that were put without a ModTime: until the process ends,
// Lookup returns this instead. It does no input or output.
func (d *Tier) Learn(info blob.Info) {
	g := d.gen.Load()
	if g == nil || info.ModTime.IsZero() {
		return
	}
	hash := hashKey(info.Key)
	g.shard(hash).learn(hash, hashVersion(info.Version), &info)
}

// Other reports whether the tier has key in another version than that one, or is about to. It does no input or output for a key that was
// looked up before.
func (d *Tier) Other(key, version string) bool {
	g := d.gen.Load()
	if g == nil {
		return false
	}
	hash, ver := hashKey(key), hashVersion(version)
	sh := g.shard(hash)
	if d.ready(g, sh) != nil {
		return true // nobody knows
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, it := range sh.pending[hash] {
		if it.ver != ver && !it.cancelled {
			return true
		}
	}
	o := sh.objects[hash]
	return o != nil && o.ver != ver
}

// Read fills dst with the bytes of key from off on, checked, if the tier has all of them of that version. It reports false
// otherwise; dst may then hold anything. It is one system call for each file, of which there are as many as there were puts.
func (d *Tier) Read(key, version string, off int64, dst []byte) bool {
	g := d.gen.Load()
	ok := g != nil && off >= 0 && d.readRuns(g, key, version, off, dst)
	if ok {
		d.n.hits.Add(1)
	} else {
		d.n.misses.Add(1)
	}
	return ok
}

func (d *Tier) readRuns(g *generation, key, version string, off int64, dst []byte) bool {
	hash, ver := hashKey(key), hashVersion(version)
	sh := g.shard(hash)
	if d.ready(g, sh) != nil {
		return false
	}
	for {
		r := sh.find(hash, ver, off)
		if r == nil {
			return false
		}
		h, again := d.acquire(g, sh, r)
		if h == nil {
			if again {
				continue
			}
			return false
		}
		n := min(int64(len(dst)), r.end()-off) // 0 for an empty object
		err := d.readRun(h, key, version, off, dst[:n])
		d.handles.release(h)
		if err != nil {
			d.damaged(g, sh, r, err)
			return false
		}
		r.visited.Store(true)
		if off, dst = off+n, dst[n:]; len(dst) == 0 || n == 0 {
			return len(dst) == 0
		}
	}
}

// errOtherKey: a different key with the same hash, or another version with the same one. The entry is good, but not for this reader.
var errOtherKey = errors.New("an entry of another key")

func (d *Tier) readRun(h *handle, key, version string, off int64, dst []byte) error {
	if !h.of(key, version) {
		return errOtherKey
	}
	if len(dst) == 0 {
		return nil
	}
	return d.readAt(h, off-h.off, dst)
}

// acquire returns the open file of r, to be released. A file that cannot be used is dropped; again tells that it is worth
// looking for another one.
func (d *Tier) acquire(g *generation, sh *shard, r *run) (h *handle, again bool) {
	if h := d.handles.get(r); h != nil {
		return h, false
	}
	h, err := d.openRun(sh.dir, r)
	if err != nil {
		return nil, d.damaged(g, sh, r, err)
	}
	h = d.handles.add(h)
	// Whoever removes a file marks the run first and then closes the handles there are. If that came before the line above,
	// the mark shows here; nobody would look for this handle again.
	sh.mu.Lock()
	dead := r.dead
	sh.mu.Unlock()
	if dead {
		d.handles.forget([]*run{r})
	}
	return h, false
}

// damaged drops r after err, which made it unusable, and reports whether the index is different now. The file is removed in the
// background, so that no reader waits for it.
func (d *Tier) damaged(g *generation, sh *shard, r *run, err error) (dropped bool) {
	switch {
	case tooManyFiles(err), errors.Is(err, os.ErrClosed), errors.Is(err, errOtherKey):
		return false // nothing is known of the file
	case !sh.condemn(r):
		return true // evicted or dropped in the meantime
	}
	d.n.damaged.Add(1)
	if !errors.Is(err, fs.ErrNotExist) && isDiskFault(err) {
		d.n.faults.Add(1)
	}
	d.log.Debug("disk cache: dropped a damaged entry", "dir", d.path, "file", g.name+"/"+sh.name+"/"+r.name(), "error", err)
	d.condemned.Lock()
	d.condemned.runs = append(d.condemned.runs, condemnedRun{g, r})
	d.condemned.Unlock()
	d.poke()
	return true
}
