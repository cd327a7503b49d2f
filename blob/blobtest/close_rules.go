package blobtest

import (
	"context"
	"errors"

	"github.com/wholeblob/wholeblob/blob"
)

func closeRules() []rule {
	return []rule{
		{name: "close/refuses", says: "After Close every method is ErrClosed, without I/O; Capabilities still answers.", own: true, run: closeRefuses},
		{name: "close/again", says: "After a nil Close, Close is nil.", own: true, run: closeAgain},
		{name: "close/waits-for-set", says: "Close refuses new work and waits for a Set in flight, which ends well.", own: true, run: closeWaitsSet},
		{name: "close/waits-for-list", says: "A List being ranged over is in flight: Close waits for it.", own: true, run: closeWaitsList},
		{name: "close/context", says: "If ctx ends first Close returns a *OwedError, and a later Close goes on.", own: true, run: closeContext},
		{name: "close/durable", says: "What was set before Close is there in a store opened afterwards, if the store keeps anything.", own: true, run: closeDurable},
	}
}

func (e *env) mustClose() {
	if err := e.store.Close(e.ctx); err != nil {
		e.Fatalf("Close: %v", err)
	}
}

func closeRefuses(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 10), nil)
	seq := e.store.List(e.ctx, e.prefix, nil)
	e.mustClose()
	e.noRequests("calls after Close", func() {
		e.everyCall(e.ctx, k, blob.ErrClosed)
		n := 0
		for _, err := range seq {
			n++
			e.refused(err, blob.OpList, e.prefix, blob.ErrClosed)
		}
		if n != 1 {
			e.Errorf("a sequence made before Close yields %d elements after it, want the error alone", n)
		}
	})
	if got := e.store.Capabilities(); got != e.caps {
		e.Errorf("Capabilities is %+v after Close, was %+v", got, e.caps)
	}
}

func closeAgain(e *env) {
	e.mustSet(e.key("x"), nil, nil)
	for range 3 {
		e.mustClose()
	}
}

// untilRefused returns when the store refuses work, since Close has begun, or closing has ended.
func (e *env) untilRefused(closed <-chan error) {
	for !errors.Is(e.statErr(), blob.ErrClosed) {
		if e.ctx.Err() != nil {
			e.Fatalf("Close has begun, but the store goes on to accept work")
		}
		if len(closed) > 0 {
			return
		}
		yieldProcessor()
	}
	for range 1000 { // a Close that does not wait gets the time to return
		yieldProcessor()
	}
}

func (e *env) statErr() error {
	_, err := e.store.Stat(e.ctx, e.key("x"))
	return err
}

func (e *env) startClose(ctx context.Context) <-chan error {
	closed := make(chan error, 1)
	go func() { closed <- e.store.Close(ctx) }()
	return closed
}

func closeWaitsSet(e *env) {
	end := e.startHeld(e.key("x"), e.data("x", 3*e.PartSize))
	closed := e.startClose(e.ctx)
	e.untilRefused(closed)
	if len(closed) > 0 {
		e.Errorf("Close returned (%v) while a Set was in flight", <-closed)
	}
	if _, err := end(); err != nil {
		e.Errorf("the Set that was in flight when Close began: %v", err)
	}
	if !e.failed() {
		if err := <-closed; err != nil {
			e.Errorf("Close: %v", err)
		}
	}
}

func closeWaitsList(e *env) {
	e.setKeys("a", "b")
	var closed <-chan error
	n := 0
	for _, err := range e.store.List(e.ctx, e.prefix, nil) {
		if err != nil {
			e.Fatalf("the List that was in flight when Close began: %v", err)
		}
		if n++; n == 1 {
			closed = e.startClose(e.ctx)
			e.untilRefused(closed)
			if len(closed) > 0 {
				e.Errorf("Close returned while a List was being ranged over")
			}
		}
	}
	if n != 2 {
		e.Errorf("List yields %d keys, want 2", n)
	}
	if err := <-closed; err != nil {
		e.Errorf("Close: %v", err)
	}
}

func closeContext(e *env) {
	end := e.startHeld(e.key("x"), e.data("x", 3*e.PartSize))
	ctx, cancel := context.WithCancel(e.ctx)
	closed := e.startClose(ctx)
	e.untilRefused(closed)
	cancel()
	err := <-closed
	var owed *blob.OwedError
	if !errors.As(err, &owed) || !errors.Is(err, context.Canceled) {
		e.Errorf("Close whose context ended is %v, want a *blob.OwedError that matches context.Canceled", err)
	}
	if !errors.Is(e.statErr(), blob.ErrClosed) {
		e.Errorf("after such a Close the store accepts work: %v", e.statErr())
	}
	if _, err := end(); err != nil {
		e.Errorf("the Set that was in flight: %v", err)
	}
	for range 2 {
		e.mustClose()
	}
}

// closeDurable cannot tell whether two stores share what they keep, so it checks only that a
// second store which knows the key has it right.
func closeDurable(e *env) {
	k, d := e.key("x"), e.data("x", 3*e.PartSize+1)
	e.mustSet(k, d, nil)
	e.mustClose()
	e.use(e.newStore(e.rt))
	if _, err := e.store.Stat(e.ctx, k); !errors.Is(err, blob.ErrNotFound) {
		e.holds(k, d)
	}
}
