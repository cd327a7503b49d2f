package gate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func enter(t *testing.T, g *Gate) {
	t.Helper()
	if err := g.Enter(t.Context(), blob.OpGet, "k"); err != nil {
		t.Fatal(err)
	}
}

// shut starts a Shut; its result is there once it has returned.
func shut(ctx context.Context, g *Gate) <-chan error {
	done := make(chan error, 1)
	go func() { done <- g.Shut(ctx) }()
	return done
}

func TestEnterAfterShutIsRefused(t *testing.T) {
	var g Gate
	enter(t, &g)
	g.Leave()
	if err := g.Shut(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := g.Enter(t.Context(), blob.OpSet, "k")
	e, ok := err.(*blob.Error) //nolint:errorlint // unwrapped
	if !ok || e.Op != blob.OpSet || e.Key != "k" || e.Kind != blob.ErrClosed || e.Outcome != blob.NotApplied {
		t.Errorf("%#v", err)
	}
	if err := g.Shut(t.Context()); err != nil { // again
		t.Error(err)
	}
}

func TestEnterWithADoneContextIsItsError(t *testing.T) {
	for name, shutFirst := range map[string]bool{"open": false, "shut": true} {
		var g Gate
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if shutFirst {
			if err := g.Shut(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		err := g.Enter(ctx, blob.OpSet, "k")
		e, ok := err.(*blob.Error) //nolint:errorlint // unwrapped
		if !ok || !errors.Is(err, context.Canceled) || e.Kind != nil || e.Op != blob.OpSet || e.Key != "k" || e.Outcome != blob.NotApplied {
			t.Errorf("%s: %#v", name, err)
		}
		if err := g.Shut(t.Context()); err != nil { // which waits for nobody
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestShutWaitsForAllThatEntered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		enter(t, &g)
		enter(t, &g)
		g.Leave() // leaving an open gate wakes nobody
		enter(t, &g)
		first, second := shut(t.Context(), &g), shut(t.Context(), &g)
		for range 2 {
			synctest.Wait()
			if len(first) != 0 || len(second) != 0 {
				t.Fatal("Shut returned while a call was in flight")
			}
			if err := g.Enter(t.Context(), blob.OpGet, "k"); !errors.Is(err, blob.ErrClosed) {
				t.Errorf("Enter while Shut waits: %v", err)
			}
			g.Leave()
		}
		synctest.Wait()
		if len(first) != 1 || len(second) != 1 {
			t.Fatal("Shut does not return though all have left")
		}
		if err := errors.Join(<-first, <-second); err != nil {
			t.Error(err)
		}
	})
}

func TestShutGivesUpWithItsContextAndMayBeCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		enter(t, &g)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := g.Shut(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err := g.Enter(t.Context(), blob.OpGet, "k"); !errors.Is(err, blob.ErrClosed) {
			t.Errorf("after a Shut that gave up: %v", err)
		}
		again := shut(t.Context(), &g)
		synctest.Wait()
		if len(again) != 0 {
			t.Fatal("the second Shut does not wait")
		}
		g.Leave()
		synctest.Wait()
		if len(again) != 1 {
			t.Fatal("the second Shut does not return")
		}
		if err := <-again; err != nil {
			t.Error(err)
		}
	})
}

// A context that is done is no failure of a Shut that has nothing left to wait for.
func TestShutOfAnIdleGateNeedsNoContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var idle Gate
	if err := idle.Shut(ctx); err != nil {
		t.Error(err)
	}
	for range 100 { // select picks among the ready by chance
		var g Gate
		enter(t, &g)
		if err := g.Shut(lastMoment{ctx, &g}); err != nil {
			t.Fatal(err)
		}
	}
}

// lastMoment is a done context during whose Done, which Shut evaluates before it selects, the last call leaves.
type lastMoment struct {
	context.Context
	g *Gate
}

func (l lastMoment) Done() <-chan struct{} {
	l.g.Leave()
	return l.Context.Done()
}

func TestLeaveWithoutEnterPanics(t *testing.T) {
	var g Gate
	enter(t, &g)
	g.Leave()
	func() {
		defer func() {
			if v := recover(); v != "gate: Leave without Enter" {
				t.Errorf("recovered %v", v)
			}
		}()
		g.Leave()
	}()
	// The count is right all the same.
	enter(t, &g)
	g.Leave()
	if err := g.Shut(t.Context()); err != nil {
		t.Error(err)
	}
}
