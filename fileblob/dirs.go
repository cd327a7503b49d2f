package fileblob

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// chain is the open directories from the root down to one of its descendants.
type chain struct {
	dirs  []directory
	names []string // names[i] is the name of dirs[i+1]
}

func (c *chain) last() directory { return c.dirs[len(c.dirs)-1] }

// close closes all but the root, which is the store's. Nothing is written through a directory: the errors mean nothing.
func (c *chain) close() {
	for _, d := range c.dirs[1:] {
		_ = d.Close()
	}
}

// noChain is a chain of nothing but the root.
func (s *Store) noChain() *chain { return &chain{dirs: []directory{s.root}} }

// walk opens the directories called names, one below the other. On an error the chain ends with the
// last that could be opened. The caller closes the chain in any case.
func (s *Store) walk(names []string) (*chain, error) {
	c := s.noChain()
	for _, name := range names {
		d, err := c.last().Dir(name)
		if err != nil {
			return c, err
		}
		c.dirs, c.names = append(c.dirs, d), append(c.names, name)
	}
	return c, nil
}

// extend makes and opens what is missing below the chain. A directory that a concurrent delete prunes in between is fs.ErrNotExist.
func (c *chain) extend(names []string) error {
	for _, name := range names[len(c.names):] {
		if err := c.last().Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		d, err := c.last().Dir(name)
		if err != nil {
			return err
		}
		c.dirs, c.names = append(c.dirs, d), append(c.names, name)
	}
	return nil
}

func (s *Store) sync(d directory) error {
	if s.opts.NoSync {
		return nil
	}
	return d.Sync()
}

// makeDurable returns when a change in the last directory of the chain, which just happened, survives a crash, and
// with it the directory itself: the directories above are synced too, unless they are known to have been
// since it was made.
func (s *Store) makeDurable(c *chain) error {
	if s.opts.NoSync {
		return nil
	}
	d := c.last()
	if err := d.Sync(); err != nil {
		return err
	}
	info, err := d.Stat()
	if err != nil {
		return err
	}
	if len(c.dirs) == 1 || s.durable.has(c.names, info) {
		return nil
	}
	for i := len(c.dirs) - 2; i >= 0; i-- {
		if err := c.dirs[i].Sync(); err != nil {
			return err
		}
	}
	if s.durable.put(c.names, d, info) {
		c.dirs, c.names = c.dirs[:len(c.dirs)-1], c.names[:len(c.names)-1]
	}
	return nil
}

const maxDurable = 64

// durableDirs remembers directories whose own entry, and those of all above, have been synced since they were made.
//
// Finding a directory there proves nothing: another writer may have made it and not yet synced the one above, and may
// die before it does. And a path proves nothing: the directory may have been pruned and made again by another process. So a
// directory is remembered by its inode, which is held open so that its number cannot be given to another.
type durableDirs struct {
	mu struct {
		sync.Mutex
		dirs  map[string]durableDir
		order []string // oldest first
	}
}

type durableDir struct {
	dir  directory
	info os.FileInfo
}

// has reports whether the directory now found under names, described by info, is remembered, and still has a name: one that has been pruned
// is as durable as its removal, which only the directories above can tell.
func (r *durableDirs) has(names []string, info os.FileInfo) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.mu.dirs[strings.Join(names, "/")]
	return ok && os.SameFile(e.info, info) && linked(info)
}

// put remembers a directory and reports whether it took it over.
func (r *durableDirs) put(names []string, d directory, info os.FileInfo) bool {
	if !linked(info) {
		return false
	}
	path := strings.Join(names, "/")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.dirs == nil {
		r.mu.dirs = make(map[string]durableDir)
	}
	if old, ok := r.mu.dirs[path]; ok {
		_ = old.dir.Close()
	} else {
		r.mu.order = append(r.mu.order, path)
	}
	r.mu.dirs[path] = durableDir{dir: d, info: info}
	if len(r.mu.order) > maxDurable {
		oldest := r.mu.order[0]
		r.mu.order = append(r.mu.order[:0], r.mu.order[1:]...)
		_ = r.mu.dirs[oldest].dir.Close()
		delete(r.mu.dirs, oldest)
	}
	return true
}

func (r *durableDirs) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.mu.dirs {
		_ = e.dir.Close()
	}
	r.mu.dirs, r.mu.order = nil, nil
}
