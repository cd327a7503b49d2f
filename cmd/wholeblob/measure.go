package main

import (
	"runtime"
	"time"

	"github.com/wholeblob/wholeblob/retry"
)

// measurement is a phase that runs.
type measurement struct {
	r     *runner
	row   *Phase
	start time.Time
	cpu   time.Duration
	tries retry.Counts
}

func (r *runner) measure(phase string, size int64) *measurement {
	runtime.GC() // the buffers of the phase before are not this one's to collect, nor part of its memory
	return &measurement{
		r:     r,
		row:   &Phase{Phase: phase, Size: size},
		start: time.Now(),
		cpu:   processCPU(),
		tries: r.counters.Snapshot(),
	}
}

// end adds the phase to the report. The workers have ended.
func (m *measurement) end(workers []worker, errs int64) *Phase {
	wall, cpu, tries := time.Since(m.start), processCPU()-m.cpu, m.r.counters.Snapshot()
	var samples []time.Duration
	var contentWall, contentCPU time.Duration
	var buffers int64
	row := m.row
	for i := range workers {
		w := &workers[i]
		samples = append(samples, w.samples...)
		row.Bytes += w.bytes
		contentWall += w.contentWall
		contentCPU += w.contentCPU
		buffers += int64(len(w.buf))
	}
	// A worker that makes or checks content has no operation in flight, so the phase took as much longer
	// as the average worker spent on that.
	wall -= contentWall / time.Duration(len(workers))
	cpu = max(cpu-contentCPU, 0)

	row.Ops = int64(len(samples))
	for _, d := range samples {
		row.OpSeconds += d.Seconds()
	}
	row.Errors = errs
	row.Seconds = wall.Seconds()
	row.OpsPerS = perSecond(float64(row.Ops), wall)
	row.MiBPerS = perSecond(float64(row.Bytes)/(1<<20), wall)
	row.Latency = summarise(samples)
	row.Attempts = tries.Attempts - m.tries.Attempts
	row.Retries = retriesBetween(m.tries, tries)
	row.CPUSeconds = cpu.Seconds()
	row.CPUPerGiB = perGiB(cpu.Seconds(), row.Bytes)
	row.ContentSeconds = contentWall.Seconds()
	m.r.report.add(row, buffers)
	return row
}

func retriesBetween(a, b retry.Counts) Retries {
	return Retries{
		Throttled:   b.Throttled - a.Throttled,
		Unavailable: b.Unavailable - a.Unavailable,
		Timeout:     b.Timeout - a.Timeout,
		Truncated:   b.Truncated - a.Truncated,
		Corrupt:     b.Corrupt - a.Corrupt,
		Conflict:    b.Conflict - a.Conflict,
	}
}

func perGiB(x float64, bytes int64) float64 {
	if bytes == 0 {
		return 0
	}
	return x / (float64(bytes) / (1 << 30))
}
