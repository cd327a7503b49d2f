package blobtest

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// renamed makes b store every object under another key, and tell the caller its own.
func renamed(name func(string) string) func(b *broken) {
	return func(b *broken) {
		b.get = func(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
			o, err := b.inner.Get(ctx, name(key), opts)
			return o, rekey(&o.Info, key, err)
		}
		b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
			info, err := b.inner.Set(ctx, name(key), src, opts)
			return info, rekey(&info, key, err)
		}
		b.stat = func(ctx context.Context, key string) (blob.Info, error) {
			info, err := b.inner.Stat(ctx, name(key))
			return info, rekey(&info, key, err)
		}
		b.delete = func(ctx context.Context, key string, opts *blob.DeleteOptions) error {
			return b.inner.Delete(ctx, name(key), opts)
		}
	}
}

func rekey(info *blob.Info, key string, err error) error {
	var e *blob.Error
	if errors.As(err, &e) {
		c := *e
		c.Key = key
		return &c
	}
	info.Key = key
	return err
}

func foldSlashes(k string) string {
	for strings.Contains(k, "//") {
		k = strings.ReplaceAll(k, "//", "/")
	}
	return k
}

// foreignMark stands for the final dot of a foreign key in a memory store, which would refuse it.
const foreignMark = "\u2024"

func foreignInner(k string) string {
	if s, ok := strings.CutSuffix(k, "a."); ok {
		return s + "a" + foreignMark
	}
	return k
}

// withForeign makes b a store that can hold the foreign keys of the suite.
func withForeign(b *broken) {
	renamed(foreignInner)(b)
	set := b.set
	b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
		if blob.CheckKey(key) != nil {
			return b.inner.Set(ctx, key, src, opts)
		}
		return set(ctx, key, src, opts)
	}
	b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) []blob.Info {
		for i := range infos {
			infos[i].Key = strings.ReplaceAll(infos[i].Key, foreignMark, ".")
		}
		return infos
	})
	b.getRanges = func(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
		os, err := b.inner.GetRanges(ctx, foreignInner(key), rs, opts)
		for i := range os {
			os[i].Key = key
		}
		return os, err
	}
	b.deleteAll = func(ctx context.Context, keys []string) error {
		for _, k := range keys {
			if err := b.delete(ctx, k, nil); err != nil {
				return err
			}
		}
		return nil
	}
	b.restore = func(ctx context.Context, key string) (blob.Info, error) {
		info, err := b.inner.Restore(ctx, foreignInner(key))
		return info, rekey(&info, key, err)
	}
}

func plant(_ *testing.T, store blob.Blob, key string, data []byte) {
	if _, err := store.(*broken).inner.Set(context.Background(), foreignInner(key), blob.Bytes(data), nil); err != nil {
		panic(err)
	}
}

func TestForeignRulesHoldOnAStoreThatHoldsForeignKeys(t *testing.T) {
	runRules(t, func(*testing.T) blob.Blob {
		b := newBroken(memblob.New(nil))
		withForeign(b)
		return b
	}, &Config{Foreign: plant}, foreignRules())
}

func keyMutations() []mutation {
	foreign := Config{Foreign: plant}
	return []mutation{
		{defect: "double slashes are folded", rules: []string{"keys/round-trip", "keys/never-collide"}, breakIt: renamed(foldSlashes)},
		{defect: "one key is folded", rules: []string{"keys/round-trip/double-slash", "keys/never-collide/double-slash", "keys/never-collide/beside-child"}, breakIt: renamed(func(k string) string {
			if k == "a//b" {
				return "a/b"
			}
			return k
		})},
		{defect: "case is folded", rules: []string{"keys/round-trip", "keys/never-collide", "keys/deleted-alone"}, breakIt: renamed(strings.ToLower)},
		{defect: "a final space is trimmed", rules: []string{"keys/round-trip/space-trailing", "keys/never-collide/space-trailing", "keys/never-collide/plain"}, breakIt: renamed(func(k string) string {
			if k == " " {
				return k
			}
			return strings.TrimRight(k, " ")
		})},
		{defect: "long segments are cut", rules: []string{"keys/round-trip"}, breakIt: renamed(func(k string) string { return k[:min(len(k), 255)] })},
		{defect: "a batch skips what XML would escape", rules: []string{"keys/deleteall/xml", "keys/deleteall/xml-entity", "keys/deleteall/ampersand"}, breakIt: func(b *broken) {
			b.deleteAll = func(ctx context.Context, keys []string) error {
				for _, k := range keys {
					if !strings.ContainsAny(k, "&<>") {
						_ = b.inner.Delete(ctx, k, nil)
					}
				}
				return nil
			}
		}},
		{defect: "keys are cleaned", rules: []string{"keys/refused-by-set"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				if blob.CheckKey(key) != nil && strings.Contains(key, "..") {
					key = path.Clean("/" + key)[1:]
				}
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "a foreign key is an invalid one", rules: []string{"keys/refused-elsewhere"}, breakIt: func(b *broken) {
			b.get = func(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
				if blob.CheckKey(key) != nil {
					return blob.Object{}, fails(blob.OpGet, key, blob.ErrInvalidKey)
				}
				return b.inner.Get(ctx, key, opts)
			}
		}},
		{defect: "the empty key is not found", rules: []string{"keys/empty"}, breakIt: func(b *broken) {
			b.stat = func(ctx context.Context, key string) (blob.Info, error) {
				if key == "" {
					return blob.Info{}, fails(blob.OpStat, key, blob.ErrNotFound)
				}
				return b.inner.Stat(ctx, key)
			}
		}},
		{defect: "foreign keys are not listed", rules: []string{"foreign/listed"}, config: foreign, breakIt: func(b *broken) {
			withForeign(b)
			b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) []blob.Info {
				var out []blob.Info
				for _, i := range infos {
					if !strings.Contains(i.Key, foreignMark) {
						out = append(out, i)
					}
				}
				return out
			})
		}},
		{defect: "foreign keys are not read", rules: []string{"foreign/readable"}, config: foreign, breakIt: func(b *broken) {
			withForeign(b)
			b.get = b.inner.Get
		}},
	}
}

// aliasOf returns the very bytes of a Bytes source.
func aliasOf(src blob.Source) (alias []byte) {
	_, _ = src.Section(0, src.Size()).(*bytes.Reader).WriteTo(writerFunc(func(p []byte) { alias = p }))
	return alias
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func otherMutations() []mutation {
	return []mutation{
		{defect: "the store has no name", rules: []string{"capabilities/named"}, breakIt: func(b *broken) {
			b.caps = func() blob.Capabilities { return blob.Capabilities{Conditions: true} }
		}},
		{defect: "capabilities change", rules: []string{"capabilities/same-always"}, breakIt: func(b *broken) {
			var n atomic.Int64
			b.caps = func() blob.Capabilities {
				c := b.inner.Capabilities()
				c.BatchDelete = n.Add(1)%2 == 0
				return c
			}
		}},
		{defect: "MaxObject is checked at the end", rules: []string{"capabilities/max-object"}, store: func() blob.Blob { return memblob.New(&memblob.Options{MaxObject: 1000}) }, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				readAll(src)
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "ModTime is missing", rules: []string{"stat/fields"}, breakIt: func(b *broken) {
			b.statted(func(i *blob.Info) { i.ModTime = blob.Info{}.ModTime })
		}},
		{defect: "Stat of a missing key is empty", rules: []string{"stat/missing-key", "stat/no-folders"}, breakIt: func(b *broken) {
			b.stat = func(ctx context.Context, key string) (blob.Info, error) {
				info, err := b.inner.Stat(ctx, key)
				if isNotFound(err) {
					return blob.Info{Key: key}, nil
				}
				return info, err
			}
		}},
		{defect: "Stat is cached", rules: []string{"stat/follows", "stat/missing-key"}, breakIt: func(b *broken) {
			var kept sync.Map
			b.stat = func(ctx context.Context, key string) (blob.Info, error) {
				if i, ok := kept.Load(key); ok {
					return i.(blob.Info), nil
				}
				info, err := b.inner.Stat(ctx, key)
				if err == nil {
					kept.Store(key, info)
				}
				return info, err
			}
		}},
		{defect: "a folder is a key", rules: []string{"stat/no-folders"}, breakIt: func(b *broken) {
			b.stat = func(ctx context.Context, key string) (blob.Info, error) {
				if len(b.all(strings.TrimSuffix(key, "/")+"/", nil)) > 0 {
					return blob.Info{Key: key, Version: "v"}, nil
				}
				return b.inner.Stat(ctx, key)
			}
		}},
		{defect: "not found is an error of our own", rules: []string{"errors/not-found", "errors/typed", "get/missing-key"}, breakIt: statAndGetFail(func(error) error { return errors.New("no such object") })},
		{defect: "an error is a bare sentinel", rules: []string{"errors/typed", "errors/text", "get/missing-key"}, breakIt: statAndGetFail(blob.KindOf)},
		{defect: "an error has another operation's name", rules: []string{"errors/typed"}, breakIt: statAndGetFail(func(err error) error {
			var e *blob.Error
			errors.As(err, &e)
			c := *e
			c.Op = "head"
			return &c
		})},
		{defect: "data come beside an error", rules: []string{"errors/no-data"}, breakIt: func(b *broken) {
			b.get = func(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
				o, err := b.inner.Get(ctx, key, opts)
				if err != nil {
					o.Data = []byte("part")
				}
				return o, err
			}
		}},
		{defect: "contexts are ignored", rules: []string{"context/done-at-entry", "context/deadline"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				return b.inner.Set(context.WithoutCancel(ctx), key, src, opts)
			}
		}},
		{defect: "a cancelled Set leaves what it has", rules: []string{"context/cancel-during-set", "context/cancel-during-stream"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				d := readAll(src)
				if err := ctx.Err(); err != nil {
					_, _ = b.inner.Set(context.WithoutCancel(ctx), key, blob.Bytes(d[:len(d)/2]), opts)
					return blob.Info{}, &blob.Error{Op: blob.OpSet, Store: "memory", Key: key, Outcome: blob.NotApplied, Err: err}
				}
				return b.inner.Set(ctx, key, blob.Bytes(d), opts)
			}
		}},
		{defect: "a cancelled call spoils the store", rules: []string{"context/works-on"}, breakIt: func(b *broken) {
			var spoilt atomic.Bool
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				if spoilt.Load() {
					return blob.Info{}, fails(blob.OpSet, key, blob.ErrUnavailable)
				}
				patiently(func() bool { return ctx.Err() != nil })
				spoilt.Store(ctx.Err() != nil)
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "the caller's bytes are kept", rules: []string{"slices/set-bytes"}, breakIt: func(b *broken) {
			var kept sync.Map
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				kept.Store(key, aliasOf(src))
				return b.inner.Set(ctx, key, src, opts)
			}
			b.got(func(o *blob.Object, _ blob.GetOptions) error {
				d, _ := kept.Load(o.Key)
				o.Data = d.([]byte)
				return nil
			})
		}},
		{defect: "the caller's map is kept", rules: []string{"slices/metadata"}, breakIt: func(b *broken) {
			var kept sync.Map
			b.setOptions(func(key string, _ blob.Source, o *blob.SetOptions) { kept.Store(key, o.Metadata) })
			b.statted(func(i *blob.Info) {
				m, _ := kept.Load(i.Key)
				i.Metadata = m.(map[string]string)
			})
		}},
		{defect: "the caller's Dst is cached", rules: []string{"slices/dst"}, breakIt: func(b *broken) {
			var kept sync.Map
			b.got(func(o *blob.Object, _ blob.GetOptions) error {
				d, _ := kept.LoadOrStore(o.Key, o.Data)
				o.Data = d.([]byte)
				return nil
			})
		}},
		{defect: "a cancelled Get leaves its reads behind", rules: []string{"slices/dst-left-alone"}, races: true, breakIt: func(b *broken) {
			b.get = func(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
				done := make(chan blob.Object, 1)
				go func() {
					patiently(never)
					o, _ := b.inner.Get(context.WithoutCancel(ctx), key, nil)
					copy(opts.Dst, o.Data) // a data race, and meant to be one
					done <- o
				}()
				select {
				case o := <-done:
					return o, nil
				case <-ctx.Done():
					return blob.Object{}, ctx.Err()
				}
			}
		}},
		{defect: "one buffer serves all reads", rules: []string{"slices/data-stays"}, breakIt: func(b *broken) {
			buf := make([]byte, 1<<16)
			b.got(func(o *blob.Object, _ blob.GetOptions) error {
				o.Data = buf[:copy(buf, o.Data)]
				return nil
			})
		}},
		{defect: "defaults are filled into the caller's options", rules: []string{"slices/options"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				if opts != nil && opts.ContentType == "" {
					opts.ContentType = blob.DefaultContentType
				}
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "every call asks twice", rules: []string{"cost/get", "cost/set", "cost/stat-delete", "cost/list", "cost/deleteall"}, config: Config{Requests: countRequests}, breakIt: askTwice},
	}
}

// statAndGetFail makes b return other errors for a missing key.
func statAndGetFail(change func(err error) error) func(b *broken) {
	return func(b *broken) {
		b.stat = func(ctx context.Context, key string) (blob.Info, error) {
			info, err := b.inner.Stat(ctx, key)
			if err != nil {
				err = change(err)
			}
			return info, err
		}
		b.get = func(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
			o, err := b.inner.Get(ctx, key, opts)
			if err != nil {
				err = change(err)
			}
			return o, err
		}
	}
}

func askTwice(b *broken) {
	b.got(func(*blob.Object, blob.GetOptions) error { b.requests.Add(1); return nil })
	b.setOptions(func(string, blob.Source, *blob.SetOptions) { b.requests.Add(1) })
	b.statted(func(*blob.Info) { b.requests.Add(1) })
	b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) []blob.Info { b.requests.Add(1); return infos })
	b.deleteAll = func(ctx context.Context, keys []string) error {
		b.requests.Add(1)
		return b.inner.DeleteAll(ctx, keys)
	}
}

// closedAtOnce makes b refuse work from the beginning of Close, without waiting for anything.
func closedAtOnce(b *broken) {
	var closed atomic.Bool
	b.stat = func(ctx context.Context, key string) (blob.Info, error) {
		if closed.Load() {
			return blob.Info{}, fails(blob.OpStat, key, blob.ErrClosed)
		}
		return b.inner.Stat(ctx, key)
	}
	b.close = func(context.Context) error { closed.Store(true); return nil }
}

func closeMutations() []mutation {
	var shared blob.Blob = memblob.New(nil)
	return []mutation{
		{defect: "Close closes nothing", rules: []string{"close/refuses"}, breakIt: func(b *broken) {
			b.close = func(context.Context) error { return nil }
		}},
		{defect: "Capabilities end with Close", rules: []string{"close/refuses"}, breakIt: func(b *broken) {
			var closed atomic.Bool
			b.close = func(ctx context.Context) error { closed.Store(true); return b.inner.Close(ctx) }
			b.caps = func() blob.Capabilities {
				if closed.Load() {
					return blob.Capabilities{}
				}
				return b.inner.Capabilities()
			}
		}},
		{defect: "a second Close is an error", rules: []string{"close/again"}, breakIt: func(b *broken) {
			var n atomic.Int64
			b.close = func(ctx context.Context) error {
				if n.Add(1) == 2 {
					return fails(blob.OpClose, "", blob.ErrClosed)
				}
				return b.inner.Close(ctx)
			}
		}},
		{defect: "Close does not wait", rules: []string{"close/waits-for-set", "close/waits-for-list", "close/context"}, breakIt: closedAtOnce},
		{defect: "Close returns the bare error of its context", rules: []string{"close/context"}, breakIt: func(b *broken) {
			b.close = func(ctx context.Context) error {
				if err := b.inner.Close(ctx); err != nil {
					return ctx.Err()
				}
				return nil
			}
		}},
		{defect: "Close loses half of what was set", rules: []string{"close/durable"}, store: func() blob.Blob { return shared }, breakIt: func(b *broken) {
			var last atomic.Value
			b.setOptions(func(key string, _ blob.Source, _ *blob.SetOptions) { last.Store(key) })
			b.close = func(ctx context.Context) error {
				if key, ok := last.Load().(string); ok {
					_, _ = b.inner.Set(ctx, key, blob.Bytes([]byte("half")), nil)
				}
				return nil
			}
		}},
	}
}
