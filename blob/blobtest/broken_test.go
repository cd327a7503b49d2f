package blobtest

import (
	"context"
	"errors"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// mutation is a store with one defect and the rules, or cases, that must find it.
type mutation struct {
	defect  string
	rules   []string
	breakIt func(b *broken)
	store   func() blob.Blob // what is broken; nil: a memory store that restores
	config  Config           // what the rules need
	races   bool             // the defect is a data race, for which the race detector would fail the whole test
}

// broken is a store whose methods are replaced one by one.
type broken struct {
	inner     blob.Blob
	requests  atomic.Int64
	get       func(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error)
	getRanges func(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error)
	set       func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error)
	stat      func(ctx context.Context, key string) (blob.Info, error)
	list      func(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error]
	delete    func(ctx context.Context, key string, opts *blob.DeleteOptions) error
	deleteAll func(ctx context.Context, keys []string) error
	restore   func(ctx context.Context, key string) (blob.Info, error)
	caps      func() blob.Capabilities
	close     func(ctx context.Context) error
}

func newBroken(inner blob.Blob) *broken {
	return &broken{
		inner: inner, get: inner.Get, getRanges: inner.GetRanges, set: inner.Set, stat: inner.Stat, list: inner.List,
		delete: inner.Delete, deleteAll: inner.DeleteAll, restore: inner.Restore, caps: inner.Capabilities, close: inner.Close,
	}
}

func (b *broken) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	b.requests.Add(1)
	return b.get(ctx, key, opts)
}

func (b *broken) GetRanges(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
	b.requests.Add(1)
	return b.getRanges(ctx, key, rs, opts)
}

func (b *broken) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	b.requests.Add(1)
	return b.set(ctx, key, src, opts)
}

func (b *broken) Stat(ctx context.Context, key string) (blob.Info, error) {
	b.requests.Add(1)
	return b.stat(ctx, key)
}

func (b *broken) List(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
	b.requests.Add(1)
	return b.list(ctx, prefix, opts)
}

func (b *broken) Delete(ctx context.Context, key string, opts *blob.DeleteOptions) error {
	b.requests.Add(1)
	return b.delete(ctx, key, opts)
}

func (b *broken) DeleteAll(ctx context.Context, keys []string) error {
	b.requests.Add(1)
	return b.deleteAll(ctx, keys)
}

func (b *broken) Restore(ctx context.Context, key string) (blob.Info, error) {
	b.requests.Add(1)
	return b.restore(ctx, key)
}

func (b *broken) Capabilities() blob.Capabilities { return b.caps() }

func (b *broken) Close(ctx context.Context) error { return b.close(ctx) }

func countRequests(store blob.Blob) int64 { return store.(*broken).requests.Load() }

// fails returns an error that is right in every field.
func fails(op, key string, kind error) error {
	return &blob.Error{Op: op, Store: "memory", Key: key, Kind: kind, Outcome: blob.NotApplied}
}

// readAll returns what a source yields before it ends or fails.
func readAll(src blob.Source) []byte {
	r := src.Reader()
	if r == nil {
		return nil
	}
	d, _ := io.ReadAll(r)
	return d
}

// setData makes b store what change makes of the bytes.
func (b *broken) setData(change func(key string, d []byte) []byte) {
	b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
		d, err := io.ReadAll(src.Reader())
		if err != nil {
			return blob.Info{}, err
		}
		return b.inner.Set(ctx, key, blob.Bytes(change(key, d)), opts)
	}
}

// setOptions makes b set with changed options.
func (b *broken) setOptions(change func(key string, src blob.Source, o *blob.SetOptions)) {
	b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
		var o blob.SetOptions
		if opts != nil {
			o = *opts
		}
		change(key, src, &o)
		return b.inner.Set(ctx, key, src, &o)
	}
}

// getOptions makes b read with changed options, ranges too.
func (b *broken) getOptions(change func(o *blob.GetOptions)) {
	changed := func(opts *blob.GetOptions) *blob.GetOptions {
		var o blob.GetOptions
		if opts != nil {
			o = *opts
		}
		change(&o)
		return &o
	}
	b.get = func(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
		return b.inner.Get(ctx, key, changed(opts))
	}
	b.getRanges = func(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
		return b.inner.GetRanges(ctx, key, rs, changed(opts))
	}
}

// got makes b return changed objects.
func (b *broken) got(change func(o *blob.Object, opts blob.GetOptions) error) {
	b.get = func(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
		var o blob.GetOptions
		if opts != nil {
			o = *opts
		}
		got, err := b.inner.Get(ctx, key, opts)
		if err != nil {
			return got, err
		}
		if err := change(&got, o); err != nil {
			return blob.Object{}, err
		}
		return got, nil
	}
}

// statted makes b return changed Infos from Stat.
func (b *broken) statted(change func(i *blob.Info)) {
	b.stat = func(ctx context.Context, key string) (blob.Info, error) {
		info, err := b.inner.Stat(ctx, key)
		if err == nil {
			change(&info)
		}
		return info, err
	}
}

// listed makes b yield what change makes of the whole listing.
func (b *broken) listed(change func(prefix string, o blob.ListOptions, infos []blob.Info) []blob.Info) {
	b.list = func(_ context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
		var o blob.ListOptions
		if opts != nil {
			o = *opts
		}
		return func(yield func(blob.Info, error) bool) {
			for _, info := range change(prefix, o, b.all(prefix, &o)) {
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

func (b *broken) all(prefix string, opts *blob.ListOptions) (infos []blob.Info) {
	for info, err := range b.inner.List(context.Background(), prefix, opts) {
		if err != nil {
			break
		}
		infos = append(infos, info)
	}
	return infos
}

// patiently yields until done or for a good while: it widens a race, and loses nothing if the other side never comes.
func patiently(done func() bool) {
	for i := 0; i < 500 && !done(); i++ {
		runtime.Gosched()
	}
}

func never() bool { return false }

func mutations() []mutation {
	return slices.Concat(readMutations(), rangesMutations(), writeMutations(), sourceMutations(), conditionMutations(), listMutations(),
		delimiterMutations(), deleteMutations(), keyMutations(), otherMutations(), closeMutations())
}

func TestEveryDefectTurnsItsRuleRed(t *testing.T) {
	for _, m := range mutations() {
		for _, r := range allRules() {
			var names []string
			for _, name := range m.rules {
				if name == r.name || strings.HasPrefix(name, r.name+"/") {
					names = append(names, name)
				}
			}
			if len(names) > 0 && !(m.races && raceDetector) {
				t.Run(strings.ReplaceAll(m.defect, " ", "-")+"/"+r.name, func(t *testing.T) {
					t.Parallel()
					m.check(t, r, names)
				})
			}
		}
	}
}

// check runs one rule on the broken store and demands that it fails, or else that those of its cases fail
// that are named and no others.
func (m mutation) check(t *testing.T, r rule, names []string) {
	cfg := m.config
	cfg.Deviations = map[string]string{}
	for _, name := range names {
		cfg.Deviations[name] = m.defect
	}
	cfg.PartSize, cfg.LargeObject, cfg.ListKeys, cfg.Timeout = 256, 4096, 60, 30*time.Second
	runRules(t, func(*testing.T) blob.Blob {
		inner := blob.Blob(memblob.New(&memblob.Options{Restore: true}))
		if m.store != nil {
			inner = m.store()
		}
		b := newBroken(inner)
		m.breakIt(b)
		return b
	}, &cfg, []rule{r})
}

func TestEveryRuleFindsADefect(t *testing.T) {
	found := map[string]bool{}
	for _, m := range mutations() {
		for _, name := range m.rules {
			found[name] = true
			for i := range len(name) {
				found[name[:i]] = true
			}
		}
	}
	for _, r := range Rules() {
		if !found[r.Name] {
			t.Errorf("no mutation turns %s red: %s", r.Name, r.Says)
		}
	}
}

// together waits until another call is inside too.
type together struct {
	mu sync.Mutex
	n  int
}

// enter reports whether two were inside at once. The caller leaves by calling leave.
func (g *together) enter() (both bool, leave func()) {
	g.add(1)
	patiently(func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		both = both || g.n > 1
		return both
	})
	return both, func() {
		patiently(never) // so that the last one in meets somebody
		g.add(-1)
	}
}

func (g *together) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n += n
}

func isNotFound(err error) bool { return errors.Is(err, blob.ErrNotFound) }
