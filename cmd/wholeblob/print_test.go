package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTableLayout(t *testing.T) {
	r := &Report{
		Version: "wholeblob v1 go1 os/arch", Store: "s3", URL: "s3://bench", Embedded: true, Prefix: "wholeblob-bench-0/",
		Seed: 1, Concurrency: 8, Source: sourceBytes, CPUs: 2,
		Phases: []*Phase{
			{Phase: phaseSet, Size: 4096, Ops: 1000, Bytes: 4096000, MiBPerS: 9.876, OpsPerS: 2528.4, Latency: Latency{1.2345, 12.345, 123.45, 1234.5}, Attempts: 1003, Retries: Retries{Throttled: 2, Timeout: 1}, CPUPerGiB: 12.34},
			{Phase: phaseList, Size: 4096, Ops: 3, OpsPerS: 100, Latency: Latency{0.0012345, 0.012345, 0.12345, 9.999}, Attempts: 3},
			{Phase: phaseGet, Size: 64 << 20, Ops: 3, Bytes: 192 << 20, MiBPerS: 543.2, OpsPerS: 8.4, Latency: Latency{123, 123, 123, 123}, Attempts: 4, Errors: 1, CPUPerGiB: 0.5},
			{Phase: phaseDelete, Size: 64 << 20},
		},
		Seconds: 12.34, CPUPerGiB: 3.21, PeakRSS: 345 << 20, BufferBytes: 256 << 20, Errors: 1,
		Retries: Retries{Throttled: 2, Timeout: 1}, SleptSeconds: 0.25,
	}
	const want = `wholeblob v1 go1 os/arch: store "s3" at s3://bench
NOTE: this is the embedded fake S3 server, in memory of this process, over loopback: not a real store.
      Processor time and memory below are those of client and server together.
concurrency 8, 2 CPUs, seed 1, sets from bytes, gets into new memory, keys under "wholeblob-bench-0/"

   phase   size   ops  MiB/s  ops/s     p50     p95    p99    max  attempts  retries  errors  CPU s/GiB
     set   4KiB  1000   9.88   2528  1.23ms  12.3ms  123ms  1.23s      1003        3       0       12.3
    list   4KiB     3      -    100  1.23µs  12.3µs  123µs   10ms         3        0       0          -
     get  64MiB     3    543   8.40   123ms   123ms  123ms  123ms         4        0       1       0.50
  delete  64MiB     0      -      -       -       -      -      -         0        0       0          -

retries: throttled 2, timeout 1; slept 0.25 s between attempts
processor time: 3.21 s/GiB over sets and gets, without making and checking content
peak RSS: 345 MiB, of which the bench's own buffers up to 256 MiB
4 MiB written, 192 MiB read back and compared in 12.3 s: FAILED: 1 operations failed
`
	var b strings.Builder
	if err := r.writeTable(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}

func TestCacheTableLayout(t *testing.T) {
	r := &Report{
		Version: "wholeblob v1 go1 os/arch", Store: "file", URL: "file:///d", Prefix: "wholeblob-bench-0/", Cached: true,
		Seed: 1, Concurrency: 8, Source: sourceBytes, Dst: true, CPUs: 2,
	}
	r.add(&Phase{Phase: phaseSet, Size: 4096, Ops: 1000, Bytes: 4096000, OpSeconds: 9, Attempts: 1000}, 0)
	r.add(&Phase{Phase: phaseGet, Size: 4096, Ops: 1000, Bytes: 4096000, MiBPerS: 9.876, OpSeconds: 2, Attempts: 1001}, 0)
	r.add(&Phase{Phase: phaseCold, Size: 4096, Ops: 1000, Bytes: 4096000, MiBPerS: 9, OpSeconds: 2.5, Attempts: 1000}, 0)
	r.addCache(&CacheReads{Misses: 998, Bypassed: 2, NotKept: 1})
	r.add(&Phase{Phase: phaseWarm, Size: 4096, Ops: 1000, Bytes: 4096000, MiBPerS: 12345, OpSeconds: 0.002, Attempts: 2}, 0)
	r.addCache(&CacheReads{MemoryHits: 998, Misses: 2})
	r.add(&Phase{Phase: phaseDisk, Size: 4096, Ops: 1000, Bytes: 4096000, MiBPerS: 98.76, OpSeconds: 0.05}, 0)
	r.addCache(&CacheReads{DiskHits: 1000})
	r.add(&Phase{Phase: phaseGet, Size: 64 << 20, Ops: 1, Bytes: 64 << 20, MiBPerS: 500, OpSeconds: 4, Attempts: 8}, 0)
	r.add(&Phase{Phase: phaseCold, Size: 64 << 20}, 0)
	r.addCache(&CacheReads{})
	const note = `
NOTE: reads go through the cache that the URL asks for, and sets fill it. --cache shows both ways, --cache=off the store alone.
`
	const want = `
reads without a cache and through one; requests are those that the store got, speedups are of the mean time:
     phase   size   ops  MiB/s   mean  speedup  requests  memory hits  disk hits  misses  bypassed  not kept
       get   4KiB  1000   9.88    2ms        -      1001            -          -       -         -         -
  get cold   4KiB  1000   9.00  2.5ms     0.80      1000            0          0     998         2         1
  get warm   4KiB  1000  12345    2µs     1000         2          998          0       2         0         0
  get disk   4KiB  1000   98.8   50µs     40.0         0            0       1000       0         0         0
       get  64MiB     1    500     4s        -         8            -          -       -         -         -
  get cold  64MiB     0      -      -        -         0            0          0       0         0         0

retries: none;`
	var b strings.Builder
	if err := r.writeTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{note, want, "\n4 MiB written, 80 MiB read back and compared"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got\n%s\nwant in it\n%s", &b, want)
		}
	}
}

func TestPercentilesAreSamples(t *testing.T) {
	var samples []time.Duration
	for i := range 100 {
		samples = append(samples, time.Duration(100-i)*time.Millisecond)
	}
	if got, want := summarise(samples), (Latency{50, 95, 99, 100}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := summarise([]time.Duration{3, 1e6, 2}), (Latency{3e-6, 1, 1, 1}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := summarise(nil); got != (Latency{}) {
		t.Errorf("of nothing: %v", got)
	}
	if !slices.IsSorted(samples) {
		t.Error("summarise is documented to sort")
	}
}

func TestThroughputLeavesOutTheBenchsOwnWork(t *testing.T) {
	r := &runner{report: &Report{}}
	m := r.measure(phaseGet, 1)
	m.start = m.start.Add(-10 * time.Second)
	row := m.end([]worker{{contentWall: 4 * time.Second, bytes: 1 << 20}, {contentWall: 12 * time.Second}}, 0)
	if row.Seconds < 2 || row.Seconds > 9 || row.ContentSeconds != 16 || row.CPUSeconds < 0 {
		t.Errorf("10 s of wall time with 16 s of work by two workers: %+v", row)
	}
}

func TestResourcesAreMeasured(t *testing.T) {
	if processCPU() <= 0 || peakRSS() < 1<<20 {
		t.Errorf("processor time %v, peak RSS %d", processCPU(), peakRSS())
	}
	w := new(worker)
	w.content(func() {
		newContent(1, object{}).fill(make([]byte, 1<<20), 0)
	})
	if w.contentCPU <= 0 || w.contentWall <= 0 {
		t.Errorf("content took %v of processor time, %v of time", w.contentCPU, w.contentWall)
	}
}
