package faultsweep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
	"github.com/wholeblob/wholeblob/retry"
)

// struck is a mishap of the request with index at.
type struck struct {
	mishap
	at int
}

type hit struct {
	struck
	kind Kind
	op   string
}

// run is one run of an operation on a server of its own.
type run struct {
	*Target
	op       *op
	name     string
	retries  bool
	policy   retry.Policy
	strikes  []struck
	hits     []hit       // written under the server's lock
	requests int         // of the operation itself
	paused   atomic.Bool // nothing fails: the requests are not the operation's
	kept     string
	tally    tally
}

func (target *Target) newRun(op *op, p policy, strikes ...struck) *run {
	return &run{Target: target, op: op, name: p.name, retries: p.retries, policy: p.policy, strikes: strikes}
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

func (r *run) config() Config {
	c := r.op.config
	c.Stall, c.Policy = 5*time.Second, r.policy
	return c
}

// bubble runs it in fake time.
func (r *run) bubble(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		setup := r.op.setup
		setup.InMemory = true
		s := r.Start(setup)
		srv := s.HTTP()
		defer srv.Close()
		tr := srv.Transport()
		defer tr.CloseIdleConnections()
		c := r.config()
		c.Transport = tr
		r.do(t, s, c, synctest.Wait, func() {
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
	s := r.Start(r.op.setup)
	srv := s.HTTP()
	defer srv.Close()
	idle := func() { eventually(t, "requests to end", func() bool { return srv.InFlight() == 0 }) }
	r.do(t, s, r.config(), idle, func() {
		eventually(t, "connections to close", func() bool { return srv.InFlight() == 0 && srv.OpenConns() == 0 })
	})
}

// eventually waits for what other goroutines bring about. It looks now and then: a loop that yields would keep the runtime
// from polling the network.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for looks := 0; !ok(); looks++ {
		if looks > 100_000 {
			t.Fatalf("waited in vain for %s", what)
		}
		<-tick.C
	}
}

// do runs the operation, closes the store, and judges what is left.
func (r *run) do(t *testing.T, s Service, c Config, idle, closed func()) {
	t.Helper()
	store, st, err := r.openOver(t.Context(), s, c)
	if err == nil && r.op.prepare != nil {
		err = r.op.prepare(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Warm {
		cost := func(read func()) int {
			s.HTTP().ResetLog()
			read()
			return len(s.HTTP().Log())
		}
		warm(t, st, store, cost, r.Revalidates, r.keys()...)
		idle()
	}
	r.kept = s.Kept(theKey)
	r.inject(s.HTTP())
	s.HTTP().ResetLog()
	err = r.op.run(t.Context(), s, st)
	r.requests = len(s.HTTP().Log())
	var stale error
	if r.Over != nil {
		idle()
		stale = r.agree(t.Context(), s, st, store, err)
	}
	closeErr := st.Close(t.Context())
	closed()
	s.HTTP().ClearFaults()
	r.tally.runs, r.tally.faults = 1, len(r.hits)
	if err != nil {
		r.tally.surfaced++
	}
	for _, bad := range []error{r.judge(s, err), stale, r.judgeUploads(t.Context(), s, st, closeErr)} {
		if bad != nil {
			t.Errorf("%s: %v\nerror of the operation: %v (outcome %v)\nrequests:\n%s", r, bad, err, blob.OutcomeOf(err), s.HTTP().Log())
		}
	}
}

// inject makes the strikes fall on the requests with their index.
func (r *run) inject(srv *fakehttp.Server) {
	for _, s := range r.strikes {
		n := 0
		s.fault.Match = func(q *fakehttp.Request) bool {
			if r.paused.Load() {
				return false
			}
			n++
			if n != s.at+1 {
				return false
			}
			r.hits = append(r.hits, hit{s, r.Kind(q), q.Op})
			return true
		}
		srv.Inject(s.fault)
	}
}

// agree checks that the decorator says what the store says, and that after a write that failed it has asked for that.
func (r *run) agree(ctx context.Context, s Service, through, store blob.Blob, err error) error {
	r.paused.Store(true)
	defer r.paused.Store(false)
	for _, key := range r.keys() {
		if err == nil || r.op.commits == nil {
			break
		}
		before := len(s.HTTP().Log())
		if _, err := through.Stat(ctx, key); err != nil && !errors.Is(err, blob.ErrNotFound) {
			return err
		}
		if len(s.HTTP().Log()) == before {
			return fmt.Errorf("after a write of %q that failed, a read did not ask the store", key)
		}
	}
	return Agree(ctx, through, store, r.keys()...)
}

func (r *run) keys() []string {
	if r.op.keys == nil {
		return []string{theKey}
	}
	return r.op.keys
}

// openOver opens a store, and what is in front of it: the store itself if there is nothing.
func (target *Target) openOver(ctx context.Context, s Service, c Config) (store, through blob.Blob, err error) {
	if store, err = target.Open(ctx, s, c); err != nil || target.Over == nil {
		return store, store, err
	}
	through, err = target.Over(ctx, store)
	return store, through, err
}

// start starts a service that ends with the test.
func (target *Target) start(t *testing.T, setup Setup) Service {
	t.Helper()
	s := target.Start(setup)
	t.Cleanup(s.HTTP().Close)
	return s
}

// quick is a policy with short delays.
func quick(attempts int) retry.Policy {
	return retry.Policy{FirstDelay: time.Microsecond, MaxDelay: time.Millisecond, Attempts: attempts}
}

// open opens a store, with what is in front of it, that is closed with the test.
func (target *Target) open(t *testing.T, s Service, c Config) blob.Blob {
	t.Helper()
	_, through := target.openBoth(t, s, c)
	return through
}

// openBoth is open, and also returns the store itself.
func (target *Target) openBoth(t *testing.T, s Service, c Config) (store, through blob.Blob) {
	t.Helper()
	if c.Policy == (retry.Policy{}) {
		c.Policy = quick(3)
	}
	store, through, err := target.openOver(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := through.Close(context.Background()); err != nil { // the test's context has ended in a clean-up
			t.Logf("close: %v", err)
		}
	})
	return store, through
}
