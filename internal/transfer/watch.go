package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// errStalled is the cancel cause of an attempt that stood still.
var errStalled = errors.New("the attempt stood still")

// watch ends an attempt that stands still. It knows two waits: for the reply's headers, up to Policy.Attempt,
// connecting included; and for the next bytes of a body, up to Stall. While a body is sent only the second counts, so neither
// a slow transfer that goes on nor a large body is cut off; once it is sent, the first begins.
//
// The engine reads bodies as fast as they come: what a consumer does with the bytes never stops the clock of
// a request.
type watch struct {
	timer          *time.Timer
	headers, stall time.Duration
	rate           int64       // bytes per second, at least, of what the kernel still holds
	whole          atomic.Bool // a body has been handed over whole, or was read to hash it
}

// watched returns a context for one attempt that ends when the attempt stands still. stop must be called.
func (s *Store) watched(ctx context.Context) (_ context.Context, w *watch, stop func()) {
	w = &watch{headers: s.o.Policy.Attempt, stall: s.o.Stall, rate: s.o.Policy.MinRate}
	if w.headers == retry.NoLimit && w.stall == retry.NoLimit {
		return ctx, w, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	first := w.headers
	if first == retry.NoLimit {
		first = 1<<63 - 1
	}
	w.timer = time.AfterFunc(first, func() { cancel(errStalled) })
	return ctx, w, func() {
		w.timer.Stop()
		cancel(nil)
	}
}

// moved is called when bytes of a body have come or gone.
func (w *watch) moved() { w.reset(w.stall) }

// kernelBuffer is how much of a body that has been handed over may still be on this side of the line: the largest socket buffer
// that Linux gives by itself (tcp(7), tcp_wmem).
const kernelBuffer = 4 << 20

// sent is called when the whole body, of n bytes, has been handed over: the reply is next, when the kernel has sent the rest.
func (w *watch) sent(n int64) {
	d := w.headers
	if d != retry.NoLimit {
		d += time.Duration(float64(min(n, kernelBuffer)) / float64(w.rate) * float64(time.Second))
	}
	w.reset(d)
}

func (w *watch) reset(d time.Duration) {
	switch {
	case w.timer == nil:
	case d == retry.NoLimit:
		w.timer.Stop()
	default:
		w.timer.Reset(d)
	}
}

// judge turns the error of an attempt that was ended by its watch into one that another attempt may mend.
func (w *watch) judge(ctx context.Context, err error) error {
	if err == nil || context.Cause(ctx) != errStalled { //nolint:errorlint // identity: this watch's own cause
		return err
	}
	e := &blob.Error{}
	var inner *blob.Error
	if errors.As(err, &inner) {
		*e = *inner
	}
	// The text of what was interrupted, without its context's error: the caller's context has not ended.
	e.Kind, e.Err = blob.ErrUnavailable, fmt.Errorf("%w: %s", errStalled, err.Error())
	return e
}

// reader wraps a body of which bytes are passed over.
func (w *watch) reader(r io.Reader) io.Reader { return watchedReader{r, w} }

type watchedReader struct {
	r io.Reader
	w *watch
}

func (r watchedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.w.moved()
	}
	return n, err
}
