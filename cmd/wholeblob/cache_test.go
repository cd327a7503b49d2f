package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/config"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/memblob"
	"github.com/wholeblob/wholeblob/retry"
)

// wantNothingIn fails the test unless dir is empty.
func wantNothingIn(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left in the directory: %v, %v", entries, err)
	}
}

// reads returns the rows of gets, by phase, of a report with one size.
func reads(r *Report) map[string]*Phase {
	rows := make(map[string]*Phase)
	for _, p := range r.Phases {
		if strings.HasPrefix(p.Phase, phaseGet) {
			rows[p.Phase] = p
		}
	}
	return rows
}

func TestBenchReadsColdAndWarm(t *testing.T) {
	const count = 10
	for _, size := range []string{"0", "1", "4095", "64KiB"} {
		for _, args := range [][]string{{}, {"--dst"}, {"--concurrency=1"}} {
			t.Run(size+strings.Join(args, " "), func(t *testing.T) {
				store, dir := memblob.New(nil), t.TempDir()
				o := runStore(t, t.Context(), store, append(args, "--json", "--cache", "--cache-dir", dir, "--count=10", "--sizes="+size)...)
				o.want(t, exitOK)
				r := parseReport(t, o)
				var phases []string
				for _, p := range r.Phases {
					phases = append(phases, p.Phase)
				}
				if want := []string{phaseSet, phaseList, phaseGet, phaseCold, phaseWarm, phaseDisk, phaseDelete}; !slices.Equal(phases, want) {
					t.Fatalf("phases %q, want %q", phases, want)
				}
				rows := reads(r)
				for phase, want := range map[string]struct {
					attempts int64
					cache    *CacheReads
				}{
					phaseGet:  {count, nil},
					phaseCold: {count, &CacheReads{Misses: count}},
					phaseWarm: {0, &CacheReads{MemoryHits: count}},
					phaseDisk: {0, &CacheReads{DiskHits: count}}, // and none from memory: it is another cache
				} {
					row := rows[phase]
					if row.Ops != count || row.Errors != 0 || row.Attempts != want.attempts || (row.Cache == nil) != (want.cache == nil) {
						t.Errorf("%s: %+v", phase, row)
						continue
					}
					if want.cache == nil {
						continue
					}
					if row.Cache.Speedup <= 0 {
						t.Errorf("%s: speedup %v", phase, row.Cache.Speedup)
					}
					got := *row.Cache
					if size == "0" && phase == phaseDisk { // an empty object is answered by what the index knows
						got.MemoryHits, got.DiskHits = got.DiskHits, got.MemoryHits
					}
					if got.Speedup = 0; got != *want.cache {
						t.Errorf("%s: %+v, want %+v", phase, got, want.cache)
					}
				}
				wantEmpty(t, store)
				wantNothingIn(t, dir)
			})
		}
	}
}

// Each size begins with an empty cache, and without a directory nothing is read from disk.
func TestEachSizeBeginsCold(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		args := []string{"--json", "--cache", "--count=5", "--sizes=1KiB,4KiB"}
		if dir != "" {
			args = append(args, "--cache-dir", dir)
		}
		o := runStore(t, t.Context(), memblob.New(nil), args...)
		o.want(t, exitOK)
		cold := 0
		for _, p := range parseReport(t, o).Phases {
			switch p.Phase {
			case phaseCold:
				if cold++; p.Cache.Misses != 5 || p.Attempts != 5 {
					t.Errorf("%+v %+v", p, p.Cache)
				}
			case phaseDisk:
				if dir == "" {
					t.Error("a phase of disk without a directory")
				}
			}
		}
		if cold != 2 {
			t.Errorf("%d cold phases", cold)
		}
	}
}

// The settings in the URL are the cache's, too.
func TestBenchTakesTheCachesSettingsFromTheURL(t *testing.T) {
	parent := t.TempDir()
	url := "mem://?cache_max_fill=1KiB&cache_disk=16MiB&cache_dir=" + filepath.ToSlash(parent)
	o := runWith(t, t.Context(), openStack, "bench", url, "--json", "--cache", "--count=5", "--sizes=4KiB")
	o.want(t, exitOK)
	rows := reads(parseReport(t, o))
	for _, phase := range []string{phaseCold, phaseWarm, phaseDisk} { // what is above cache_max_fill is not kept
		if row := rows[phase]; row == nil || row.Cache.MemoryHits+row.Cache.DiskHits != 0 || row.Attempts != 5 {
			t.Errorf("%s: %+v", phase, row)
		}
	}
	wantNothingIn(t, parent)
}

// A URL may ask for a cache on disk alone, and the command line for its directory.
func TestBenchOfACacheOnDiskAlone(t *testing.T) {
	parent := t.TempDir()
	o := runWith(t, t.Context(), openStack, "bench", "mem://?cache_memory=off", "--json", "--cache", "--cache-dir", parent, "--count=5", "--sizes=4KiB")
	o.want(t, exitOK)
	rows := reads(parseReport(t, o))
	for phase, want := range map[string]int64{phaseCold: 0, phaseDisk: 5} {
		if row := rows[phase]; row == nil || row.Cache.MemoryHits != 0 || row.Cache.DiskHits != want || row.Attempts != 5-want {
			t.Errorf("%s: %+v", phase, row)
		}
	}
	wantNothingIn(t, parent)
}

// What the store gives is compared on every way, and whatever ends the run, nothing stays in the directory.
func TestACachedRunThatFailsLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	gets := 0
	from := func(n int, change func(*blob.Object) error) func(blob.Object, error) (blob.Object, error) {
		return func(obj blob.Object, err error) (blob.Object, error) {
			if gets++; err == nil && gets >= n {
				err = change(&obj)
			}
			return obj, err
		}
	}
	for name, c := range map[string]struct {
		get  func(blob.Object, error) (blob.Object, error)
		want []string
	}{
		"corrupt when cold": {from(23, func(o *blob.Object) error {
			o.Data = slices.Clone(o.Data)
			o.Data[99] ^= 1
			return nil
		}), []string{"MISMATCH: get cold", "at byte 99", "wholeblob-bench-"}},
		"refused when cold": {from(21, func(o *blob.Object) error { return permission(blob.OpGet, o.Key) }), []string{"get cold given up after 10 errors"}},
		"stopped when cold": {from(25, func(*blob.Object) error {
			cancel(errors.New("Ctrl-C"))
			return &blob.Error{Op: blob.OpGet, Err: ctx.Err()}
		}), []string{"stopped: Ctrl-C", "deleted 20 objects"}},
	} {
		t.Run(name, func(t *testing.T) {
			gets = 0
			runCtx := t.Context()
			if name == "stopped when cold" {
				runCtx = ctx
			}
			mem, dir := memblob.New(nil), t.TempDir()
			o := runStore(t, runCtx, hooked{Blob: mem, get: c.get}, "--json", "--cache", "--cache-dir", dir, "--sizes=1KiB", "--count=20", "--concurrency=1")
			o.want(t, exitFail, c.want...)
			r := parseReport(t, o)
			if last := r.Phases[len(r.Phases)-1]; last.Phase != phaseCold || r.Fault == "" {
				t.Errorf("ended in %q: %s", last.Phase, r.Fault)
			}
			wantEmpty(t, mem)
			wantNothingIn(t, dir)
		})
	}
}

// opened runs bench and returns the Config that it opened.
func opened(t *testing.T, args ...string) (cfg config.Config, o outcome) {
	t.Helper()
	o = runWith(t, t.Context(), func(_ context.Context, c config.Config, counters *retry.Counters) (blob.Blob, error) {
		cfg = c
		return retry.New(memblob.New(nil), retry.Policy{Counters: counters})
	}, append([]string{"bench", "--sizes=1KiB", "--count=3"}, args...)...)
	o.want(t, exitOK)
	return cfg, o
}

// The switch keeps the cache out, whatever the URL says, and a comparison writes and reads without one first. Without the switch the URL counts, and the table
// says so.
func TestTheSwitchOfTheCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	url := "mem://?cache_disk=16MiB&cache_dir=" + filepath.ToSlash(dir)
	for _, c := range []struct {
		args           []string
		cached, phases bool
	}{
		{[]string{"mem://"}, false, false},
		{[]string{url}, true, false},
		{[]string{url, "--cache=off"}, false, false},
		{[]string{url, "--cache=false"}, false, false},
		{[]string{url, "--cache=on"}, false, true},
		{[]string{"mem://", "--cache=off"}, false, false},
		{[]string{"--cache", "mem://"}, false, true},
		{[]string{"--cache", "mem://?cache=off"}, false, true}, // the command line is nearer
	} {
		cfg, o := opened(t, c.args...)
		if got := cfg.Cache() != nil; got != c.cached {
			t.Errorf("%q opened with a cache: %v", c.args, got)
		}
		if got := strings.Contains(o.stdout, phaseWarm); got != c.phases {
			t.Errorf("%q has phases of a cache: %v", c.args, got)
		}
		if got := strings.Contains(o.stdout, "NOTE: reads go through the cache"); got != c.cached {
			t.Errorf("%q notes the cache: %v", c.args, got)
		}
	}
	wantNothingIn(t, dir)
}

// A directory that goes bad under the run is reported: when the cache cannot be opened in it, and when its files cannot be removed.
func TestACacheDirectoryThatGoesBad(t *testing.T) {
	for name, want := range map[string]string{"before the cache is opened": "opening the cache", "after it was closed": "files of the cache are left behind"} {
		t.Run(name, func(t *testing.T) {
			mem, dir := memblob.New(nil), filepath.Join(t.TempDir(), "cache")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			spoil := sync.OnceFunc(func() {
				if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
					t.Error(err)
				}
			})
			store := hooked{Blob: mem}
			if name == "after it was closed" {
				store.delete = func(string) error { spoil(); return nil }
			} else {
				store.list = func(info blob.Info) (blob.Info, bool) { spoil(); return info, true }
			}
			o := runStore(t, t.Context(), store, "--cache", "--cache-dir", dir, "--sizes=1KiB", "--count=5")
			o.want(t, exitFail, want)
			wantEmpty(t, mem)
		})
	}
}

func TestACacheDirectoryThatCannotBeUsedIsNamedBeforeTheRun(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	o := runStore(t, t.Context(), memblob.New(nil), "--cache", "--cache-dir", missing)
	o.want(t, exitFail, "--cache-dir", missing)
	if o.stdout != "" {
		t.Error("there is a report")
	}
}

// Requests are counted below the cache, by part of an object.
func TestColdReadsOverS3CostWhatReadsCost(t *testing.T) {
	onlyThese(t, fakes3.Credentials{})
	dir := t.TempDir()
	o := runWith(t, t.Context(), openStack, "bench", "--json", "--cache", "--cache-dir", dir, "--sizes=9MiB", "--count=3", "--concurrency=2")
	o.want(t, exitOK)
	rows := reads(parseReport(t, o))
	for phase, want := range map[string]int64{phaseGet: 6, phaseCold: 6, phaseWarm: 0, phaseDisk: 0} {
		if got := rows[phase].Attempts; got != want {
			t.Errorf("%s: %d requests, want %d", phase, got, want)
		}
	}
	wantNothingIn(t, dir)
}
