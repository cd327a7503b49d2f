package blobtest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
)

// lostTail drops the last part of objects that are an exact number of parts.
func lostTail(_ string, d []byte) []byte {
	if len(d) > 0 && len(d)%256 == 0 {
		return d[:len(d)-256]
	}
	return d
}

func writeMutations() []mutation {
	return []mutation{
		{defect: "List lags one write behind", rules: []string{"set/round-trip"}, breakIt: func(b *broken) {
			b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) []blob.Info { return infos[:max(len(infos)-1, 0)] })
		}},
		{defect: "Set returns another version", rules: []string{"set/info"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				info, err := b.inner.Set(ctx, key, src, opts)
				if err == nil {
					info.Version += "x"
				}
				return info, err
			}
		}},
		{defect: "a shorter object keeps the tail of the old one", rules: []string{"set/overwrite"}, breakIt: func(b *broken) {
			b.setData(func(key string, d []byte) []byte {
				old, _ := b.inner.Get(context.Background(), key, nil)
				return append(d, old.Data[min(len(d), len(old.Data)):]...)
			})
		}},
		{defect: "the version never changes", rules: []string{"set/new-version"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				info, err := b.inner.Set(ctx, key, src, opts)
				info.Version = "v"
				return info, err
			}
		}},
		{defect: "an exact number of parts loses the last", rules: []string{"set/sizes-bytes", "set/sizes-readerat", "stream/known-length", "stream/unknown-length"}, breakIt: func(b *broken) {
			b.setData(lostTail)
		}},
		{defect: "a byte is added", rules: []string{"set/readerat-holds-more"}, breakIt: func(b *broken) {
			b.setData(func(_ string, d []byte) []byte { return append(d, 0) })
		}},
		{defect: "a source is used up", rules: []string{"set/source-reusable"}, breakIt: func(b *broken) {
			var n atomic.Int64
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				if n.Add(1)%2 == 0 {
					return blob.Info{}, fails(blob.OpSet, key, blob.ErrInvalidOption)
				}
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "the content type is lost", rules: []string{"set/content-type", "get/info", "stat/fields"}, breakIt: func(b *broken) {
			b.setOptions(func(_ string, _ blob.Source, o *blob.SetOptions) { o.ContentType = "" })
		}},
		{defect: "there is no SHA256", rules: []string{"set/sha256"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				if opts != nil && opts.SHA256 {
					return blob.Info{}, fails(blob.OpSet, key, blob.ErrUnsupported)
				}
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "at most once is never", rules: []string{"set/at-most-once"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				if opts != nil && opts.AtMostOnce {
					return blob.Info{Key: key, Size: src.Size()}, nil
				}
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "Set empties the key first", rules: []string{"set/invisible-until-whole"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				_, _ = b.inner.Set(ctx, key, blob.Bytes(nil), nil)
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "Set writes in two steps", rules: []string{"set/atomic-under-readers"}, breakIt: func(b *broken) {
			b.setData(func(key string, d []byte) []byte {
				_, _ = b.inner.Set(context.Background(), key, blob.Bytes(d[:len(d)/2]), nil)
				patiently(never)
				return d
			})
		}},
		{defect: "concurrent Sets are blended", rules: []string{"set/concurrent-writers", "concurrency/one-source", "concurrency/different-keys"}, breakIt: func(b *broken) {
			var g together
			b.setData(func(_ string, d []byte) []byte {
				both, leave := g.enter()
				defer leave()
				if both {
					return append(d, 1)
				}
				return d
			})
		}},
		{defect: "no source is an empty object", rules: []string{"set/invalid"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				if src.Check() != nil {
					src = blob.Bytes(nil)
				}
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "the empty version is no condition", rules: []string{"set/invalid"}, breakIt: func(b *broken) {
			b.setOptions(func(_ string, _ blob.Source, o *blob.SetOptions) {
				if o.If.Check() != nil {
					o.If = blob.Condition{}
				}
			})
		}},
		{defect: "metadata of large objects are lost", rules: []string{"metadata/round-trip"}, breakIt: func(b *broken) {
			b.setOptions(func(_ string, src blob.Source, o *blob.SetOptions) {
				if src.Size() > 256 {
					o.Metadata = nil
				}
			})
		}},
		{defect: "our own metadata show", rules: []string{"metadata/none", "set/at-most-once"}, breakIt: func(b *broken) {
			b.statted(func(i *blob.Info) { i.Metadata = map[string]string{"wholeblobtoken": "1-0"} })
		}},
		{defect: "metadata are merged", rules: []string{"metadata/replaced"}, breakIt: func(b *broken) {
			b.setOptions(func(key string, _ blob.Source, o *blob.SetOptions) {
				old, _ := b.inner.Stat(context.Background(), key)
				m := maps.Clone(old.Metadata)
				if m == nil {
					m = map[string]string{}
				}
				maps.Copy(m, o.Metadata)
				o.Metadata = m
			})
		}},
		{defect: "a plus becomes a space", rules: []string{"metadata/values"}, breakIt: func(b *broken) {
			b.statted(func(i *blob.Info) {
				for k, v := range i.Metadata {
					i.Metadata = maps.Clone(i.Metadata)
					i.Metadata[k] = strings.ReplaceAll(v, "+", " ")
				}
			})
		}},
		{defect: "there is no limit of metadata", rules: []string{"metadata/limits", "metadata/refused"}, breakIt: func(b *broken) {
			b.setOptions(func(_ string, _ blob.Source, o *blob.SetOptions) {
				if blob.CheckMetadata(o.Metadata) != nil {
					o.Metadata = nil
				}
			})
		}},
	}
}

func sourceMutations() []mutation {
	return []mutation{
		{defect: "a failing source is a short object", rules: []string{
			"source/short", "source/empty", "source/fails", "source/unexpected-eof", "source/panics",
			"stream/short", "stream/long", "stream/fails", "stream/unexpected-eof", "stream/panics",
		}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				return b.inner.Set(ctx, key, blob.Bytes(readAll(src)), opts)
			}
		}},
		{defect: "a failing source leaves what there is", rules: []string{"source/fails", "stream/fails"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				d, err := io.ReadAll(src.Reader())
				info, _ := b.inner.Set(ctx, key, blob.Bytes(d), opts)
				if err != nil {
					return blob.Info{}, &blob.Error{Op: blob.OpSet, Store: "memory", Key: key, Outcome: blob.NotApplied, Err: err}
				}
				return info, nil
			}
		}},
		{defect: "nobody knows what a failing source did", rules: []string{"source/fails"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				info, err := b.inner.Set(ctx, key, src, opts)
				if err != nil {
					err = &blob.Error{Op: blob.OpSet, Store: "memory", Key: key, Err: err}
				}
				return info, err
			}
		}},
		{defect: "io.EOF with data is a failure", rules: []string{"source/eof-with-data"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				if _, err := src.ReaderAt().ReadAt(make([]byte, src.Size()), 0); err != nil {
					return blob.Info{}, &blob.Error{Op: blob.OpSet, Store: "memory", Key: key, Err: err}
				}
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "reads of the source are left behind", rules: []string{"source/left-alone"}, breakIt: leaveReadsBehind},
		{defect: "a short read is the end", rules: []string{"stream/readers"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				buf := make([]byte, 256)
				var d []byte
				for r := src.Reader(); ; {
					n, _ := r.Read(buf)
					d = append(d, buf[:n]...)
					if n < len(buf) {
						return b.inner.Set(ctx, key, blob.Bytes(d), opts)
					}
				}
			}
		}},
		{defect: "a used Stream is empty", rules: []string{"stream/used-twice"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				return b.inner.Set(ctx, key, blob.Bytes(readAll(src)), opts)
			}
		}},
		{defect: "a Stream has no options", rules: []string{"stream/conditions", "stream/metadata"}, breakIt: func(b *broken) {
			b.setOptions(func(_ string, src blob.Source, o *blob.SetOptions) {
				if src.Size() < 0 {
					*o = blob.SetOptions{}
				}
			})
		}},
	}
}

// leaveReadsBehind reads parts in parallel and returns with the first error.
func leaveReadsBehind(b *broken) {
	b.set = func(_ context.Context, key string, src blob.Source, _ *blob.SetOptions) (blob.Info, error) {
		errs := make(chan error, 8)
		for i := range int64(8) {
			go func() {
				_, err := io.Copy(io.Discard, src.Section(i*256, 256))
				errs <- err
			}()
		}
		for range 8 {
			if err := <-errs; err != nil {
				return blob.Info{}, &blob.Error{Op: blob.OpSet, Store: "memory", Key: key, Outcome: blob.NotApplied, Err: err}
			}
		}
		return blob.Info{}, nil
	}
}

// checkThenAct makes a condition of a Stat before an unconditional Set.
func checkThenAct(b *broken) {
	b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
		if opts == nil || opts.If.IsZero() {
			return b.inner.Set(ctx, key, src, opts)
		}
		info, err := b.inner.Stat(ctx, key)
		v, isVersion := opts.If.Version()
		switch {
		case opts.If.Absent() && err == nil:
			return blob.Info{}, fails(blob.OpSet, key, blob.ErrExists)
		case isVersion && info.Version != v:
			return blob.Info{}, fails(blob.OpSet, key, blob.ErrPrecondition)
		}
		patiently(never)
		o := *opts
		o.If = blob.Condition{}
		return b.inner.Set(ctx, key, src, &o)
	}
}

// keepDeleted makes a set of the keys that were deleted.
func keepDeleted(b *broken) *sync.Map {
	var deleted sync.Map
	b.delete = func(ctx context.Context, key string, opts *blob.DeleteOptions) error {
		deleted.Store(key, true)
		return b.inner.Delete(ctx, key, opts)
	}
	return &deleted
}

func conditionMutations() []mutation {
	noConditions := func(b *broken) {
		b.caps = func() blob.Capabilities {
			c := b.inner.Capabilities()
			c.Conditions = false
			return c
		}
	}
	return []mutation{
		{defect: "conditions are dropped", rules: []string{
			"condition/if-absent", "condition/if-version", "condition/if-version-missing", "condition/if-version-chain",
			"condition/if-absent-race", "condition/if-version-race", "condition/no-trace",
		}, breakIt: func(b *broken) {
			b.setOptions(func(_ string, _ blob.Source, o *blob.SetOptions) { o.If = blob.Condition{} })
		}},
		{defect: "conditions of large objects are dropped", rules: []string{
			"condition/if-absent", "condition/if-version", "condition/if-version-missing", "condition/if-absent-race", "condition/if-version-race", "condition/no-trace", "condition/decided-at-commit",
		}, breakIt: func(b *broken) {
			b.setOptions(func(_ string, src blob.Source, o *blob.SetOptions) {
				if src.Size() >= 256 {
					o.If = blob.Condition{}
				}
			})
		}},
		{defect: "conditions are checked first and forgotten", rules: []string{
			"condition/if-absent-race", "condition/if-version-race", "condition/counter", "condition/decided-at-commit", "linear/sets",
		}, breakIt: checkThenAct},
		{defect: "a deleted key exists", rules: []string{"condition/if-absent-after-delete"}, breakIt: func(b *broken) {
			deleted := keepDeleted(b)
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				if _, ok := deleted.Load(key); ok && opts != nil && opts.If.Absent() {
					return blob.Info{}, fails(blob.OpSet, key, blob.ErrExists)
				}
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "IfVersion of a missing key is not found", rules: []string{"condition/if-version-missing"}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
				if _, err := b.inner.Stat(ctx, key); err != nil && opts != nil && !opts.If.IsZero() && !opts.If.Absent() {
					return blob.Info{}, fails(blob.OpSet, key, blob.ErrNotFound)
				}
				return b.inner.Set(ctx, key, src, opts)
			}
		}},
		{defect: "List has versions of its own", rules: []string{"condition/version-from-anywhere", "list/fields"}, breakIt: func(b *broken) {
			b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) []blob.Info {
				for i := range infos {
					infos[i].Version = fmt.Sprintf("%q", infos[i].Version)
				}
				return infos
			})
		}},
		{defect: "conditions are announced to be missing and dropped", rules: []string{"condition/unsupported"}, breakIt: func(b *broken) {
			noConditions(b)
			b.setOptions(func(_ string, _ blob.Source, o *blob.SetOptions) { o.If = blob.Condition{} })
		}},
		{defect: "conditions are announced to be missing and tried", rules: []string{"condition/unsupported"}, breakIt: noConditions},
		{defect: "reads are stale", rules: []string{"linear/sets", "linear/sets-and-deletes"}, breakIt: func(b *broken) {
			var old sync.Map
			var n atomic.Int64
			b.got(func(o *blob.Object, _ blob.GetOptions) error {
				if n.Add(1)%4 == 0 {
					if was, ok := old.Load(o.Key); ok {
						*o = was.(blob.Object)
						return nil
					}
				}
				old.Store(o.Key, *o)
				return nil
			})
		}},
		{defect: "a Delete that loses says it won", rules: []string{"linear/sets-and-deletes", "delete/if-version"}, breakIt: func(b *broken) {
			b.delete = func(ctx context.Context, key string, opts *blob.DeleteOptions) error {
				_ = b.inner.Delete(ctx, key, opts)
				return nil
			}
		}},
	}
}
