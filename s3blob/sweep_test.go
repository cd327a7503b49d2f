package s3blob_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

// Whichever request of whichever operation fails, and however: the operation ends in the right result or in an error that says what is
// known; nothing half-written is ever visible, no upload is left that Close does not name, and no goroutine, connection or
// request outlives Close. Each run fails request i, for i = 0, 1, 2 ... until the operation comes to its end before.
func TestFaultSweep(t *testing.T) {
	var all tally
	for _, op := range sweepOps() {
		t.Run(op.name, func(t *testing.T) {
			var sum tally
			for _, m := range mishaps() {
				for _, p := range sweepPolicies {
					sum.add(sweep(t, &op, m, p, true))
				}
			}
			t.Log(sum.String())
			all.add(sum)
		})
	}
	t.Log("together:", all.String())
}

// The same over sockets, where an RST loses what was on its way, with the Store's own transport.
func TestFaultSweepOverTCP(t *testing.T) {
	var all tally
	for _, op := range sweepOps() {
		if strings.Contains(op.name, "ReaderAt") {
			continue
		}
		t.Run(op.name, func(t *testing.T) {
			for _, m := range mishaps() {
				if m.silent || m.fault.Cut != nil && m.fault.Cut.At != 100 {
					continue
				}
				for _, p := range sweepPolicies {
					all.add(sweep(t, &op, m, p, false))
				}
			}
		})
	}
	t.Log(all.String())
}

// Two requests of one operation fail: a later failure never covers up what an earlier one left in doubt, and a clean-up that fails is
// owed.
func TestFaultSweepOfPairs(t *testing.T) {
	var all tally
	lost := mishap{name: "reset after", fault: fakes3.Fault{After: fakes3.Reset}, kinds: []error{blob.ErrUnavailable}, lost: true}
	refused := mishap{name: "403", fault: reply(403, "", 0), kinds: []error{blob.ErrPermission}, final: true}
	for _, op := range sweepOps() {
		if op.commits == nil {
			continue
		}
		t.Run(op.name, func(t *testing.T) {
			for _, p := range sweepPolicies {
				for _, first := range []mishap{lost, refused} {
					for i := range 12 {
						for j := i + 1; ; j++ {
							r := newRun(&op, p, struck{first, i}, struck{refused, j})
							r.inBubble(t)
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
	t.Log(all.String())
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

func (t *tally) String() string {
	return fmt.Sprintf("%d runs, %d faults injected, %d errors, %d of unknown outcome, %d uploads that only Sweep can find",
		t.runs, t.faults, t.surfaced, t.unknown, t.orphans)
}

type sweepPolicy struct {
	name    string
	retries bool
	policy  retry.Policy
}

var sweepPolicies = []sweepPolicy{
	{"retried", true, retry.Policy{FirstDelay: time.Microsecond, MaxDelay: time.Millisecond, Attempts: 3, Attempt: 7 * time.Second}},
	{"not retried", false, retry.Policy{Attempts: 1, Attempt: 7 * time.Second, Total: time.Minute}},
}

// sweep fails request after request of op.
func sweep(t *testing.T, op *sweepOp, m mishap, p sweepPolicy, bubble bool) (sum tally) {
	t.Helper()
	for i := 0; ; i++ {
		r := newRun(op, p, struck{m, i})
		if r.policy.Attempts == 1 && !m.silent {
			r.policy = retry.Off()
		}
		if bubble {
			r.inBubble(t)
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

// struck is a mishap of the request with index at.
type struck struct {
	mishap
	at int
}

type sweepHit struct {
	struck
	op string
}

// run is one run of an operation on a server of its own.
type run struct {
	op       *sweepOp
	name     string
	retries  bool
	policy   retry.Policy
	strikes  []struck
	hits     []sweepHit // written under the server's lock
	requests int        // of the operation itself
	tally    tally
}

func newRun(op *sweepOp, p sweepPolicy, strikes ...struck) *run {
	return &run{op: op, name: p.name, retries: p.retries, policy: p.policy, strikes: strikes}
}

func (r *run) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s", r.op.name, r.name)
	for _, s := range r.strikes {
		fmt.Fprintf(&b, ", %s of request %d", s.name, s.at)
	}
	for _, h := range r.hits {
		fmt.Fprintf(&b, ", a %s", h.op)
	}
	return b.String()
}

func (r *run) serverOptions() fakes3.Options {
	so := r.op.so
	so.Buckets = []string{"b"}
	return so
}

func (r *run) options(srv *fakes3.Server) *s3blob.Options {
	o := options(srv)
	small(o)
	o.Stall, o.Retry = 5*time.Second, r.policy
	if r.op.edit != nil {
		r.op.edit(o)
	}
	return o
}

// inBubble runs it in fake time. A goroutine that does not end is a deadlock there.
func (r *run) inBubble(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		so := r.serverOptions()
		so.InMemory = true
		srv := fakes3.New(so)
		defer srv.Close()
		tr := srv.Transport()
		defer tr.CloseIdleConnections()
		o := r.options(srv)
		o.Transport = tr
		r.do(t, srv, o, func() {
			synctest.Wait()
			if n := srv.InFlight(); n > 0 {
				t.Errorf("%s: %d requests in flight after Close", r, n)
			}
			tr.CloseIdleConnections()
			synctest.Wait()
			if n := srv.OpenConns(); n > 0 {
				t.Errorf("%s: %d connections open after Close", r, n)
			}
		})
	})
}

func (r *run) overTCP(t *testing.T) {
	t.Helper()
	srv := fakes3.New(r.serverOptions())
	defer srv.Close()
	r.do(t, srv, r.options(srv), func() {
		eventually(t, func() bool { return srv.InFlight() == 0 && srv.OpenConns() == 0 })
	})
}

// eventually waits for what other goroutines bring about. It looks now and then: a loop that yields would keep the runtime
// from polling the network.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for looks := 0; !ok(); looks++ {
		if looks > 100_000 {
			t.Fatal("waited in vain")
		}
		<-tick.C
	}
}

// do runs the operation, closes the store, and judges what is left.
func (r *run) do(t *testing.T, srv *fakes3.Server, o *s3blob.Options, closed func()) {
	t.Helper()
	st, err := s3blob.New(t.Context(), "b", o)
	if err == nil && r.op.setup != nil {
		err = r.op.setup(srv)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.strikes {
		n := 0
		s.fault.Match = func(q *fakes3.Request) bool {
			n++
			if n != s.at+1 {
				return false
			}
			r.hits = append(r.hits, sweepHit{s, q.Op})
			return true
		}
		srv.Inject(s.fault)
	}
	srv.ResetLog()
	err = r.op.run(t.Context(), srv, st)
	r.requests = len(srv.Log())
	closeErr := st.Close(t.Context())
	closed()
	srv.ClearFaults()
	r.tally.runs, r.tally.faults = 1, len(r.hits)
	if err != nil {
		r.tally.surfaced++
	}
	for _, bad := range []error{r.judge(srv, err), r.judgeUploads(t.Context(), srv, st, closeErr)} {
		if bad != nil {
			t.Errorf("%s: %v\nerror of the operation: %v (outcome %v)\nrequests:\n%s", r, bad, err, blob.OutcomeOf(err), srv.Log())
		}
	}
}

// commitLost reports whether a request that changes what is stored got no answer that tells its fate.
func (r *run) commitLost() bool {
	return slices.ContainsFunc(r.hits, func(h sweepHit) bool { return h.lost && slices.Contains(r.op.commits, h.op) })
}

// mustSucceed reports whether nothing happened that the policy does not mend.
func (r *run) mustSucceed() bool {
	if r.op.once && r.commitLost() {
		return false
	}
	return !slices.ContainsFunc(r.hits, func(h sweepHit) bool { return h.final || !r.retries })
}

func (r *run) judge(srv *fakes3.Server, err error) error {
	if errors.Is(err, errWrong) {
		return err
	}
	if err != nil && r.mustSucceed() {
		return errors.New("an error that another attempt would have mended")
	}
	if err == nil && len(r.hits) == 1 && !r.hits[0].mild && !r.mustSucceed() && !r.forgiven() {
		return errors.New("no error, though a request failed that nobody repeated")
	}
	if bad := r.judgeError(err); bad != nil {
		return bad
	}
	if r.op.judge != nil {
		return r.op.judge(srv, err, r.commitLost())
	}
	state := r.op.state(srv)
	unknown := err != nil && blob.OutcomeOf(err) == blob.Unknown
	if unknown {
		r.tally.unknown++
	}
	halfway := unknown && r.op.halfway && state != before
	want := before
	if err == nil && r.op.commits != nil {
		want = after
	}
	switch {
	case unknown && !halfway && !r.commitLost():
		return errors.New("an unknown outcome, though no request was lost that could have had an effect")
	case state != before && state != after && !halfway:
		return fmt.Errorf("the server holds %s", state)
	case !unknown && state != want:
		return fmt.Errorf("the server holds the state %s", state)
	}
	return nil
}

// forgiven reports whether the failure need not be the operation's: of an upload's clean-up, or of a request given up; or it may be
// known that the request was not handled, since the connection ended before the whole body had been handed over.
func (r *run) forgiven() bool {
	h := r.hits[0]
	return h.op == "AbortMultipartUpload" || r.op.restarts || r.retries && h.fault.Before != 0
}

// judgeError checks that every error is typed, and of the kind of a mishap that happened.
func (r *run) judgeError(err error) error {
	if err == nil {
		return nil
	}
	if de := (*blob.DeleteError)(nil); errors.As(err, &de) {
		for _, f := range de.Failed {
			if bad := r.judgeError(f.Err); bad != nil {
				return bad
			}
		}
		return nil
	}
	e, ok := err.(*blob.Error) //nolint:errorlint // the outermost must be one
	if !ok || e.Kind == nil || e.Store != "s3" || e.Op == "" || e.Attempts < 1 || e.Attempts > r.policy.WithDefaults().Attempts {
		return fmt.Errorf("badly typed: %w", err)
	}
	for _, h := range r.hits {
		if slices.ContainsFunc(h.kinds, func(k error) bool { return errors.Is(err, k) }) {
			return nil
		}
	}
	return fmt.Errorf("of kind %v", e.Kind)
}

// judgeUploads checks that what is left on the server is named by Close, and that a second Close removes it. Two kinds nobody can
// name or remove: an upload whose id was in a lost reply, and one whose commit may yet happen.
func (r *run) judgeUploads(ctx context.Context, srv *fakes3.Server, st *s3blob.Store, closeErr error) error {
	owed := new(blob.OwedError)
	if closeErr != nil && !errors.As(closeErr, &owed) {
		return fmt.Errorf("close: %w", closeErr)
	}
	orphans := 0
	for _, h := range r.hits {
		if h.op == "CreateMultipartUpload" && h.lost || h.op == "CompleteMultipartUpload" && h.lost {
			orphans++
		}
	}
	left := 0
	for _, up := range srv.Uploads("b") {
		if up.Key != "left" && !slices.Contains(owed.Uploads, up.Key+" "+up.ID) {
			left++
		}
	}
	r.tally.orphans += left
	if left > orphans {
		return fmt.Errorf("%d uploads left, at most %d explained, owed: %v", left, orphans, owed.Uploads)
	}
	if closeErr != nil && len(r.hits) < 2 {
		return fmt.Errorf("close: %w", closeErr)
	}
	if err := st.Close(ctx); err != nil {
		return fmt.Errorf("second close: %w", err)
	}
	st2 := srv.Uploads("b")
	if n := len(slices.DeleteFunc(st2, func(u fakes3.Upload) bool { return u.Key == "left" })); n > left {
		return fmt.Errorf("%d uploads left after a second close", n)
	}
	return nil
}
