package diskcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// healthState is the tier's state of being off: nothing is written until a probe finds the disk well again.
type healthState struct {
	off atomic.Bool
	now func() time.Time

	mu   sync.Mutex
	wait time.Duration // from the last fault to the next probe
	next time.Time     // the next probe
}

// succeeded ends the doubling: the disk has taken a whole entry, not just a probe.
func (h *healthState) succeeded() {
	if h.off.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait = 0
}

// again sets the next probe, twice as far away as the last, and returns the distance.
func (h *healthState) again() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait = min(max(2*h.wait, firstProbe), lastProbe)
	h.next = h.now().Add(h.wait)
	return h.wait
}

func (h *healthState) probeIn() (time.Duration, bool) {
	if !h.off.Load() {
		return 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.next.Sub(h.now())), true
}

// isDiskFault reports whether err is the state of a disk and not a mistake of whoever configured the tier.
func isDiskFault(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// byHand reports whether err is the work of someone who has removed a directory of the tier or put something else in its place: no state of the disk,
// and a new generation has what it lacks.
func byHand(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errForeign) }

// writeFault handles a failed write in g.
func (d *Tier) writeFault(g *generation, op string, err error) {
	switch {
	case d.gen.Load() != g || errors.Is(err, os.ErrClosed):
	case byHand(err):
		d.doom(g, op, err)
	default:
		d.turnOff(op, err)
	}
}

// turnOff stops writing until a probe succeeds. Entries are still read: each is checked.
func (d *Tier) turnOff(op string, err error) {
	d.n.faults.Add(1)
	if d.health.off.Swap(true) {
		return
	}
	d.n.timesOff.Add(1)
	wait := d.health.again()
	d.log.Warn("disk cache: off until the disk is well again", "dir", d.path, "op", op, "error", err, "next_look", wait)
	d.poke()
}

// probe looks whether the disk takes a file again.
func (d *Tier) probe() {
	err := d.tryWrite()
	if err != nil {
		d.n.faults.Add(1)
		d.health.again()
		return
	}
	d.health.off.Store(false)
	d.log.Info("disk cache: on again", "dir", d.path)
}

func (d *Tier) tryWrite() error {
	g := d.gen.Load()
	if g == nil {
		d.attach.Lock()
		defer d.attach.Unlock()
		return d.renew()
	}
	temp := d.tempName()
	err := d.fs.create(g.root, temp, true, make([]byte, page))
	if err == nil {
		err = d.fs.remove(g.root, temp)
	}
	if errors.Is(err, fs.ErrNotExist) {
		d.doom(g, "probe", err)
		if d.gen.Load() != nil {
			return nil
		}
	}
	return err
}

// doom gives up the whole generation g after err: its index no longer says what is on disk, or a name that must go could not be removed.
// A new one takes its place in the record of the directory at once, so that g is not found after a restart either. Only
// if the disk refuses that too, and this process is killed before it can do it, and the machine goes on, would the next process find
// g again.
func (d *Tier) doom(g *generation, op string, err error) {
	d.attach.Lock()
	defer d.attach.Unlock()
	if !d.gen.CompareAndSwap(g, nil) {
		return
	}
	d.n.resets.Add(1)
	d.handles.clear(false)
	g.close()
	d.n.foreign.Add(g.foreign.Load())
	if renewErr := d.renew(); renewErr != nil {
		d.turnOff(op, fmt.Errorf("all entries given up: %w; then %w", err, renewErr))
		return
	}
	if !byHand(err) { // it would do the same to the next entry
		d.turnOff(op, fmt.Errorf("all entries given up: %w", err))
		return
	}
	d.n.faults.Add(1)
	d.log.Warn("disk cache: all entries given up", "dir", d.path, "op", op, "error", err)
	d.poke()
}

// maintain evicts, removes what readers found damaged, and probes.
func (d *Tier) maintain() {
	timer := time.NewTimer(lastProbe)
	defer timer.Stop()
	for {
		var probe <-chan time.Time
		if wait, off := d.health.probeIn(); off {
			timer.Reset(wait)
			probe = timer.C
		}
		select {
		case <-d.stop:
			return
		case <-d.wake:
		case <-probe:
			d.probe()
		}
		d.removeCondemned()
		d.evict()
		d.sweep()
	}
}
