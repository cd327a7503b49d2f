package blobtest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// Action is what a Fault does to a call.
type Action uint8

const (
	// FailBefore fails the call; the inner store never sees it. The outcome is NotApplied.
	FailBefore Action = iota + 1
	// FailAfter lets the inner store do the call and loses its reply: a mutation has happened, and its error
	// says Unknown. A List fails after Fault.Keep elements.
	FailAfter
	// Throttle fails the call like FailBefore, with ErrThrottled and Fault.RetryAfter.
	Throttle
	// Truncate makes a broken store of the inner one: a read returns the first Fault.Keep bytes and no error, a Set
	// stores no more than those and reports success, a List ends cleanly after Fault.Keep elements.
	Truncate
	// Corrupt makes a broken store too: a read returns, or a Set stores, the bytes with one bit changed.
	Corrupt
	// Delay makes the call wait for Fault.Delay or Fault.Wait, or until its context is done, which
	// fails it with outcome NotApplied. Further faults apply to the call afterwards.
	Delay
)

// String returns the name of a.
func (a Action) String() string {
	switch a {
	case FailBefore:
		return "FailBefore"
	case FailAfter:
		return "FailAfter"
	case Throttle:
		return "Throttle"
	case Truncate:
		return "Truncate"
	case Corrupt:
		return "Corrupt"
	case Delay:
		return "Delay"
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// Fault says which calls go wrong, and how. Of several faults that match a call every Delay applies and the first of the
// others. A fault that means nothing to an operation, such as Truncate to a Stat, does not match it; nor does any
// match a call whose context is already done.
type Fault struct {
	Do Action

	// Op is the operation as in the Op constants of package blob. "": all but Close.
	Op string
	// Key says which keys match; the key of a List is its prefix. nil: all. See KeyIs. Each key of a DeleteAll
	// is a call by itself: the fault hits the keys that match and lets the others through, and a Delay holds up the whole once.
	Key func(key string) bool
	// Call is which of the calls that match Op and Key goes wrong, from 1. 0: each of them.
	Call int
	// Times is the most calls that go wrong. 0: no limit.
	Times int
	// Chance is the probability with which a call goes wrong. 0: certainly.
	//
	// Whether it does depends on nothing but the seed, the operation, the key, and how many calls of that operation on that key
	// came before: not on the order in which goroutines run.
	Chance float64

	// Err is the kind, or the cause, of the error of FailBefore and FailAfter. nil: blob.ErrUnavailable.
	Err error
	// RetryAfter is what a Throttle asks for. 0: it does not say.
	RetryAfter time.Duration
	// Keep is how much Truncate, and FailAfter of a List, let through, in bytes or elements. 0: all but the last; negative: none.
	Keep int64
	// Delay is how long a Delay waits.
	Delay time.Duration
	// Wait, if not nil, is what a Delay does instead: it returns when the call may go on, or ctx is done.
	Wait func(ctx context.Context, op, key string)
}

// KeyIs returns a Fault.Key that matches one key.
func KeyIs(key string) func(string) bool {
	return func(k string) bool { return k == key }
}

// Injected is a fault that was injected.
type Injected struct {
	Op, Key string
	Call    int   // of Op on Key, from 1
	Fault   Fault // the one that matched
}

// String names the call and what was done to it.
func (i Injected) String() string {
	return fmt.Sprintf("%s %q, call %d: %v", i.Op, i.Key, i.Call, i.Fault.Do)
}

// applies reports whether the action means anything for the operation.
func (f Fault) applies(op string) bool {
	switch f.Do {
	case Truncate:
		return op == blob.OpGet || op == blob.OpGetRanges || op == blob.OpSet || op == blob.OpList
	case Corrupt:
		return op == blob.OpGet || op == blob.OpGetRanges || op == blob.OpSet
	case FailBefore, FailAfter, Throttle, Delay:
		return true
	}
	return false
}

// keep returns how many of n are let through.
func (f Fault) keep(n int64) int64 {
	switch {
	case f.Keep < 0:
		return 0
	case f.Keep == 0:
		return max(n-1, 0)
	}
	return min(f.Keep, n)
}

// random returns a generator that depends on its arguments alone.
func random(seed uint64, fault int, op, key string, call int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s %d %s", fault, op, call, key)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// matches reports whether f is about op and key at all.
func (f Fault) matches(op, key string) bool {
	if f.Op != op && (f.Op != "" || op == blob.OpClose) {
		return false
	}
	return (f.Key == nil || f.Key(key)) && f.applies(op)
}

// failure returns the error of a call that f hits.
func (f Fault) failure(store, op, key string) error {
	e := &blob.Error{Op: op, Store: store, Key: key, Kind: blob.ErrUnavailable, Outcome: blob.NotApplied, Status: 503, Code: "InjectedFault", Attempts: 1}
	switch {
	case f.Do == Throttle:
		e.Kind, e.Code, e.RetryAfter = blob.ErrThrottled, "SlowDown", f.RetryAfter
	case f.Err != nil && blob.KindOf(f.Err) == f.Err: // a sentinel itself, not what wraps one
		e.Kind, e.Status = f.Err, 0
	case f.Err != nil:
		e.Kind, e.Err, e.Status = nil, f.Err, 0
	}
	if f.Do == FailAfter {
		e.Status, e.Code = 0, "" // a lost reply has none
		if blob.Mutates(op) {
			e.Outcome = blob.Unknown
		}
	}
	return e
}
