package transfer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// abortTimeout bounds one background abort, its retries included.
const abortTimeout = time.Minute

// cleaner owns the uploads that a Set left behind. Each abort runs on a context of its own, since the caller's is often
// the reason for it, in a goroutine that Close waits for.
type cleaner struct {
	s  *Store
	mu struct {
		sync.Mutex
		running []Upload        // aborts in progress
		idle    chan struct{}   // closed when none is running any more; nil while nobody waits
		active  map[Upload]bool // in progress or in doubt: not to be swept
		begins  map[string]int  // requests to begin one in flight, by key: what they begin is not to be swept either
		left    []Upload        // aborts that failed
	}
}

func (c *cleaner) init(s *Store) { c.s = s }

// beginning is told of a request to begin an upload of key, which the service may list before we know its id. over is to be called
// after begun.
func (c *cleaner) beginning(key string) (over func()) {
	if !c.s.traits.sweeps() {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.begins == nil {
		c.mu.begins = make(map[string]int)
	}
	c.mu.begins[key]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mu.begins[key]--; c.mu.begins[key] == 0 {
			delete(c.mu.begins, key)
		}
	}
}

// begun remembers an upload in progress until ended. Where uploads cannot be swept there is nothing to be kept from it.
func (c *cleaner) begun(up Upload) {
	if !c.s.traits.sweeps() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.active == nil {
		c.mu.active = make(map[Upload]bool)
	}
	c.mu.active[key(up)] = true
}

func (c *cleaner) ended(up Upload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.active, key(up))
}

// mine reports whether up is an upload of this Store in progress, or may be.
func (c *cleaner) mine(up Upload) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.active[key(up)] || c.mu.begins[up.Key] > 0
}

// key names an upload without the time, which a service tells only in a listing.
func key(up Upload) Upload { return Upload{Key: up.Key, ID: up.ID} }

// abort discards up in the background; nothing where the service lets go of parts by itself. Its parts are no longer in flight: a part that arrived after the
// abort would stay, and be billed ("AbortMultipartUpload", Amazon S3 API Reference).
func (c *cleaner) abort(ctx context.Context, up Upload) {
	if !c.s.traits.Abort {
		return
	}
	c.mu.Lock()
	c.mu.running = append(c.mu.running, up)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	go func() {
		defer cancel()
		err := c.try(ctx, up)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.mu.left = append(c.mu.left, up)
			c.s.o.Logger.Warn("upload not aborted, Close will try again", "key", up.Key, "upload", up.ID, "error", err)
		}
		c.mu.running = without(c.mu.running, up)
		delete(c.mu.active, key(up))
		if len(c.mu.running) == 0 && c.mu.idle != nil {
			close(c.mu.idle)
			c.mu.idle = nil
		}
	}()
}

// doubt is told of an upload whose commit may have happened or may yet: it must not be aborted, not by this Store's
// Sweep either, so it stays among those in progress.
func (c *cleaner) doubt(up Upload) {
	c.s.o.Logger.Warn("upload left alone: its commit has an unknown outcome", "key", up.Key, "upload", up.ID)
}

func (c *cleaner) try(ctx context.Context, up Upload) error {
	err := c.s.do(ctx, call{op: blob.OpSet, key: c.s.strip(up.Key), effect: retry.None}, func(ctx context.Context, _ attempt) error {
		return c.s.r.Abort(ctx, up)
	})
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	return err
}

// finish waits for running aborts and tries those that failed once more. It may be called again.
func (c *cleaner) finish(ctx context.Context) error {
	c.mu.Lock()
	if len(c.mu.running) > 0 && c.mu.idle == nil {
		c.mu.idle = make(chan struct{})
	}
	idle := c.mu.idle
	c.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	left := slices.Clone(c.mu.left)
	c.mu.Unlock()
	var last error
	for _, up := range left {
		if err := c.try(ctx, up); err != nil {
			last = err
			continue
		}
		c.mu.Lock()
		c.mu.left = without(c.mu.left, up)
		c.mu.Unlock()
	}
	return last
}

// owed names what is still to be cleaned up. Uploads in doubt are not: the commit may have used them up.
func (c *cleaner) owed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, up := range slices.Concat(c.mu.running, c.mu.left) {
		names = append(names, c.s.name(up))
	}
	return names
}

func without(ups []Upload, up Upload) []Upload {
	return slices.DeleteFunc(ups, func(u Upload) bool { return u == up })
}
