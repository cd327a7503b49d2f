package blobtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// group is what the rules of one group share.
type group struct {
	*settings
	name  string
	store blob.Blob
	caps  blob.Capabilities

	fixtures map[string]bool // made once for the group
}

// env is what one rule, or one of its cases, runs in. It records failures instead of
// reporting them, so that a failure which is expected does not fail the test.
type env struct {
	*group
	name   string     // of the rule or case, as users list it
	rt     *testing.T // the subtest; touched by the runner only, but for Run, Log and Cleanup
	ctx    context.Context
	prefix string // begins every key of this rule
	quiet  bool   // a rule above may fail and reports for this case

	mu struct {
		sync.Mutex
		own       []failure // failed here
		cases     []failure // failed in cases that nothing else excuses
		visited   map[string]bool
		forbidden []string // failures that nothing excuses
	}
}

type failure struct {
	text        string
	unsupported bool // the error that was reported matches ErrUnsupported
}

// Errorf records a failure. Arguments that are errors decide whether it counts as pending.
func (e *env) Errorf(format string, args ...any) {
	f := failure{text: place() + fmt.Sprintf(format, args...)}
	for _, a := range args {
		if err, ok := a.(error); ok && errors.Is(err, blob.ErrUnsupported) {
			f.unsupported = true
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.own = append(e.mu.own, f)
}

// Fatalf records a failure and ends the rule. Like its namesake it must be
// called from the rule's own goroutine.
func (e *env) Fatalf(format string, args ...any) {
	e.Errorf(format, args...)
	runtime.Goexit()
}

// Logf logs to the subtest.
func (e *env) Logf(format string, args ...any) { e.rt.Logf(format, args...) }

// failed reports whether anything has failed here so far.
func (e *env) failed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.mu.own) > 0
}

// place returns the position in the rule that failed, so that shared checks do not hide it.
func place() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if file := path.Base(f.File); strings.HasSuffix(file, "_rules.go") {
			return fmt.Sprintf("%s:%d: ", file, f.Line)
		}
		if !more {
			return ""
		}
	}
}

// Case runs f as a subtest of its own, which Deviations and Pending can name, in the same store.
func (e *env) Case(name string, f func(e *env)) {
	full := e.name + "/" + name
	e.mu.Lock()
	if e.mu.visited == nil {
		e.mu.visited = map[string]bool{}
	}
	e.mu.visited[full] = true
	e.mu.Unlock()
	quiet := e.quiet || e.mayFail(e.name)
	e.rt.Run(name, func(t *testing.T) {
		c := &env{group: e.group, name: full, rt: t, prefix: e.prefix + name + "/", quiet: quiet}
		c.run(f)
		escaped := c.settle("")
		e.mu.Lock()
		defer e.mu.Unlock()
		e.mu.cases = append(e.mu.cases, escaped...)
		for name := range c.mu.visited {
			e.mu.visited[name] = true
		}
	})
}

// run calls f in a goroutine, as Fatalf needs, and waits for it.
func (e *env) run(f func(e *env)) {
	timeout := e.Timeout
	ctx, cancel := context.WithTimeout(e.rt.Context(), timeout)
	defer cancel()
	e.ctx = ctx
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				e.forbid("panic: %v\n%s", v, debug.Stack())
			}
		}()
		f(e)
	}()
	// A store that ignores its context would hang the suite: give up on the rule a while later.
	grace := time.NewTimer(timeout + timeout/2)
	defer grace.Stop()
	select {
	case <-done:
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			e.forbid("the rule ran out of time (%v)", timeout)
		}
	case <-grace.C:
		buf := make([]byte, 1<<20)
		e.forbid("the rule ran out of time (%v), and the store does not return when its context ends: goroutines are left behind\n%s", timeout, buf[:runtime.Stack(buf, true)])
	}
}

func (e *env) forbid(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.forbidden = append(e.mu.forbidden, fmt.Sprintf(format, args...))
}

// settle turns what was recorded into the result of the subtest. It returns the failures that
// count against the rule above.
func (e *env) settle(says string) (escaped []failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.rt
	t.Helper()
	for _, text := range e.mu.forbidden {
		t.Errorf("%s: %s", e.name, text)
	}
	all := slices.Concat(e.mu.own, e.mu.cases)
	if reason := e.Deviations[e.name]; reason != "" {
		if len(all) == 0 && len(e.mu.forbidden) == 0 {
			t.Errorf("%s is listed as a deviation (%s) but holds: remove it from Deviations", e.name, reason)
		} else if len(all) > 0 {
			t.Logf("deviation: %s: %s\n%s", e.name, reason, all[0].text)
		}
		return nil
	}
	if reason := e.Pending[e.name]; reason != "" {
		e.settlePending(reason, all)
		return nil
	}
	if reason := e.Racy[e.name]; reason != "" {
		if len(all) == 0 {
			t.Logf("racy: %s: %s: held this time", e.name, reason)
		} else {
			t.Logf("racy: %s: %s: broken this time\n%s", e.name, reason, all[0].text)
		}
		return nil
	}
	if e.quiet {
		return all
	}
	for _, f := range e.mu.own {
		t.Errorf("%s", f.text)
	}
	if len(e.mu.own) > 0 && says != "" {
		t.Errorf("rule broken: %s: %s", e.name, says)
	}
	return all
}

func (e *env) settlePending(reason string, all []failure) {
	t := e.rt
	t.Helper()
	if len(all) == 0 && len(e.mu.forbidden) == 0 {
		t.Errorf("%s is listed as pending (%s) but holds: remove it from Pending", e.name, reason)
	}
	for _, f := range all {
		if !f.unsupported {
			t.Errorf("%s is pending (%s) and may fail with ErrUnsupported only, but:\n%s", e.name, reason, f.text)
		}
	}
	t.Logf("pending: %s, until %s", e.name, reason)
}

// closeAtEnd sweeps store and closes it when the subtest ends.
func (s *settings) closeAtEnd(t *testing.T, store blob.Blob, prefix string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
		defer cancel()
		sweep(ctx, store, prefix)
		if err := store.Close(ctx); err != nil {
			t.Errorf("Close of a store after its rules: %v", err)
		}
	})
}

// use goes on with another store.
func (e *env) use(store blob.Blob) {
	e.group = &group{settings: e.settings, name: e.group.name, store: store, caps: store.Capabilities()}
	e.closeAtEnd(e.rt, store, e.prefix)
}

// runRule runs r in the subtest t.
func runRule(t *testing.T, g *group, r rule) {
	if r.own {
		g = &group{settings: g.settings, name: g.name, store: g.newStore(t)}
		g.caps = g.store.Capabilities()
		g.closeAtEnd(t, g.store, g.settings.run)
	}
	e := &env{group: g, name: r.name, rt: t, prefix: g.settings.run + r.name + "/"}
	e.run(r.run)
	e.settle(r.says)
	for _, name := range e.excused() {
		if strings.HasPrefix(name, r.name+"/") && !e.mu.visited[name] && !e.failed() {
			t.Errorf("Deviations, Pending or Racy names %q, but %s has no such case; it has %q",
				name, r.name, slices.Sorted(maps.Keys(e.mu.visited)))
		}
	}
}
