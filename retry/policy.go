// Package retry is the one retry loop of the project: Do runs one request until it succeeds,
// fails for good or runs out of attempts or time, and New puts the same loop around any
// blob.Blob that does not retry by itself. Nothing else in the project sleeps and tries again, and loops never
// multiply: New leaves a store with Capabilities().SelfRetrying alone, and an error that a loop gave up on is
// marked Exhausted, which no loop retries.
//
// What is retried is decided by an error's kind and outcome (blob.KindOf, blob.Error), never by its text.
package retry

import (
	"fmt"
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/wholeblob/wholeblob/blob"
)

// The words for "none", where zero means the default.
const (
	NoLimit  time.Duration = -1 // for Policy.Total and Policy.Attempt
	NoJitter float64       = -1 // for Policy.Jitter
)

// The defaults of Policy. Eight attempts sleep for up to 12.7 s, which outlasts a failover or a burst of
// SlowDown, and eight attempts that all run into DefaultAttempt still end before DefaultTotal.
const (
	DefaultFirstDelay = 100 * time.Millisecond
	DefaultFactor     = 2
	DefaultMaxDelay   = 20 * time.Second
	DefaultJitter     = 0.5
	DefaultAttempts   = 8
	DefaultTotal      = 5 * time.Minute
	DefaultAttempt    = 30 * time.Second
	DefaultMinRate    = 64 << 10 // what 16 parallel parts each get of a line of 10 Mbit/s, rounded down
)

// Policy says when to try again. The zero Policy is the default; Off is no retries at all.
type Policy struct {
	// FirstDelay is the delay before the second attempt. 0: 100 ms, or MaxDelay if that is less.
	FirstDelay time.Duration
	// Factor multiplies each delay into the next, at least 1. 0: 2.
	Factor float64
	// MaxDelay is the longest delay, unless the store asks for a longer one. 0: 20 s, or FirstDelay if that is more.
	MaxDelay time.Duration
	// Jitter is the share of every delay that is random, up to 1: a delay of d is
	// drawn from [d*(1-Jitter), d], so that clients that failed together do not come back together.
	// 0: 0.5. NoJitter: none.
	Jitter float64

	// Attempts is how many attempts may fail one after the other without progress. 0: 8. 1: never try again,
	// not after progress either.
	Attempts int
	// Total is the time after which no attempt begins, and attempts whose bytes are known are cut off. It grows with
	// the bytes of the call, see MinRate. No sleep that would reach beyond it is begun. 0: 5 min. NoLimit: none.
	Total time.Duration
	// Attempt is the time after which one attempt whose bytes are known is cut off and counts as
	// blob.ErrUnavailable. It grows with the bytes of the call, see MinRate. It must be less than Total, or one silent
	// connection would leave no time for a second try. 0: 30 s, or a quarter of Total if that is less. NoLimit: none.
	Attempt time.Duration
	// MinRate, in bytes per second, is the slowest transfer that is left alone: Attempt and Total are both extended by
	// the time that the bytes of the call take at this rate. 0: 64 KiB/s.
	MinRate int64

	// Counters counts what the loop does; many policies may share one. nil: nothing is counted.
	Counters *Counters
}

// Off returns the policy of one attempt without a limit of time.
func Off() Policy { return Policy{Attempts: 1, Total: NoLimit, Attempt: NoLimit} }

// WithDefaults returns p with each zero field replaced by its default.
func (p Policy) WithDefaults() Policy {
	if p.MaxDelay == 0 {
		p.MaxDelay = max(DefaultMaxDelay, p.FirstDelay)
	}
	if p.FirstDelay == 0 {
		p.FirstDelay = min(DefaultFirstDelay, p.MaxDelay)
	}
	if p.Factor == 0 {
		p.Factor = DefaultFactor
	}
	if p.Jitter == 0 {
		p.Jitter = DefaultJitter
	}
	if p.Attempts == 0 {
		p.Attempts = DefaultAttempts
	}
	if p.Total == 0 {
		p.Total = DefaultTotal
	}
	if p.Attempt == 0 {
		p.Attempt = DefaultAttempt
		if p.Total > 0 {
			p.Attempt = min(p.Attempt, p.Total/4)
		}
	}
	if p.MinRate == 0 {
		p.MinRate = DefaultMinRate
	}
	return p
}

// Check returns an error that matches blob.ErrInvalidOption and names the field, or nil.
func (p Policy) Check() error { return p.WithDefaults().check() }

func (p Policy) check() error {
	switch {
	case p.FirstDelay < 0:
		return invalid("FirstDelay", p.FirstDelay, "is negative")
	case p.MaxDelay < 0:
		return invalid("MaxDelay", p.MaxDelay, "is negative")
	case p.FirstDelay > p.MaxDelay:
		return invalid("FirstDelay", p.FirstDelay, fmt.Sprintf("is more than MaxDelay %v", p.MaxDelay))
	case !(p.Factor >= 1) || math.IsInf(p.Factor, 0): // the negation catches NaN
		return invalid("Factor", p.Factor, "is not a number of at least 1")
	case p.Jitter != NoJitter && !(p.Jitter >= 0 && p.Jitter <= 1):
		return invalid("Jitter", p.Jitter, "is neither within 0 to 1 nor NoJitter")
	case p.Attempts < 1:
		return invalid("Attempts", p.Attempts, "is negative")
	case p.Total < 0 && p.Total != NoLimit:
		return invalid("Total", p.Total, "is negative")
	case p.Attempt < 0 && p.Attempt != NoLimit:
		return invalid("Attempt", p.Attempt, "is negative")
	case p.Total != NoLimit && p.Attempt >= p.Total:
		return invalid("Attempt", p.Attempt, fmt.Sprintf("is not less than Total %v", p.Total))
	case p.MinRate < 1:
		return invalid("MinRate", p.MinRate, "is negative")
	}
	return nil
}

func invalid(field string, value any, why string) error {
	return blob.Invalid(blob.OpOpen, "", fmt.Errorf("%w: retry.Policy.%s %v %s", blob.ErrInvalidOption, field, value, why))
}

// jitter returns the share of a delay that is random.
func (p *Policy) jitter() float64 { return max(p.Jitter, 0) }

// delays returns the sequence of delays. backoff draws from around the middle of an interval and
// caps the middle only; the intervals are scaled so that what it draws is [d*(1-Jitter), d], and
// the cap is a cap without gathering those who reach it at one instant.
func (p *Policy) delays() *backoff.ExponentialBackOff {
	middle := 1 - p.jitter()/2
	b := &backoff.ExponentialBackOff{
		InitialInterval:     scale(p.FirstDelay, middle),
		RandomizationFactor: p.jitter() / 2 / middle,
		Multiplier:          p.Factor,
		MaxInterval:         scale(p.MaxDelay, middle),
		Stop:                backoff.Stop,
		Clock:               backoff.SystemClock,
	}
	b.Reset()
	return b
}

func scale(d time.Duration, by float64) time.Duration {
	if by == 1 {
		return d // exactly, and a float64 of the longest Duration would overflow
	}
	return max(1, time.Duration(float64(d)*by))
}

// extend returns limit and the time that bytes take at MinRate; NoLimit stays NoLimit.
func (p *Policy) extend(limit time.Duration, bytes int64) time.Duration {
	if limit == NoLimit || bytes <= 0 {
		return limit
	}
	grow := float64(bytes) / float64(p.MinRate) * float64(time.Second)
	if grow >= float64(math.MaxInt64-limit) {
		return NoLimit // longer than 292 years
	}
	return limit + time.Duration(grow)
}
