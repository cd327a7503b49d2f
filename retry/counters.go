package retry

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// Counters counts what loops do. The zero value is ready; it may be shared and read at any time.
type Counters struct {
	calls, attempts, gaveUp, slept                                atomic.Int64
	throttled, unavailable, timeout, truncated, corrupt, conflict atomic.Int64
}

// Counts is what Counters counted until one moment. Attempts is Calls plus Retries, but for calls in flight.
type Counts struct {
	Calls    int64 // calls that began at least one attempt
	Attempts int64

	// Attempts after the first, by the failure that made them necessary.
	Throttled   int64
	Unavailable int64 // without Timeout
	Timeout     int64 // cut off by a limit of the policy
	Truncated   int64
	Corrupt     int64
	Conflict    int64

	GaveUp int64         // calls that ended in an error marked Exhausted by this loop
	Slept  time.Duration // the sum over all calls
}

// Retries returns the attempts after the first of each call.
func (c Counts) Retries() int64 {
	return c.Throttled + c.Unavailable + c.Timeout + c.Truncated + c.Corrupt + c.Conflict
}

// Snapshot returns the counts so far. That of a nil Counters is zero.
func (c *Counters) Snapshot() Counts {
	if c == nil {
		return Counts{}
	}
	return Counts{
		Calls:       c.calls.Load(),
		Attempts:    c.attempts.Load(),
		Throttled:   c.throttled.Load(),
		Unavailable: c.unavailable.Load(),
		Timeout:     c.timeout.Load(),
		Truncated:   c.truncated.Load(),
		Corrupt:     c.corrupt.Load(),
		Conflict:    c.conflict.Load(),
		GaveUp:      c.gaveUp.Load(),
		Slept:       time.Duration(c.slept.Load()),
	}
}

func (c *Counters) attempt(first bool) {
	if c == nil {
		return
	}
	if first {
		c.calls.Add(1)
	}
	c.attempts.Add(1)
}

func (c *Counters) retry(kind error, timeout bool) {
	if c == nil {
		return
	}
	switch {
	case timeout:
		c.timeout.Add(1)
	case errors.Is(kind, blob.ErrThrottled):
		c.throttled.Add(1)
	case errors.Is(kind, blob.ErrTruncated):
		c.truncated.Add(1)
	case errors.Is(kind, blob.ErrCorrupt):
		c.corrupt.Add(1)
	case errors.Is(kind, blob.ErrConflict):
		c.conflict.Add(1)
	default:
		c.unavailable.Add(1)
	}
}

func (c *Counters) giveUp() {
	if c != nil {
		c.gaveUp.Add(1)
	}
}

func (c *Counters) sleep(d time.Duration) {
	if c != nil {
		c.slept.Add(int64(d))
	}
}
