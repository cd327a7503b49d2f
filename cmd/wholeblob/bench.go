package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
	"github.com/wholeblob/wholeblob/retry"
)

// The phases, in the order in which they run for each size.
const (
	phaseSet    = "set"
	phaseList   = "list"
	phaseGet    = "get"
	phaseDelete = "delete"
)

// listings is how many times the objects of a size are listed.
const listings = 3

// cleanupLimit is the time that deleting what is left, and closing the store, may take each after the run.
const cleanupLimit = time.Minute

// errFailed is the error of a run whose faults have been printed already.
var errFailed = errors.New("bench failed")

// bench runs the subcommand. Once a store is open, its objects are deleted and it is closed, whatever happens.
func (c command) bench(ctx context.Context, args []string) (err error) {
	conf, help, err := parseFlags(args)
	if err != nil {
		return err
	}
	if help != "" {
		_, err := io.WriteString(c.stdout, help)
		return err
	}
	t, err := c.target(conf)
	if err != nil {
		return err
	}
	if t.stop != nil {
		defer t.stop()
	}
	if err := t.setCache(conf); err != nil {
		return err
	}
	remove, err := t.ownCacheDir()
	if err != nil {
		return err
	}
	defer func() {
		if removeErr := remove(); removeErr != nil {
			err = errors.Join(err, removeErr)
		}
	}()
	if conf.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, conf.timeout, fmt.Errorf("--timeout of %v: %w", conf.timeout, context.DeadlineExceeded))
		defer cancel()
	}
	counters := new(retry.Counters)
	store, err := c.open(ctx, t.cfg, counters)
	if errors.Is(err, blob.ErrInvalidOption) {
		return usageError("opening %s: %w", t.name, err) // such as a region that is nowhere to be found
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", t.name, err)
	}
	return c.benchStore(ctx, conf, t, store, counters)
}

func (c command) target(conf benchFlags) (target, error) {
	if conf.url == "" {
		return embedded(conf)
	}
	return findStore(conf, c.environ)
}

func (c command) benchStore(ctx context.Context, conf benchFlags, t target, store blob.Blob, counters *retry.Counters) error {
	prefix := runPrefix()
	view, err := blob.Prefixed(store, prefix)
	if err != nil {
		return errors.Join(err, closeStore(ctx, store))
	}
	r := &runner{
		conf: conf, store: store, view: view, prefix: prefix, cache: t.cache, counters: counters,
		progress: newProgress(c.stderr, c.environ),
		report:   newReport(conf, t, store, prefix),
	}
	start := time.Now()
	err = r.run(ctx)
	r.report.finish(time.Since(start), counters.Snapshot())
	if errors.Is(err, errStopped) {
		err = fmt.Errorf("%w: %w", errStopped, context.Cause(ctx))
		fmt.Fprintf(c.stderr, "wholeblob: %v: cleaning up\n", err)
	}
	left := c.cleanUp(ctx, store, prefix)
	if err == nil && r.report.Errors == 0 && left.deleted > 0 {
		err = fmt.Errorf("the store still had %d objects after it had deleted them", left.deleted)
	}
	r.report.Left = left.names
	if err != nil {
		r.report.Fault = err.Error()
		errors.As(err, &r.report.Mismatch)
	}
	printErr := c.print(conf, r.report)
	if err == nil && left.err == nil && printErr == nil && r.report.Errors == 0 {
		return nil
	}
	c.explain(r.report, err, left.err, printErr)
	return errFailed
}

// runPrefix names a run: no two runs, wherever they are, share a key.
func runPrefix() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "wholeblob-bench-" + hex.EncodeToString(b[:]) + "/"
}

// print writes the report to stdout.
func (c command) print(conf benchFlags, r *Report) error {
	if conf.json {
		return r.writeJSON(c.stdout)
	}
	return r.writeTable(c.stdout)
}

// explain says on stderr why the run failed.
func (c command) explain(r *Report, errs ...error) {
	for _, f := range r.Failures {
		fmt.Fprintf(c.stderr, "wholeblob: %s %q: %s\n", f.Phase, f.Key, f.Error)
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, errStopped) { // that one has been said
			fmt.Fprintf(c.stderr, "wholeblob: %v\n", err)
		}
	}
}

// run goes through all sizes. It returns errStopped if ctx ended, a *Mismatch, or why it gave up;
// single operations that failed are in the report only.
func (r *runner) run(ctx context.Context) error {
	for _, size := range r.conf.sizes {
		if err := r.runSize(ctx, size); err != nil {
			var m *Mismatch
			if ctx.Err() != nil && !errors.As(err, &m) {
				return errStopped
			}
			return err
		}
	}
	return nil
}

func (r *runner) runSize(ctx context.Context, size int64) error {
	dir := param.FormatSize(size) + "/"
	all := makeObjects(size, dir, r.conf.countOf(size))
	there, err := r.phase(ctx, phaseSet, size, all, r.set)
	if err != nil {
		return err
	}
	if err := r.listPhase(ctx, size, dir, there, len(there) == len(all)); err != nil {
		return err
	}
	if _, err := r.phase(ctx, phaseGet, size, shuffled(there, r.conf.seed), r.getFrom(r.view, phaseGet)); err != nil {
		return err
	}
	if err := r.cachedReads(ctx, size, shuffled(there, r.conf.seed)); err != nil {
		return err
	}
	_, err = r.phase(ctx, phaseDelete, size, there, r.delete)
	return err
}

func (r *runner) set(ctx context.Context, w *worker, obj object) error {
	c := newContent(r.conf.seed, obj)
	src := blob.ReaderAt(c, obj.size)
	if r.conf.source == sourceBytes {
		buf := w.buffer(obj.size)
		w.content(func() { c.fill(buf, 0) })
		src = blob.Bytes(buf)
	}
	var info blob.Info
	err := w.timed(obj.size, func() (err error) {
		info, err = r.view.Set(ctx, obj.key, src, nil)
		return err
	})
	if err == nil && (info.Key != obj.key || info.Size != obj.size) {
		return r.wrong(phaseSet, obj, info)
	}
	return err
}

// getFrom reads through view, and compares what comes.
func (r *runner) getFrom(view blob.Blob, phase string) operation {
	return func(ctx context.Context, w *worker, obj object) error { return r.get(ctx, w, obj, view, phase) }
}

func (r *runner) get(ctx context.Context, w *worker, obj object, view blob.Blob, phase string) error {
	opts := new(blob.GetOptions)
	if r.conf.dst {
		opts.Dst = w.buffer(obj.size)
	}
	var got blob.Object
	err := w.timed(obj.size, func() (err error) {
		got, err = view.Get(ctx, obj.key, opts)
		return err
	})
	if err != nil {
		return err
	}
	if got.Key != obj.key || got.Size != obj.size || got.Offset != 0 {
		return r.wrong(phase, obj, got.Info)
	}
	if int64(len(got.Data)) != obj.size {
		return &Mismatch{
			Phase: phase, Key: obj.key, Offset: min(int64(len(got.Data)), obj.size),
			Want: fmt.Sprintf("%d bytes", obj.size), Got: fmt.Sprintf("%d bytes", len(got.Data)),
		}
	}
	c, at := newContent(r.conf.seed, obj), int64(-1)
	w.content(func() { at = c.check(got.Data) })
	if at >= 0 {
		return c.mismatch(phase, obj, got.Data, at)
	}
	return nil
}

func (r *runner) delete(ctx context.Context, w *worker, obj object) error {
	return w.timed(0, func() error { return r.view.Delete(ctx, obj.key, nil) })
}

// wrong is an Info that is not the object's.
func (r *runner) wrong(phase string, obj object, info blob.Info) *Mismatch {
	return &Mismatch{
		Phase: phase, Key: obj.key, Offset: -1,
		Want: fmt.Sprintf("%q of %d bytes", obj.key, obj.size), Got: fmt.Sprintf("%q of %d bytes", info.Key, info.Size),
	}
}
