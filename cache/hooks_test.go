package cache

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// hooked is a Blob that stops where a test wants it to.
type hooked struct {
	inner blob.Blob

	mu            sync.Mutex
	before, after func(op string) // called around each call of inner, if not nil
	calls         map[string]int
	ranges        []blob.Range // of the Gets
	mangle        func(*blob.Info)
}

func newHooked() *hooked {
	return &hooked{inner: memblob.New(&memblob.Options{Restore: true}), calls: map[string]int{}}
}

func (h *hooked) enter(op string) {
	h.mu.Lock()
	h.calls[op]++
	before := h.before
	h.mu.Unlock()
	if before != nil {
		before(op)
	}
}

func (h *hooked) leave(op string) {
	h.mu.Lock()
	after := h.after
	h.mu.Unlock()
	if after != nil {
		after(op)
	}
}

// hook sets both hooks.
func (h *hooked) hook(before, after func(op string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before, h.after = before, after
}

func (h *hooked) count(op string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[op]
}

func (h *hooked) Get(ctx context.Context, key string, o *blob.GetOptions) (blob.Object, error) {
	if o == nil {
		o = new(blob.GetOptions)
	}
	h.mu.Lock()
	h.ranges = append(h.ranges, o.Range)
	h.mu.Unlock()
	h.enter(blob.OpGet)
	obj, err := h.inner.Get(ctx, key, o)
	h.leave(blob.OpGet)
	if err == nil && ctx.Err() != nil {
		err = &blob.Error{Op: blob.OpGet, Key: key, Outcome: blob.NotApplied, Err: ctx.Err()}
	}
	return obj, err
}

func (h *hooked) GetRanges(ctx context.Context, key string, rs []blob.Range, o *blob.GetOptions) ([]blob.Object, error) {
	h.enter(blob.OpGetRanges)
	defer h.leave(blob.OpGetRanges)
	return h.inner.GetRanges(ctx, key, rs, o)
}

func (h *hooked) Set(ctx context.Context, key string, src blob.Source, o *blob.SetOptions) (blob.Info, error) {
	h.enter(blob.OpSet)
	defer h.leave(blob.OpSet)
	info, err := h.inner.Set(ctx, key, src, o)
	if h.mangle != nil {
		h.mangle(&info)
	}
	return info, err
}

func (h *hooked) Stat(ctx context.Context, key string) (blob.Info, error) {
	h.enter(blob.OpStat)
	defer h.leave(blob.OpStat)
	return h.inner.Stat(ctx, key)
}

func (h *hooked) List(ctx context.Context, prefix string, o *blob.ListOptions) iter.Seq2[blob.Info, error] {
	return h.inner.List(ctx, prefix, o)
}

func (h *hooked) Delete(ctx context.Context, key string, o *blob.DeleteOptions) error {
	h.enter(blob.OpDelete)
	defer h.leave(blob.OpDelete)
	return h.inner.Delete(ctx, key, o)
}

func (h *hooked) DeleteAll(ctx context.Context, keys []string) error {
	h.enter(blob.OpDeleteAll)
	defer h.leave(blob.OpDeleteAll)
	return h.inner.DeleteAll(ctx, keys)
}

func (h *hooked) Restore(ctx context.Context, key string) (blob.Info, error) {
	h.enter(blob.OpRestore)
	defer h.leave(blob.OpRestore)
	return h.inner.Restore(ctx, key)
}

func (h *hooked) Capabilities() blob.Capabilities { return h.inner.Capabilities() }

func (h *hooked) Close(ctx context.Context) error {
	h.enter(blob.OpClose)
	return h.inner.Close(ctx)
}

// holder stops the first call of an operation until it is let go.
type holder struct {
	op      string
	once    sync.Once
	reached chan struct{}
	release chan struct{}
}

func hold(op string) *holder {
	return &holder{op: op, reached: make(chan struct{}), release: make(chan struct{})}
}

func (h *holder) at(op string) {
	if op != h.op {
		return
	}
	first := false
	h.once.Do(func() { first = true })
	if first {
		close(h.reached)
		<-h.release
	}
}

func set(t *testing.T, b blob.Blob, key, content string) blob.Info {
	t.Helper()
	info, err := b.Set(t.Context(), key, blob.Bytes([]byte(content)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func get(t *testing.T, b blob.Blob, key string) string {
	t.Helper()
	o, err := b.Get(t.Context(), key, nil)
	if errors.Is(err, blob.ErrNotFound) {
		return "absent"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Data)
}

func wantGet(t *testing.T, b blob.Blob, key, want string) {
	t.Helper()
	if got := get(t, b, key); got != want {
		t.Errorf("Get is %.20q, want %.20q", got, want)
	}
}

func wantCalls(t *testing.T, h *hooked, op string, want int) {
	t.Helper()
	if got := h.count(op); got != want {
		t.Errorf("%d calls of %s reached the store, want %d", got, op, want)
	}
}

func mustClose(t *testing.T, b blob.Blob) {
	t.Helper()
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// stateless checks that nothing stays of keys with which nothing is going on.
func stateless(t *testing.T, c *Cache) {
	t.Helper()
	for i := range c.epochs.shards {
		sh := &c.epochs.shards[i]
		sh.mu.Lock()
		if n := len(sh.keys); n != 0 {
			t.Errorf("%d keys have a state while nothing is going on", n)
		}
		sh.mu.Unlock()
	}
	if free := c.fills.free.Load(); free != c.opts.FillBytes {
		t.Errorf("%d bytes of fills are free, want all %d", free, c.opts.FillBytes)
	}
}
