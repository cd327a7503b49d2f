package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/wholeblob/wholeblob/internal/param"
)

func (r *Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

func (r *Report) writeTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: store %q at %s\n", r.Version, r.Store, r.URL)
	if r.Embedded {
		b.WriteString("NOTE: this is the embedded fake S3 server, in memory of this process, over loopback: not a real store.\n" +
			"      Processor time and memory below are those of client and server together.\n")
	}
	if r.Cached {
		b.WriteString("NOTE: reads go through the cache that the URL asks for, and sets fill it. --cache shows both ways, --cache=off the store alone.\n")
	}
	dst := "new memory"
	if r.Dst {
		dst = "buffers used again"
	}
	fmt.Fprintf(&b, "concurrency %d, %d CPUs, seed %d, sets from %s, gets into %s, keys under %q\n\n", r.Concurrency, r.CPUs, r.Seed, r.Source, dst, r.Prefix)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "phase\tsize\tops\tMiB/s\tops/s\tp50\tp95\tp99\tmax\tattempts\tretries\terrors\tCPU s/GiB\t")
	for _, p := range r.Phases {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t\n",
			p.Phase, param.FormatSize(p.Size), p.Ops, number(p.MiBPerS), number(p.OpsPerS),
			latency(p.P50), latency(p.P95), latency(p.P99), latency(p.Max),
			p.Attempts, p.Retries.total(), p.Errors, number(p.CPUPerGiB))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := r.writeReads(&b); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\nretries: %s; slept %.2f s between attempts\n", r.Retries, r.SleptSeconds)
	fmt.Fprintf(&b, "processor time: %s s/GiB over sets and gets, without making and checking content\n", number(r.CPUPerGiB))
	fmt.Fprintf(&b, "peak RSS: %s, of which the bench's own buffers up to %s\n", mebibytes(r.PeakRSS), mebibytes(r.BufferBytes))
	fmt.Fprintf(&b, "%s in %.1f s: %s\n", moved(r), r.Seconds, r.verdict())
	_, err := io.WriteString(w, b.String())
	return err
}

// writeReads compares the gets without a cache with those through one, if there are any.
func (r *Report) writeReads(b *strings.Builder) error {
	if !slices.ContainsFunc(r.Phases, func(p *Phase) bool { return p.Cache != nil }) {
		return nil
	}
	b.WriteString("\nreads without a cache and through one; requests are those that the store got, speedups are of the mean time:\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "phase\tsize\tops\tMiB/s\tmean\tspeedup\trequests\tmemory hits\tdisk hits\tmisses\tbypassed\tnot kept\t")
	for _, p := range r.Phases {
		if p.Phase != phaseGet && p.Cache == nil {
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t", p.Phase, param.FormatSize(p.Size), p.Ops, number(p.MiBPerS), latency(p.mean()))
		if c := p.Cache; c == nil {
			fmt.Fprintf(t, "-\t%d\t-\t-\t-\t-\t-\t\n", p.Attempts)
		} else {
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", number(c.Speedup), p.Attempts, c.MemoryHits, c.DiskHits, c.Misses, c.Bypassed, c.NotKept)
		}
	}
	return t.Flush()
}

// moved says how many bytes were written and verified.
func moved(r *Report) string {
	var set, got int64
	for _, p := range r.Phases {
		switch {
		case p.Phase == phaseSet:
			set += p.Bytes
		case strings.HasPrefix(p.Phase, phaseGet):
			got += p.Bytes
		}
	}
	return fmt.Sprintf("%s written, %s read back and compared", mebibytes(set), mebibytes(got))
}

func (r *Report) verdict() string {
	switch {
	case r.Mismatch != nil:
		return "FAILED: the store gave wrong content"
	case r.Fault != "":
		return "FAILED: " + r.Fault
	case r.Errors > 0:
		return fmt.Sprintf("FAILED: %d operations failed", r.Errors)
	case len(r.Left) > 0:
		return fmt.Sprintf("FAILED: %d objects left behind", len(r.Left))
	}
	return "all correct, 0 errors"
}

// String lists the kinds that occurred.
func (r Retries) String() string {
	var parts []string
	for _, k := range r.kinds() {
		if k.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", k.name, k.n))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func (r Retries) total() int64 {
	var n int64
	for _, k := range r.kinds() {
		n += k.n
	}
	return n
}

type kindCount struct {
	name string
	n    int64
}

func (r Retries) kinds() []kindCount {
	return []kindCount{
		{"throttled", r.Throttled},
		{"unavailable", r.Unavailable},
		{"timeout", r.Timeout},
		{"truncated", r.Truncated},
		{"corrupt", r.Corrupt},
		{"conflict", r.Conflict},
	}
}

// number shows three digits or all whole ones; what was not measured, or does not apply, is "-".
func number(x float64) string {
	switch {
	case x == 0:
		return "-"
	case x < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// latency shows milliseconds with three digits.
func latency(ms float64) string {
	if ms == 0 {
		return "-"
	}
	d := time.Duration(ms * float64(time.Millisecond))
	unit := time.Nanosecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

func mebibytes(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 0, 64) + " MiB" }
