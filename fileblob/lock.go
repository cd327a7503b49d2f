package fileblob

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"
)

const (
	stripes = 64 // part of the layout: all who use a root must agree

	// How long to wait between two looks at a lock that another process holds. It is held for the time of a few
	// system calls, never for an fsync or a Source.
	firstPoll = 100 * time.Microsecond
	lastPoll  = 10 * time.Millisecond
)

// locks are the stripes under which names change.
//
// flock(2) excludes open files from each other, not goroutines: all goroutines of a Store share the open file of a stripe, and a second
// flock on it would succeed. So a goroutine first takes the stripe's channel and then the flock; two Stores in one process have an
// open file each and exclude each other like processes.
type locks struct {
	dir     directory
	stripes [stripes]stripe
}

type stripe struct {
	once sync.Once
	held chan struct{} // holds one token while a goroutine has the stripe
	file file          // opened by the first who has the stripe, guarded by held
}

func stripeOf(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // a hash never fails
	return int(h.Sum32() % stripes)
}

// lock takes the stripe of key; the caller must call unlock.
func (l *locks) lock(ctx context.Context, key string) (unlock func(), err error) {
	n := stripeOf(key)
	st := &l.stripes[n]
	st.once.Do(func() { st.held = make(chan struct{}, 1) })
	select {
	case st.held <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := l.flock(ctx, st, n); err != nil {
		<-st.held
		return nil, err
	}
	return func() {
		// An unlock that fails would leave the lock with this open file: closing it gives it back for certain.
		if err := st.file.Unlock(); err != nil {
			_ = st.file.Close()
			st.file = nil
		}
		<-st.held
	}, nil
}

func (l *locks) flock(ctx context.Context, st *stripe, n int) error {
	if st.file == nil {
		f, err := l.dir.OpenLock(fmt.Sprintf("%02x", n), true)
		if err != nil {
			return err
		}
		st.file = f
	}
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		ok, err := st.file.TryLock()
		if ok || err != nil {
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// close gives up the lock files. No goroutine is in the store any more.
func (l *locks) close() {
	for i := range l.stripes {
		if f := l.stripes[i].file; f != nil {
			_ = f.Close()
			l.stripes[i].file = nil
		}
	}
	if l.dir != nil {
		_ = l.dir.Close()
	}
}
