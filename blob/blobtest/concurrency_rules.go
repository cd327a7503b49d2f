package blobtest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
)

func concurrencyRules() []rule {
	return []rule{
		{name: "concurrency/different-keys", says: "Any number of goroutines use a store at once without disturbing each other.", run: concurrentKeys},
		{name: "concurrency/one-source", says: "One Bytes source may serve several Sets at once.", run: concurrentSource},
		{name: "concurrency/set-beside-delete", says: "Beside Set and Delete a reader sees the whole object or none.", run: concurrentDelete},
	}
}

// yieldProcessor lets other goroutines run; it is no wait for anything in particular.
func yieldProcessor() { runtime.Gosched() }

func concurrentKeys(e *env) {
	atOnce(e.Racers, func(g int) {
		for i := range 5 {
			k := e.key(fmt.Sprint(g, "/", i))
			d := e.data(k, int64(i)*e.PartSize+int64(g))
			if _, err := e.store.Set(e.ctx, k, blob.Bytes(d), nil); err != nil {
				e.Errorf("Set(%q): %v", k, err)
				return
			}
			e.holds(k, d)
			if got := e.keys(k, nil); len(got) != 1 {
				e.Errorf("List(%q) yields %q", k, got)
			}
			if err := e.store.Delete(e.ctx, k, nil); err != nil {
				e.Errorf("Delete(%q): %v", k, err)
			}
			e.absent(k)
		}
	})
}

func concurrentSource(e *env) {
	d := e.data("x", 2*e.PartSize+1)
	src := blob.Bytes(d)
	atOnce(e.Racers, func(g int) {
		k := e.key(fmt.Sprint(g))
		if _, err := e.store.Set(e.ctx, k, src, nil); err != nil {
			e.Errorf("Set(%q): %v", k, err)
			return
		}
		e.holds(k, d)
	})
}

func concurrentDelete(e *env) {
	k, lengths := e.key("x"), e.lengths()
	e.besideReaders(func() {
		o, err := e.store.Get(e.ctx, k, nil)
		switch kind := blob.KindOf(err); {
		case err == nil:
			if _, err := identify(o.Data); err != nil {
				e.Errorf("Get beside Set and Delete: %v", err)
			}
		case kind == blob.ErrNotFound, kind == blob.ErrChanged:
		default:
			e.Errorf("Get beside Set and Delete: %v", err)
		}
	}, func(i uint64) {
		if _, err := e.store.Set(e.ctx, k, blob.Bytes(selfDescribing(i, lengths[i%uint64(len(lengths))])), nil); err != nil {
			e.Errorf("Set: %v", err)
		}
		if err := e.store.Delete(e.ctx, k, nil); err != nil {
			e.Errorf("Delete: %v", err)
		}
	})
	e.absent(k)
}

// besideReaders calls read over and over in e.Racers goroutines, while it calls write with 1, 2, ... It ends when both have been
// called often enough to have met, or something has failed.
func (e *env) besideReaders(read func(), write func(i uint64)) {
	const enough = 25
	var reads atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range e.Racers {
		wg.Go(func() {
			for !isDone(stop) && !e.failed() {
				read()
				reads.Add(1)
				yieldProcessor() // on one processor a store that never waits would keep it for a whole time slice
			}
		})
	}
	for i := uint64(1); (i <= enough || reads.Load() < enough) && !e.failed() && e.ctx.Err() == nil; i++ {
		write(i)
		yieldProcessor()
	}
	close(stop)
	wg.Wait()
}

// atOnce calls f with 0 to n-1 in goroutines that begin together, and waits for them.
func atOnce(n int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}
