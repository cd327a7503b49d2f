package faultsweep

import (
	"fmt"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
	"github.com/wholeblob/wholeblob/retry"
)

// Sweep fails each request of each operation in every way, in the time and over the pipes of a bubble. A goroutine that does not end
// is a deadlock there.
func Sweep(t *testing.T, target *Target) {
	var all tally
	for _, op := range target.ops() {
		t.Run(op.name, func(t *testing.T) {
			var sum tally
			for _, m := range target.mishaps() {
				for _, p := range policies {
					sum.add(target.sweep(t, &op, m, p, true))
				}
			}
			t.Log(sum.String())
			all.add(sum)
		})
	}
	all.log(t)
}

// SweepTCP is the same over sockets, where an RST loses what was on its way, with the Store's own transport.
func SweepTCP(t *testing.T, target *Target) {
	var all tally
	for _, op := range target.ops() {
		if op.inBubble {
			continue
		}
		t.Run(op.name, func(t *testing.T) {
			for _, m := range target.mishaps() {
				if m.silent || m.fault.Cut != nil && m.fault.Cut.At != 100 {
					continue
				}
				for _, p := range policies {
					all.add(target.sweep(t, &op, m, p, false))
				}
			}
		})
	}
	all.log(t)
}

// SweepPairs fails two requests of one operation: a later failure never covers up what an earlier one left in doubt, and a clean-up that
// fails is owed.
func SweepPairs(t *testing.T, target *Target) {
	var all tally
	lost := mishap{name: "reset after", fault: fakehttp.Fault{After: fakehttp.Reset}, kinds: []error{blob.ErrUnavailable}, lost: true}
	refused := target.refusal()
	for _, op := range target.ops() {
		if op.commits == nil {
			continue
		}
		t.Run(op.name, func(t *testing.T) {
			for _, p := range policies {
				for _, first := range []mishap{lost, refused} {
					for i := range 12 {
						for j := i + 1; j < 40; j++ { // a batch that is refused becomes hundreds of requests
							r := target.newRun(&op, p, struck{first, i}, struck{refused, j})
							r.bubble(t)
							all.add(r.tally)
							if len(r.hits) < 2 {
								break
							}
						}
					}
				}
			}
		})
	}
	all.log(t)
}

// tally counts what a sweep did.
type tally struct{ runs, faults, surfaced, unknown, orphans int }

func (t *tally) add(u tally) {
	t.runs += u.runs
	t.faults += u.faults
	t.surfaced += u.surfaced
	t.unknown += u.unknown
	t.orphans += u.orphans
}

// log also makes sure that Target.Only has named an operation.
func (t *tally) log(tt *testing.T) {
	tt.Helper()
	if tt.Log("together:", t.String()); t.runs == 0 {
		tt.Error("nothing was swept")
	}
}

func (t *tally) String() string {
	return fmt.Sprintf("%d runs, %d faults injected, %d errors, %d of unknown outcome, %d uploads that nobody can name",
		t.runs, t.faults, t.surfaced, t.unknown, t.orphans)
}

type policy struct {
	name    string
	retries bool
	policy  retry.Policy
}

var policies = []policy{
	{"retried", true, retry.Policy{FirstDelay: time.Microsecond, MaxDelay: time.Millisecond, Attempts: 3, Attempt: 7 * time.Second}},
	{"not retried", false, retry.Policy{Attempts: 1, Attempt: 7 * time.Second, Total: time.Minute}},
}

// sweep fails request after request of op.
func (target *Target) sweep(t *testing.T, op *op, m mishap, p policy, bubble bool) (sum tally) {
	t.Helper()
	for i := 0; ; i++ {
		r := target.newRun(op, p, struck{m, i})
		if r.policy.Attempts == 1 && !m.silent {
			r.policy = retry.Off()
		}
		if bubble {
			r.bubble(t)
		} else {
			r.overTCP(t)
		}
		sum.add(r.tally)
		if len(r.hits) == 0 {
			if i < r.requests {
				t.Errorf("%s: only %d of %d requests were failed", r, i, r.requests)
			}
			return sum
		}
		if i > 50 {
			t.Fatalf("%s: no end", r)
		}
	}
}
