package diskcache

// condemnedRun is dead and its file waits to be removed.
type condemnedRun struct {
	g *generation
	r *run
}

// Drop forgets key. When it returns, no read finds what was put before, and what is queued of it will not be published; nor after a
// restart, whether this process ends in order or is killed.
//
// It does not wait for the disk: if the machine itself goes down, a removed name may come back, and with it bytes that were dropped. That is why
// the entries of a process that did not close the tier in order are given up when the machine has been started since.
//
// If the disk refuses to remove a name, all entries are given up instead (see doom).
func (d *Tier) Drop(key string) {
	d.drops.RLock()
	defer d.drops.RUnlock()
	g := d.forgetting()
	if g == nil {
		return
	}
	hash := hashKey(key)
	sh := g.shard(hash)
	if err := d.ready(g, sh); err != nil {
		d.doom(g, "index", err)
		return
	}
	d.removeRuns(g, sh, sh.take(hash))
}

// forgetting returns the generation; if there is none, the one on record may hold what is dropped now, and must not be used again.
func (d *Tier) forgetting() *generation {
	if g := d.gen.Load(); g != nil {
		return g
	}
	d.attach.Lock()
	defer d.attach.Unlock()
	g := d.gen.Load()
	if g == nil {
		d.attach.had = true
	}
	return g
}

// take cancels what is queued for the key, waits for what is being published, and returns all its runs, dead.
func (sh *shard) take(hash keyHash) []*run {
	for {
		sh.mu.Lock()
		var publishing chan struct{}
		for _, it := range sh.pending[hash] {
			if it.publishing {
				publishing = it.done
			} else {
				it.cancelled = true
			}
		}
		if publishing == nil {
			// Dead runs are among them: someone else may not have removed their files yet, and a crash would bring them back.
			runs := sh.objects[hash].kill()
			sh.mu.Unlock()
			return runs
		}
		sh.mu.Unlock()
		<-publishing // a rename away
	}
}

// removeRuns removes the files of runs, which are dead, and then forgets them. It reports false if the generation had to be given up.
func (d *Tier) removeRuns(g *generation, sh *shard, runs []*run) bool {
	if len(runs) == 0 {
		return true
	}
	sh.mu.Lock()
	sh.removed = true
	sh.mu.Unlock()
	for _, r := range runs {
		if err := d.fs.remove(sh.dir, r.name()); err != nil {
			d.doom(g, "remove", err)
			return false
		}
	}
	d.handles.forget(runs)
	g.forget(sh, runs)
	return true
}

func (d *Tier) removeCondemned() {
	d.condemned.serial.Lock()
	defer d.condemned.serial.Unlock()
	d.condemned.Lock()
	runs := d.condemned.runs
	d.condemned.runs = nil
	d.condemned.Unlock()
	for _, c := range runs {
		if d.gen.Load() == c.g {
			d.removeRuns(c.g, c.g.shard(c.r.hash), []*run{c.r})
		}
	}
}

// evict makes room: down to 95% of the size once it is exceeded, so that it does not run for every entry. Readers do
// not wait for it, and those in a file that goes keep it.
func (d *Tier) evict() {
	g := d.gen.Load()
	if g == nil || !g.indexed.Load() { // until then nobody knows which are the oldest
		return
	}
	if used, _ := g.sieve.size(); used+d.queue.reserved() <= d.o.Size {
		return
	}
	for {
		select {
		case <-d.stop:
			return
		default:
		}
		used, _ := g.sieve.size()
		r := g.sieve.victim()
		if r == nil || used+d.queue.reserved() <= d.o.Size/20*19 {
			return
		}
		sh := g.shard(r.hash)
		first := sh.condemn(r)
		if !d.removeRuns(g, sh, []*run{r}) {
			return
		}
		if first {
			d.n.evictions.Add(1)
		}
	}
}
