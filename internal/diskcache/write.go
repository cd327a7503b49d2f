package diskcache

import (
	"errors"
	"fmt"
)

// errPublish: a rename failed and nobody knows whether it took effect.
var errPublish = errors.New("an entry may have been published")

func (d *Tier) writeLoop(i int) {
	for {
		it, abandoned := d.queue.next(i)
		if it == nil {
			return
		}
		written := false
		if !abandoned && d.gen.Load() == it.g && !d.health.off.Load() {
			written = d.write(it)
		}
		if !written {
			d.n.skipped.Add(1)
		}
		d.queue.finished(it)
		it.g.shard(it.hash).unpend(it)
	}
}

// write writes the entry to a temporary file and publishes it. Nothing is synced: after a crash of the machine no entry of this
// session counts, and after an orderly end the checksums find what has not reached the disk.
func (d *Tier) write(it *item) bool {
	sh := it.g.shard(it.hash)
	if err := d.ready(it.g, sh); err != nil {
		d.writeFault(it.g, "index", err)
		return false
	}
	sh.mu.Lock()
	skip := it.cancelled || sh.onDisk(it)
	sh.mu.Unlock()
	if skip {
		return false
	}
	header, err := encodeHeader(&it.info, it.off, it.data, d.o.sumBlock)
	if err != nil {
		return false // strings longer than the format allows
	}
	temp := d.tempName()
	if err := d.fs.create(sh.dir, temp, false, header, it.data); err != nil {
		d.writeFault(it.g, "write", err)
		return false
	}
	size := int64(len(header) + len(it.data))
	r := &run{
		hash: it.hash, ver: it.ver, off: it.off, length: int64(len(it.data)), seq: d.seq.Add(1),
		foot: footprint(size), born: d.o.now().UnixNano(),
	}
	published, err := d.publish(it, sh, temp, r)
	if !published {
		if removeErr := d.fs.remove(sh.dir, temp); err == nil {
			err = removeErr
		}
	}
	if errors.Is(err, errPublish) {
		d.doom(it.g, "publish", err)
	} else if err != nil {
		d.writeFault(it.g, "publish", err)
	}
	if published {
		d.n.fills.Add(1)
		d.health.succeeded()
	}
	return published
}

// publish gives the file its name and shows it in the index.
//
// The interleavings with drop: a drop before the first lock has cancelled it; one between the locks waits for done and finds the run
// in the index; one after the second lock finds it there at once.
func (d *Tier) publish(it *item, sh *shard, temp string, r *run) (bool, error) {
	sh.mu.Lock()
	if it.cancelled {
		sh.mu.Unlock()
		return false, nil
	}
	it.publishing = true
	var other []*run
	if o := sh.objects[it.hash]; o != nil && o.ver != it.ver {
		other = o.kill()
	}
	sh.mu.Unlock()
	// One version of an object at a time: were two found at a start, nobody could tell which is the newer one.
	if !d.removeRuns(it.g, sh, other) {
		return false, nil
	}
	if err := d.fs.rename(sh.dir, temp, r.name()); err != nil {
		if removeErr := d.fs.remove(sh.dir, r.name()); removeErr != nil {
			err = fmt.Errorf("%w: %w; %w", errPublish, err, removeErr)
		}
		return false, err
	}
	sh.mu.Lock()
	o := sh.objects[it.hash]
	if o == nil || o.ver != it.ver {
		// Runs of the other version that a reader found damaged were in other too, so o is gone; a shard's objects are
		// changed to another version here only, and one key has one writer.
		o = &object{ver: it.ver}
		sh.objects[it.hash] = o
	}
	if o.said == nil && it.info.ModTime.IsZero() {
		o.said = unsaid
	}
	covered := o.insert(r)
	it.g.sieve.add(r) // before the lock ends: drop may take the run out at once
	sh.mu.Unlock()
	d.removeRuns(it.g, sh, covered)
	return true, nil
}
