package diskcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// ready returns once the shard's part of the index is complete, and reads the directory if nobody has yet. That is a few hundred
// names for a tier of 100,000 entries.
func (d *Tier) ready(g *generation, sh *shard) error {
	for {
		sh.mu.Lock()
		if sh.ready {
			sh.mu.Unlock()
			return nil
		}
		if wait := sh.scanning; wait != nil {
			sh.mu.Unlock()
			<-wait
			continue
		}
		done := make(chan struct{})
		sh.scanning = done
		sh.mu.Unlock()

		err := d.scan(g, sh)
		sh.mu.Lock()
		sh.ready, sh.scanning = err == nil, nil
		sh.mu.Unlock()
		close(done)
		return err
	}
}

// scan reads the names in the shard's directory: an entry's name has all the index needs but the size of the file. Headers are read
// with the entry.
func (d *Tier) scan(g *generation, sh *shard) error {
	dir, err := d.fs.openDir(g.root, sh.name)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		if err = d.fs.mkdir(g.root, sh.name); err == nil {
			dir, err = d.fs.openDir(g.root, sh.name)
		}
	}
	if err != nil {
		return err
	}
	s := &shardScan{d: d, dir: dir, shard: sh.name, objects: map[keyHash]*object{}}
	if !fresh { // else it has no names; and a disk that lists none must not make the new generation unusable in turn
		if err := s.run(); err != nil {
			return errors.Join(err, dir.Close())
		}
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.dir, sh.objects, sh.removed = dir, s.objects, sh.removed || s.removed
	g.foreign.Add(s.foreign)
	for _, o := range s.objects {
		for _, r := range o.runs {
			g.sieve.add(r)
		}
	}
	return nil
}

// shardScan is the scan of one directory.
type shardScan struct {
	d       *Tier
	dir     *os.Root
	shard   string
	objects map[keyHash]*object
	mixed   []keyHash // objects with files of several versions
	foreign int64
	removed bool
}

func (s *shardScan) run() error {
	if err := s.d.fs.names(s.dir, s.visit); err != nil {
		return err
	}
	for _, h := range s.mixed {
		// A crash of an earlier program, or someone copied files: nobody can tell which version is the newer one.
		if err := s.discard(s.objects[h].runs...); err != nil {
			return err
		}
		delete(s.objects, h)
	}
	for _, o := range s.objects {
		slices.SortFunc(o.runs, byOffset)
		o.reached(0)
	}
	return nil
}

func (s *shardScan) visit(name string) error {
	r, ok := parseName(name)
	switch {
	case strings.HasPrefix(name, tempPrefix):
		return s.d.removeJunk(s.dir, name)
	case !ok || name[:2] != s.shard:
		s.foreign++
		return nil
	}
	info, err := s.d.fs.lstat(s.dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		s.foreign++
		return nil
	case !info.Mode().IsRegular() || r.length > maxRunLen || info.Size() < r.length+minHeader || info.Size() > r.length+maxHeader:
		return s.discard(r)
	}
	r.foot, r.born = footprint(info.Size()), info.ModTime().UnixNano()
	o := s.objects[r.hash]
	if o == nil {
		o = &object{ver: r.ver}
		s.objects[r.hash] = o
	}
	if o.ver != r.ver && !slices.Contains(s.mixed, r.hash) {
		s.mixed = append(s.mixed, r.hash)
	}
	o.runs = append(o.runs, r)
	return nil
}

// discard removes entries that cannot be served.
func (s *shardScan) discard(runs ...*run) error {
	for _, r := range runs {
		s.removed = true
		s.d.n.damaged.Add(1)
		if err := s.d.fs.remove(s.dir, r.name()); err != nil {
			return err
		}
	}
	return nil
}

func (d *Tier) ownTemp(name string) bool {
	return strings.HasPrefix(name, fmt.Sprintf("%s%016x-", tempPrefix, d.session))
}

// removeJunk removes a temporary file of a process that crashed. This one's are in use.
func (d *Tier) removeJunk(dir *os.Root, name string) error {
	if d.ownTemp(name) {
		return nil
	}
	if err := d.fs.remove(dir, name); err != nil {
		return err
	}
	d.n.junk.Add(1)
	return nil
}

// index finds all entries, one shard after the other.
func (d *Tier) index(g *generation) {
	for i := range g.shards {
		for {
			if d.stopping() != nil || d.gen.Load() != g {
				return
			}
			err := d.ready(g, &g.shards[i])
			if err == nil {
				break
			}
			if !tooManyFiles(err) {
				if !errors.Is(err, os.ErrClosed) {
					d.doom(g, "index", err)
				}
				return
			}
			select { // for others to close some
			case <-d.stop:
			case <-time.After(firstProbe):
			}
		}
	}
	g.sieve.order()
	g.indexed.Store(true)
	d.poke()
}

// sweep removes what is left of other generations, and temporary files outside the shards, if there may be any. What is in there and not
// the tier's stays, and so does the directory that holds it. What cannot be removed waits for the next start.
func (d *Tier) sweep() {
	d.attach.Lock()
	defer d.attach.Unlock()
	g, root := d.gen.Load(), d.attach.root
	if g == nil || !d.attach.littered {
		return
	}
	d.attach.littered = false
	_ = d.fs.names(g.root, func(name string) error {
		if strings.HasPrefix(name, tempPrefix) {
			_ = d.removeJunk(g.root, name)
		}
		return d.stopping()
	})
	_ = d.fs.names(root, func(name string) error {
		switch {
		case strings.HasPrefix(name, tempPrefix):
			_ = d.removeJunk(root, name)
		case isGenName(name) && name != g.name:
			d.sweepGeneration(root, name)
		}
		return d.stopping()
	})
}

// stopping is an error once the tier closes.
func (d *Tier) stopping() error {
	select {
	case <-d.stop:
		return os.ErrClosed
	default:
		return nil
	}
}

func (d *Tier) sweepGeneration(root *os.Root, name string) {
	gen, err := d.fs.openDir(root, name)
	if err != nil {
		return
	}
	defer func() { _ = gen.Close() }()
	_ = d.fs.names(gen, func(shard string) error {
		if strings.HasPrefix(shard, tempPrefix) {
			_ = d.removeJunk(gen, shard)
		}
		if len(shard) != 2 {
			return nil
		}
		dir, err := d.fs.openDir(gen, shard)
		if err != nil {
			return nil // it stays for the next start
		}
		defer func() { _ = dir.Close() }()
		_ = d.fs.names(dir, func(entry string) error {
			if _, ours := parseName(entry); ours {
				_ = d.fs.remove(dir, entry)
			} else if strings.HasPrefix(entry, tempPrefix) {
				_ = d.removeJunk(dir, entry)
			}
			return d.stopping()
		})
		_ = gen.Remove(shard) // fails if something is left
		return d.stopping()
	})
	_ = root.Remove(name)
}
