package main

import (
	"runtime"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// Report is the result of a run, and what --json prints. Numbers that could not be
// measured are 0. MiB and GiB are powers of 1024.
type Report struct {
	Version     string `json:"version"`  // of the command and of Go
	Store       string `json:"store"`    // short name: "memory", "file", "s3"
	URL         string `json:"url"`      // without parameters
	Embedded    bool   `json:"embedded"` // the store is the fake S3 server inside the process, not a real one
	Prefix      string `json:"prefix"`   // of all keys of the run
	Seed        uint64 `json:"seed"`
	Concurrency int    `json:"concurrency"`
	Source      string `json:"source"` // "bytes" or "readerat"
	Dst         bool   `json:"dst"`
	Cached      bool   `json:"cached"` // the whole run goes through a cache, since the URL asks for one and --cache was not given
	CPUs        int    `json:"cpus"`   // that Go uses

	Phases []*Phase `json:"phases"` // in the order in which they ran

	Seconds      float64 `json:"seconds"`        // of the whole run, without clean-up
	CPUPerGiB    float64 `json:"cpu_s_per_gib"`  // over the sets and gets
	PeakRSS      int64   `json:"peak_rss_bytes"` // of the process, with everything in it
	BufferBytes  int64   `json:"buffer_bytes"`   // the most that the bench's own buffers held of it
	Errors       int64   `json:"errors"`         // operations that failed, after their retries
	Retries      Retries `json:"retries"`        // of the whole run
	SleptSeconds float64 `json:"slept_s"`        // between attempts, added up over all operations

	Fault    string    `json:"fault,omitempty"`    // why the run ended early or is not to be trusted
	Failures []Failure `json:"failures,omitempty"` // after a few, their phase is given up
	Mismatch *Mismatch `json:"mismatch,omitempty"` // what ended the run, if that was wrong content
	Left     []string  `json:"left,omitempty"`     // keys that the clean-up could not delete
}

// Phase is one phase of one size.
type Phase struct {
	Phase   string  `json:"phase"`          // set, list, get, with --cache also "get cold", "get warm" and "get disk", and delete
	Size    int64   `json:"size"`           // of each object in bytes
	Ops     int64   `json:"ops"`            // that succeeded; of list: whole listings
	Keys    int64   `json:"keys,omitempty"` // of list: in each listing
	Bytes   int64   `json:"bytes"`          // that they moved
	Seconds float64 `json:"seconds"`        // wall time without the time in which the workers made and checked content
	MiBPerS float64 `json:"mib_per_s"`
	OpsPerS float64 `json:"ops_per_s"`
	Latency
	OpSeconds      float64 `json:"op_s"`     // in operations that succeeded, added up over the workers
	Attempts       int64   `json:"attempts"` // tries of operations, or of requests where one operation takes several
	Retries        Retries `json:"retries"`
	Errors         int64   `json:"errors"`
	CPUSeconds     float64 `json:"cpu_s"` // of the process, without making and checking content
	CPUPerGiB      float64 `json:"cpu_s_per_gib"`
	ContentSeconds float64 `json:"content_s"` // making and checking content, added up over the workers

	Cache *CacheReads `json:"cache,omitempty"` // of the phases that read through a cache
}

// Retries are attempts after the first, by the failure that made them necessary.
type Retries struct {
	Throttled   int64 `json:"throttled"`
	Unavailable int64 `json:"unavailable"`
	Timeout     int64 `json:"timeout"`
	Truncated   int64 `json:"truncated"`
	Corrupt     int64 `json:"corrupt"`
	Conflict    int64 `json:"conflict"`
}

// Failure is an operation that failed.
type Failure struct {
	Phase string `json:"phase"`
	Key   string `json:"key"`
	Error string `json:"error"`
}

func newReport(conf benchFlags, t target, store blob.Blob, prefix string) *Report {
	return &Report{
		Version: version(), Store: store.Capabilities().Store, URL: t.name, Embedded: t.embedded, Prefix: prefix,
		Seed: conf.seed, Concurrency: conf.concurrency, Source: conf.source, Dst: conf.dst, Cached: t.cfg.Cache() != nil, CPUs: runtime.GOMAXPROCS(0),
		Phases: []*Phase{},
	}
}

func (r *Report) fail(phase, key string, err error) {
	r.Errors++
	r.Failures = append(r.Failures, Failure{Phase: phase, Key: key, Error: err.Error()})
}

func (r *Report) add(row *Phase, buffers int64) {
	r.Phases = append(r.Phases, row)
	r.BufferBytes = max(r.BufferBytes, buffers)
}

// finish adds up the run. Listings and deletes move no bytes, so their processor time is in no sum.
func (r *Report) finish(wall time.Duration, tries retry.Counts) {
	var cpu float64
	var bytes int64
	for _, row := range r.Phases {
		if row.Bytes > 0 {
			cpu += row.CPUSeconds
			bytes += row.Bytes
		}
	}
	r.Seconds = wall.Seconds()
	r.CPUPerGiB = perGiB(cpu, bytes)
	r.PeakRSS = peakRSS()
	r.Retries = retriesBetween(retry.Counts{}, tries)
	r.SleptSeconds = tries.Slept.Seconds()
}
