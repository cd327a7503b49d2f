package main

import (
	"math"
	"slices"
	"time"
)

// Latency summarises the operations that succeeded. Percentiles are exact: all samples are kept.
type Latency struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// summarise sorts samples.
func summarise(samples []time.Duration) Latency {
	slices.Sort(samples)
	return Latency{
		P50: millis(percentile(samples, 50)),
		P95: millis(percentile(samples, 95)),
		P99: millis(percentile(samples, 99)),
		Max: millis(percentile(samples, 100)),
	}
}

// percentile is the smallest sample that at least p per cent of all samples do not exceed (nearest
// rank), so it is always one that was measured. No samples: 0.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// perSecond is n by d, and 0 when nothing was measured.
func perSecond(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return n / d.Seconds()
}
