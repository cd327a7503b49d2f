package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/internal/param"
	"github.com/wholeblob/wholeblob/retry"
)

// maxErrors is how many operations of a phase may fail before it is given up: enough to see
// a pattern, few enough that a dead store does not cost all its retries for every object.
const maxErrors = 10

// errStopped is the error of a run whose context ended.
var errStopped = errors.New("stopped")

// runner runs the phases one after the other, each with its own workers.
type runner struct {
	conf     benchFlags
	store    blob.Blob
	view     blob.Blob // the store below prefix
	prefix   string
	cache    *cache.Options // of the phases that read through one; nil: there are none
	counters *retry.Counters
	progress *progress
	report   *Report
}

// operation does one object. It measures itself with w and returns the store's error, or a *Mismatch.
type operation func(ctx context.Context, w *worker, obj object) error

// worker is what one goroutine of a phase keeps; nobody else touches it until the goroutine has ended.
type worker struct {
	buf         []byte
	samples     []time.Duration
	bytes       int64
	contentWall time.Duration // making and checking content
	contentCPU  time.Duration
}

// timed measures an operation of the store on n bytes. Those that fail are not measured: how long
// a failure takes says nothing about the store's speed.
func (w *worker) timed(n int64, op func() error) error {
	start := time.Now()
	if err := op(); err != nil {
		return err
	}
	w.samples = append(w.samples, time.Since(start))
	w.bytes += n
	return nil
}

// content runs the bench's own work, which is taken off the time and the processor time of the phase.
func (w *worker) content(work func()) {
	runtime.LockOSThread() // threadCPU before and after must be of one thread
	defer runtime.UnlockOSThread()
	start, cpu := time.Now(), threadCPU()
	work()
	w.contentCPU += threadCPU() - cpu
	w.contentWall += time.Since(start)
}

// buffer returns n bytes that stay the worker's for the next operation.
func (w *worker) buffer(n int64) []byte {
	if int64(len(w.buf)) < n {
		w.buf = make([]byte, n)
	}
	return w.buf[:n:n]
}

// phase runs op on all objects and adds a row to the report. It returns the objects on which op succeeded, in
// their order, and an error if the run must end: a *Mismatch, ctx's, or too many failures.
func (r *runner) phase(ctx context.Context, name string, size int64, objects []object, op operation) ([]object, error) {
	r.progress.start(fmt.Sprintf("%-8s %8s", name, param.FormatSize(size)), len(objects))
	defer r.progress.stop()
	m := r.measure(name, size)
	failed := &failures{phase: name, prefix: r.prefix, report: r.report}
	ok := make([]bool, len(objects)) // one element per index: no lock
	workers := make([]worker, min(r.conf.concurrency, max(len(objects), 1)))
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for i := range workers {
		w := &workers[i]
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(objects) {
					return nil
				}
				err := ctx.Err()
				if err == nil {
					err = op(ctx, w, objects[i])
				}
				if ok[i] = err == nil; !ok[i] {
					if err = failed.add(ctx, objects[i].key, err); err != nil {
						return err
					}
				}
				r.progress.step()
			}
		})
	}
	err := g.Wait()
	m.end(workers, failed.n)
	var done []object
	for i, obj := range objects {
		if ok[i] {
			done = append(done, obj)
		}
	}
	return done, err
}

// failures collects the operations of a phase that failed.
type failures struct {
	phase, prefix string
	report        *Report

	mu sync.Mutex
	n  int64
}

// add returns an error if the phase must end, and nil if it goes on. After the phase began to end, operations
// fail because of that, which is no fault of the store and not counted.
func (f *failures) add(ctx context.Context, key string, err error) error {
	var m *Mismatch
	if errors.As(err, &m) {
		m.Key = f.prefix + m.Key
		return m
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	f.report.fail(f.phase, f.prefix+key, err)
	if f.n >= maxErrors {
		return fmt.Errorf("%s given up after %d errors", f.phase, f.n)
	}
	return nil
}

// listPhase lists the objects and compares keys, order and sizes. exact is whether other keys are a mismatch too: not
// after a set failed, which may have taken effect all the same.
func (r *runner) listPhase(ctx context.Context, size int64, dir string, objects []object, exact bool) error {
	m := r.measure(phaseList, size)
	failed := &failures{phase: phaseList, prefix: r.prefix, report: r.report}
	w := make([]worker, 1)
	var err error
	for range listings {
		err = w[0].timed(0, func() error { return r.list(ctx, dir, objects, exact) })
		if err != nil {
			if err = failed.add(ctx, dir, err); err != nil {
				break
			}
		}
	}
	row := m.end(w, failed.n)
	row.Keys = int64(len(objects))
	return err
}

func (r *runner) list(ctx context.Context, dir string, objects []object, exact bool) error {
	rest := objects
	for info, err := range r.view.List(ctx, dir, nil) {
		if err != nil {
			return err
		}
		if len(rest) > 0 && info.Key == rest[0].key {
			if info.Size != rest[0].size {
				return r.wrong(phaseList, rest[0], info)
			}
			rest = rest[1:]
			continue
		}
		// Keys come in order, so a greater one means that the next object is missing.
		if len(rest) > 0 && info.Key > rest[0].key {
			return r.wrong(phaseList, rest[0], info)
		}
		if exact {
			return &Mismatch{Phase: phaseList, Key: info.Key, Offset: -1, Want: "no such key here", Got: fmt.Sprintf("%d bytes", info.Size)}
		}
	}
	if len(rest) > 0 {
		return &Mismatch{Phase: phaseList, Key: rest[0].key, Offset: -1, Want: fmt.Sprintf("%d bytes", rest[0].size), Got: "the end of the listing"}
	}
	return nil
}
