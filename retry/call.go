package retry

import (
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
)

// Effect says what one more attempt can do to what is stored.
type Effect uint8

const (
	// Once is a mutation that must not be tried again after an attempt whose outcome is Unknown: a conditional
	// one, which could meet its own work and take it for another's, or one the caller wants AtMostOnce. It is the zero
	// value, so that a call which nobody classified is never repeated blindly.
	Once Effect = iota
	// AtLeastOnce is a mutation that may be applied again.
	AtLeastOnce
	// None is an operation without an effect that anyone can see: a read, a listing, a part of an upload not
	// committed. All its errors are NotApplied.
	None
)

// Mutation returns the Effect of a Set or Delete with these options.
func Mutation(cond blob.Condition, atMostOnce bool) Effect {
	if atMostOnce || !cond.IsZero() {
		return Once
	}
	return AtLeastOnce
}

// Call describes what is tried.
type Call struct {
	Op    string // one of blob's Op constants, for errors
	Store string // for errors
	Key   string // for errors

	Effect Effect

	// Bytes is what an attempt transfers in both directions, at most; it extends the limits of time, see
	// Policy.MinRate. Negative: nobody knows. Then no attempt is cut off, however long it takes, and Policy.Total
	// only decides whether another begins.
	Bytes int64

	// Guarded says that fn bounds each of its attempts itself, by progress rather than by bytes: Policy.Attempt does not apply.
	// Policy.Total does, and cuts off the attempt that reaches it.
	Guarded bool

	// restart makes progress restart Policy.Total as well. It is for calls of many requests whose length only their
	// content bounds.
	restart bool
}

// Attempt is what a function run by Do may say about its current attempt. Its methods may be called
// by any number of goroutines until the function has returned.
type Attempt struct {
	number   int
	progress atomic.Bool
	final    atomic.Bool
}

// Number returns 1 for the first attempt.
func (a *Attempt) Number() int { return a.number }

// Progress tells the loop that this attempt brought the call forward, such as by bytes that the next attempt need
// not fetch again. If the attempt fails, the count of Policy.Attempts and the delays begin anew. Policy.Total goes on.
func (a *Attempt) Progress() { a.progress.Store(true) }

// Final tells the loop that the error of this attempt is not to be retried, whatever its kind: only the caller can
// know that what it would send again is gone.
func (a *Attempt) Final() { a.final.Store(true) }

func (a *Attempt) begin(number int) {
	a.number = number
	a.progress.Store(false)
	a.final.Store(false)
}
