// Package gate counts the calls in flight of a Blob, so that Close can refuse new ones
// and wait for the rest.
package gate

import (
	"context"
	"sync"

	"github.com/wholeblob/wholeblob/blob"
)

// Gate is open in its zero value.
type Gate struct {
	mu struct {
		sync.Mutex
		n      int
		closed bool
		idle   chan struct{} // made by the first waiter, closed when closed && n == 0
	}
}

// Enter counts a call in. If it returns nil the caller must Leave; otherwise the gate has
// been shut and the error matches blob.ErrClosed, or ctx is done and the error is ctx's. Both are
// returned as *blob.Error with Op and Key set and the outcome NotApplied.
func (g *Gate) Enter(ctx context.Context, op, key string) error {
	if err := ctx.Err(); err != nil {
		return &blob.Error{Op: op, Key: key, Outcome: blob.NotApplied, Err: err}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return &blob.Error{Op: op, Key: key, Kind: blob.ErrClosed, Outcome: blob.NotApplied}
	}
	g.mu.n++
	return nil
}

// Leave counts a call out.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.n == 0 {
		panic("gate: Leave without Enter")
	}
	g.mu.n--
	if g.mu.closed && g.mu.n == 0 && g.mu.idle != nil {
		close(g.mu.idle)
		g.mu.idle = nil
	}
}

// Shut refuses new calls from now on and waits until all have left, or ctx is done.
// It may be called again to wait on.
func (g *Gate) Shut(ctx context.Context) error {
	g.mu.Lock()
	g.mu.closed = true
	if g.mu.n == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.mu.idle == nil {
		g.mu.idle = make(chan struct{})
	}
	idle := g.mu.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-idle: // both were ready: nothing is owed
		return nil
	default:
		return ctx.Err()
	}
}
