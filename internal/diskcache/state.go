package diskcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

const (
	stateName    = "state"
	stateHead    = "wholeblob disk cache, state 1"
	genPrefix    = "gen-"
	tokenLen     = 32 // hex digits of blob.NewToken
	maxStateText = 1024
)

// stateRecord is the record of the directory: which generation counts, and whether its index can be trusted.
type stateRecord struct {
	gen   string // name of the directory
	boot  string // the run of the kernel it was written in
	clean bool   // the tier was closed in order
}

func (s stateRecord) String() string {
	end := "open"
	if s.clean {
		end = "closed"
	}
	return fmt.Sprintf("%s\ngeneration %s\nboot %s\n%s\n", stateHead, s.gen, s.boot, end)
}

func parseState(text string) (s stateRecord, ok bool) {
	lines := strings.Split(text, "\n")
	if len(lines) != 5 {
		return s, false
	}
	s.gen, _ = strings.CutPrefix(lines[1], "generation ")
	s.boot, _ = strings.CutPrefix(lines[2], "boot ")
	s.clean = lines[3] == "closed"
	return s, s.String() == text && isGenName(s.gen)
}

func isGenName(name string) bool {
	token, ok := strings.CutPrefix(name, genPrefix)
	return ok && len(token) == tokenLen && strings.Trim(token, "0123456789abcdef") == ""
}

// trusted reports whether no name that was removed can be back: the tier was closed in order, or the kernel that removed it
// still runs.
func (s stateRecord) trusted(boot string) bool { return s.clean || s.boot != "" && s.boot == boot }

// takeDir opens and locks the directory and the generation that counts. attach is held.
func (d *Tier) takeDir() (err error) {
	if err := d.fs.check("mkdir", "."); err != nil {
		return err
	}
	if err := os.MkdirAll(d.path, 0o777); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	lock, err := lockDir(d.fs, root, d.path)
	if err != nil {
		return errors.Join(err, root.Close())
	}
	d.attach.root, d.attach.lock = root, lock
	defer func() {
		if err != nil {
			d.leaveDir()
		}
	}()
	if !d.attach.had {
		text, _ := d.fs.readSmall(root, stateName, maxStateText) // unreadable: as if there were none
		if s, ok := parseState(string(text)); ok && s.trusted(d.o.boot()) {
			if dir, err := d.fs.openDir(root, s.gen); err == nil {
				g := newGen(s.gen, dir)
				for i := range g.shards {
					g.shards[i].removed = !s.clean // by a process that was killed, in whichever of them
				}
				return d.install(g)
			}
		}
	}
	return d.newGeneration()
}

func (d *Tier) leaveDir() {
	_ = d.attach.lock.Close()
	_ = d.attach.root.Close()
	d.attach.root, d.attach.lock = nil, nil
}

// renew starts a new generation, in a new directory if someone has removed the old one. attach is held.
func (d *Tier) renew() error {
	if d.attach.root != nil {
		err := d.newGeneration()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		d.leaveDir()
	}
	return d.takeDir()
}

func (d *Tier) newGeneration() error {
	name := genPrefix + blob.NewToken()
	if err := d.fs.mkdir(d.attach.root, name); err != nil {
		return err
	}
	dir, err := d.fs.openDir(d.attach.root, name)
	if err != nil {
		return err
	}
	g := newGen(name, dir)
	g.indexed.Store(true)
	err = d.install(g)
	if err != nil {
		_ = d.attach.root.Remove(name)
	}
	return err
}

// install makes g the generation that counts, durably and before anything in it is used: a drop that is to come must find that the
// record says "open".
func (d *Tier) install(g *generation) error {
	if err := d.writeState(stateRecord{gen: g.name, boot: d.o.boot()}); err != nil {
		return errors.Join(err, g.root.Close())
	}
	d.attach.had, d.attach.littered = true, true
	d.gen.Store(g)
	if !g.indexed.Load() {
		d.others.Go(func() { d.index(g) })
	}
	return nil
}

func (d *Tier) writeState(s stateRecord) error {
	temp, root := d.tempName(), d.attach.root
	if err := d.fs.create(root, temp, true, []byte(s.String())); err != nil {
		return err
	}
	if err := d.fs.rename(root, temp, stateName); err != nil {
		_ = root.Remove(temp)
		return err
	}
	return d.fs.syncDir(root)
}

// detach ends the session: all goroutines of the tier have ended, and all drops.
func (d *Tier) detach() error {
	d.drops.Lock()
	defer d.drops.Unlock()
	d.removeCondemned() // before the lock: a name that cannot be removed is a new generation
	d.attach.Lock()
	defer d.attach.Unlock()
	var err error
	g := d.gen.Load()
	switch {
	case g != nil:
		err = d.recordEnd(g)
	case d.attach.had: // what was to be given up may still be on record
		if err = d.renew(); err == nil {
			g = d.gen.Load()
		}
	}
	d.gen.Store(nil)
	d.handles.clear(true)
	if g != nil {
		d.n.foreign.Add(g.foreign.Load())
		g.close()
	}
	if d.attach.root != nil {
		d.leaveDir()
	}
	if err != nil {
		return fmt.Errorf("cache: close the disk tier in %s: %w", d.path, err)
	}
	return nil
}

// recordEnd makes all removals durable and says so in the record.
func (d *Tier) recordEnd(g *generation) error {
	for i := range g.shards {
		if err := d.syncShard(g, &g.shards[i]); err != nil {
			return err
		}
	}
	return d.writeState(stateRecord{gen: g.name, boot: d.o.boot(), clean: true})
}

// syncShard makes removals in sh durable, whether it has been scanned or not.
func (d *Tier) syncShard(g *generation, sh *shard) (err error) {
	sh.mu.Lock()
	removed, dir := sh.removed, sh.dir
	sh.mu.Unlock()
	if !removed {
		return nil
	}
	if dir == nil {
		dir, err = d.fs.openDir(g.root, sh.name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }()
	}
	return d.fs.syncDir(dir)
}
