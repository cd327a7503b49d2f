package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/config"
	"github.com/wholeblob/wholeblob/internal/param"
)

// The phases that read through a cache.
const (
	phaseCold = phaseGet + " cold" // it holds nothing yet
	phaseWarm = phaseGet + " warm" // the same cache once more
	phaseDisk = phaseGet + " disk" // another one with no memory, in the directory that the first has left
)

// What --cache was given.
const (
	cacheOn  = "on"
	cacheOff = "off"
)

// cacheSwitch is "" if --cache was not given: then the URL says whether there is a cache.
type cacheSwitch string

// String is the default in the help, too.
func (s *cacheSwitch) String() string {
	if *s == "" {
		return "as the URL says"
	}
	return string(*s)
}

// IsBoolFlag makes "--cache" mean "--cache=true" (package flag).
func (s *cacheSwitch) IsBoolFlag() bool { return true }

// Set implements flag.Value.
func (s *cacheSwitch) Set(text string) error {
	switch text {
	case "true", cacheOn:
		*s = cacheOn
	case "false", cacheOff:
		*s = cacheOff
	default:
		return errors.New("want on or off")
	}
	return nil
}

// defaultDisk is the capacity of the disk tier of --cache-dir: the largest of the default sizes is below an eighth of it.
const defaultDisk = "1GiB"

// parseStore reads the URL of the store with the settings of --cache-dir beside it, since what it says of the cache may be of no use without.
func (c benchFlags) parseStore() (config.Config, error) {
	const prefix = "BENCH_"
	settings := []string{prefix + "URL=" + c.url}
	for name, value := range c.diskSettings() {
		settings = append(settings, prefix+strings.ToUpper(name)+"="+value)
	}
	if u, err := param.ParseURL(c.url); err == nil && c.cacheDir != "" {
		for name := range u.Query.All() {
			if name == "cache_dir" || name == "cache_disk" {
				return config.Config{}, usageError("--cache-dir: %s is in the URL", name)
			}
		}
	}
	return config.ParseEnv(prefix, settings)
}

func (c benchFlags) diskSettings() map[string]string {
	if c.cacheDir == "" {
		return nil
	}
	return map[string]string{"cache_dir": c.cacheDir, "cache_disk": defaultDisk}
}

// setCache takes the cache out of the stack, if the command line wants none or wants one to compare with.
func (t *target) setCache(conf benchFlags) error {
	if conf.cache == "" {
		return nil
	}
	cfg, err := t.cfg.With(map[string]string{"cache": string(conf.cache)})
	if err != nil {
		return &badUsage{err}
	}
	t.cache = cfg.Cache()
	if t.cfg, err = cfg.With(map[string]string{"cache": cacheOff}); err != nil {
		return &badUsage{err}
	}
	return nil
}

// ownCacheDir gives the run a directory of its own in the cache's, so that the first read is cold and what others keep there stays. The
// caller calls remove at the end.
func (t *target) ownCacheDir() (remove func() error, err error) {
	if t.cache == nil || t.cache.Dir == "" {
		return func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp(t.cache.Dir, "wholeblob-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a directory in that of the cache (--cache-dir, or cache_dir in the URL): %w", err)
	}
	t.cache.Dir = dir
	return func() error {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("files of the cache are left behind: %w", err)
		}
		return nil
	}, nil
}

// CacheReads are what a cache did in a phase.
type CacheReads struct {
	MemoryHits int64   `json:"memory_hits"`
	DiskHits   int64   `json:"disk_hits"`
	Misses     int64   `json:"misses"`
	Bypassed   int64   `json:"bypassed"` // reads that the cache left to the store, such as those of objects that are too large for it
	NotKept    int64   `json:"not_kept"` // fetches, and writes to disk, whose result was dropped: no room in what may be in flight, or too large
	Speedup    float64 `json:"speedup"`  // how often an operation goes into one of the phase "get" of the same size, by their mean times
}

func readsBetween(a, b cache.Stats) *CacheReads {
	return &CacheReads{
		MemoryHits: b.MemoryHits - a.MemoryHits,
		DiskHits:   b.DiskHits - a.DiskHits,
		Misses:     b.Misses - a.Misses,
		Bypassed:   b.Bypassed - a.Bypassed,
		NotKept:    b.FillsSkipped + b.Disk.SkippedFills - a.FillsSkipped - a.Disk.SkippedFills,
	}
}

// cachedReads gets the objects again as each phase of a cache does, if there is one. The files of all sizes share the capacity of the disk tier; no
// two sizes share a key.
func (r *runner) cachedReads(ctx context.Context, size int64, objects []object) error {
	if r.cache == nil {
		return nil
	}
	o := *r.cache
	err := r.through(ctx, o, size, objects, phaseCold, phaseWarm)
	if err != nil || o.Dir == "" {
		return err
	}
	o.Memory = -1 // what comes from disk is not to be put there either: it is read once
	return r.through(ctx, o, size, objects, phaseDisk)
}

// through runs phases on one cache in front of the open store, as config would put it, and closes the cache, which writes to disk what is queued.
func (r *runner) through(ctx context.Context, o cache.Options, size int64, objects []object, phases ...string) (err error) {
	c, err := cache.New(ctx, unclosed{r.store}, &o)
	if err != nil {
		return fmt.Errorf("opening the cache: %w", err)
	}
	defer func() {
		if closeErr := closeStore(ctx, c); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("closing the cache: %w", closeErr))
		}
	}()
	view, err := blob.Prefixed(c, r.prefix)
	if err != nil {
		return err
	}
	for _, phase := range phases {
		before := c.Stats()
		_, err := r.phase(ctx, phase, size, objects, r.getFrom(view, phase))
		r.report.addCache(readsBetween(before, c.Stats()))
		if err != nil {
			return err
		}
	}
	return nil
}

// unclosed is a store that outlives the cache in front of it.
type unclosed struct{ blob.Blob }

func (unclosed) Close(context.Context) error { return nil }

// addCache adds to the last phase what the cache did in it. The speedup is not that of the throughput: a hit takes less time than the bench's own
// work on its bytes, and what is left of the wall time without that is then how long workers wait for a processor.
func (r *Report) addCache(reads *CacheReads) {
	row := r.Phases[len(r.Phases)-1]
	row.Cache = reads
	for _, p := range r.Phases {
		if p.Phase == phaseGet && p.Size == row.Size && row.mean() > 0 {
			reads.Speedup = p.mean() / row.mean()
		}
	}
}

// mean is the mean time of an operation in milliseconds.
func (p *Phase) mean() float64 {
	if p.Ops == 0 {
		return 0
	}
	return p.OpSeconds / float64(p.Ops) * 1000
}
