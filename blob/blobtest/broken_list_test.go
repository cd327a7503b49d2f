package blobtest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/wholeblob/wholeblob/blob"
)

const brokenPage = 30

// sorted makes b list in the order of what key makes of each key.
func sorted[T any](key func(string) []T, compare func(a, b []T) int) func(b *broken) {
	return func(b *broken) {
		b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) []blob.Info {
			slices.SortFunc(infos, func(x, y blob.Info) int { return compare(key(x.Key), key(y.Key)) })
			return infos
		})
	}
}

// onlyKeys makes b leave out of listings what keep does not want.
func onlyKeys(keep func(prefix, key string) bool) func(b *broken) {
	return func(b *broken) {
		b.listed(func(prefix string, _ blob.ListOptions, infos []blob.Info) []blob.Info {
			return slices.DeleteFunc(infos, func(i blob.Info) bool { return !keep(prefix, i.Key) })
		})
	}
}

func listMutations() []mutation {
	return []mutation{
		{defect: "a prefix of nothing is an error", rules: []string{"list/nothing"}, breakIt: func(b *broken) {
			b.list = func(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
				return func(yield func(blob.Info, error) bool) {
					if len(b.all(prefix, opts)) == 0 {
						yield(blob.Info{}, fails(blob.OpList, prefix, blob.ErrNotFound))
						return
					}
					b.inner.List(ctx, prefix, opts)(yield)
				}
			}
		}},
		{defect: "folders are walked", rules: []string{"list/order"}, breakIt: sorted(func(k string) []byte { return []byte(strings.ReplaceAll(k, "/", "\x00")) }, slices.Compare[[]byte])},
		{defect: "case is folded in the order", rules: []string{"list/order"}, breakIt: sorted(func(k string) []byte { return []byte(strings.ToLower(k)) }, slices.Compare[[]byte])},
		{defect: "the order is that of UTF-16", rules: []string{"list/order-unicode"}, breakIt: sorted(func(k string) []uint16 { return utf16.Encode([]rune(k)) }, slices.Compare[[]uint16])},
		{defect: "the order is backward", rules: []string{"list/order", "list/many-keys", "list/no-prefix"}, breakIt: sorted(func(k string) []byte { return []byte(k) }, func(a, b []byte) int { return slices.Compare(b, a) })},
		{defect: "a prefix is a folder", rules: []string{"list/prefix-is-a-string"}, breakIt: onlyKeys(func(prefix, key string) bool {
			return strings.HasPrefix(key, strings.TrimSuffix(prefix, "/")+"/")
		})},
		{defect: "the prefix itself is left out", rules: []string{"list/prefix-is-a-key"}, breakIt: onlyKeys(func(prefix, key string) bool { return key != prefix })},
		{defect: "no prefix is nothing", rules: []string{"list/no-prefix"}, breakIt: onlyKeys(func(prefix, _ string) bool { return prefix != "" })},
		{defect: "StartAfter is inclusive", rules: []string{"list/start-after", "list/many-start-after"}, breakIt: func(b *broken) {
			b.listed(func(prefix string, o blob.ListOptions, infos []blob.Info) []blob.Info {
				if i, err := b.inner.Stat(context.Background(), o.StartAfter); err == nil && o.StartAfter != "" && strings.HasPrefix(o.StartAfter, prefix) {
					return slices.Insert(infos, 0, i)
				}
				return infos
			})
		}},
		{defect: "StartAfter must exist", rules: []string{"list/start-after", "list/many-start-after"}, breakIt: func(b *broken) {
			b.listed(func(prefix string, o blob.ListOptions, infos []blob.Info) []blob.Info {
				if _, err := b.inner.Stat(context.Background(), o.StartAfter); err != nil && o.StartAfter != "" {
					return b.all(prefix, nil)
				}
				return infos
			})
		}},
		{defect: "the first listing is kept", rules: []string{"list/follows"}, breakIt: func(b *broken) {
			var kept []blob.Info
			b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) []blob.Info {
				if kept == nil {
					kept = infos
				}
				return kept
			})
		}},
		{defect: "List lists when it is called", rules: []string{"list/again"}, breakIt: func(b *broken) {
			b.list = func(_ context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
				infos := b.all(prefix, opts)
				return func(yield func(blob.Info, error) bool) {
					for _, i := range infos {
						if !yield(i, nil) {
							return
						}
					}
				}
			}
		}},
		{defect: "a break does not stop requests", rules: []string{"list/break"}, config: Config{Requests: countRequests}, breakIt: func(b *broken) {
			b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) []blob.Info {
				b.requests.Add(10)
				return infos
			})
		}},
		{defect: "an error comes with an Info", rules: []string{"list/error-last"}, breakIt: listErrors(func(err error, yield func(blob.Info, error) bool) {
			yield(blob.Info{Key: "x"}, err)
		})},
		{defect: "an error comes twice", rules: []string{"list/error-last"}, breakIt: listErrors(func(err error, yield func(blob.Info, error) bool) {
			if yield(blob.Info{}, err) {
				yield(blob.Info{}, err)
			}
		})},
		{defect: "a cancelled listing ends cleanly", rules: []string{"list/cancel-midway", "list/error-last"}, breakIt: listErrors(func(err error, yield func(blob.Info, error) bool) {
			if !errors.Is(err, context.Canceled) {
				yield(blob.Info{}, err)
			}
		})},
		{defect: "bad UTF-8 matches nothing", rules: []string{"list/invalid"}, breakIt: listErrors(func(error, func(blob.Info, error) bool) {})},
		{defect: "there is one page", rules: []string{"list/many-keys", "list/delimiter-many"}, breakIt: func(b *broken) {
			b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) []blob.Info {
				return infos[:min(brokenPage, len(infos))]
			})
		}},
		{defect: "a page begins with the last key of the one before", rules: []string{"list/many-keys", "list/many-start-after"}, breakIt: func(b *broken) {
			b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) (out []blob.Info) {
				for page := range slices.Chunk(infos, brokenPage) {
					if len(out) > 0 {
						out = append(out, out[len(out)-1])
					}
					out = append(out, page...)
				}
				return out
			})
		}},
		{defect: "pages are numbered", rules: []string{"list/beside-writers"}, breakIt: func(b *broken) {
			b.list = func(_ context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
				return func(yield func(blob.Info, error) bool) {
					for i := 0; ; i++ {
						infos := b.all(prefix, opts)
						if i >= len(infos) || !yield(infos[i], nil) {
							return
						}
						patiently(never)
					}
				}
			}
		}},
		{defect: "sizes are missing", rules: []string{"list/fields", "list/follows"}, breakIt: func(b *broken) {
			b.listed(func(_ string, _ blob.ListOptions, infos []blob.Info) []blob.Info {
				for i := range infos {
					infos[i].Size = 0
				}
				return infos
			})
		}},
	}
}

// listErrors makes b end a listing that fails in its own way.
func listErrors(end func(err error, yield func(blob.Info, error) bool)) func(b *broken) {
	return func(b *broken) {
		b.list = func(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
			return func(yield func(blob.Info, error) bool) {
				for info, err := range b.inner.List(ctx, prefix, opts) {
					if err != nil {
						end(err, yield)
						return
					}
					if !yield(info, nil) {
						return
					}
				}
			}
		}
	}
}

// fold lists keys without the inner store's folding and does it anew, in pages.
func fold(infos []blob.Info, prefix, delimiter string, page int) (out []blob.Info) {
	for keys := range slices.Chunk(infos, page) {
		last := ""
		for _, i := range keys {
			at := strings.Index(i.Key[len(prefix):], delimiter)
			if delimiter == "" || at < 0 {
				out = append(out, i)
				continue
			}
			common := i.Key[:len(prefix)+at+len(delimiter)]
			if common != last {
				out = append(out, blob.Info{Key: common, IsPrefix: true})
			}
			last = common
		}
	}
	return out
}

// folding makes b fold keys after StartAfter in its own way.
func folding(how func(b *broken, prefix string, o blob.ListOptions) []blob.Info) func(b *broken) {
	return func(b *broken) {
		b.listed(func(prefix string, o blob.ListOptions, infos []blob.Info) []blob.Info {
			if o.Delimiter == "" {
				return infos
			}
			return how(b, prefix, o)
		})
	}
}

func delimiterMutations() []mutation {
	return []mutation{
		{defect: "nothing is folded", rules: []string{"list/delimiter-folds", "list/delimiter-info", "list/delimiter-large-folder"}, breakIt: folding(func(b *broken, prefix string, o blob.ListOptions) []blob.Info {
			return b.all(prefix, &blob.ListOptions{StartAfter: o.StartAfter})
		})},
		{defect: "prefixes come after all keys", rules: []string{"list/delimiter-folds"}, breakIt: folding(func(b *broken, prefix string, o blob.ListOptions) []blob.Info {
			infos := b.all(prefix, &o)
			slices.SortStableFunc(infos, func(x, y blob.Info) int {
				switch {
				case x.IsPrefix == y.IsPrefix:
					return 0
				case x.IsPrefix:
					return 1
				}
				return -1
			})
			return infos
		})},
		{defect: "a common prefix has a version", rules: []string{"list/delimiter-info"}, breakIt: folding(func(b *broken, prefix string, o blob.ListOptions) []blob.Info {
			infos := b.all(prefix, &o)
			for i := range infos {
				infos[i].Version = "v"
			}
			return infos
		})},
		{defect: "a delimiter needs a folder", rules: []string{"list/delimiter-inside-a-name"}, breakIt: folding(func(b *broken, prefix string, o blob.ListOptions) []blob.Info {
			return b.all(strings.TrimSuffix(prefix, "/")+"/", &o)
		})},
		{defect: "a folder hides the key of its name", rules: []string{"list/delimiter-beside-key"}, breakIt: folding(func(b *broken, prefix string, o blob.ListOptions) []blob.Info {
			infos := b.all(prefix, &o)
			return slices.DeleteFunc(slices.Clone(infos), func(i blob.Info) bool {
				return slices.ContainsFunc(infos, func(p blob.Info) bool { return p.IsPrefix && p.Key == i.Key+"/" })
			})
		})},
		{defect: "a delimiter is one character", rules: []string{"list/delimiter-several-characters"}, breakIt: folding(func(b *broken, prefix string, o blob.ListOptions) []blob.Info {
			return b.all(prefix, &blob.ListOptions{Delimiter: o.Delimiter[:1], StartAfter: o.StartAfter})
		})},
		{defect: "a delimiter is a slash", rules: []string{"list/delimiter-not-slash"}, breakIt: folding(func(b *broken, prefix string, o blob.ListOptions) []blob.Info {
			return b.all(prefix, &blob.ListOptions{Delimiter: "/", StartAfter: o.StartAfter})
		})},
		{defect: "StartAfter is applied before folding", rules: []string{"list/delimiter-start-after", "list/delimiter-many-start-after"}, breakIt: folding(func(b *broken, prefix string, o blob.ListOptions) []blob.Info {
			return fold(b.all(prefix, &blob.ListOptions{StartAfter: o.StartAfter}), prefix, o.Delimiter, 1<<20)
		})},
		{defect: "each page repeats its prefix", rules: []string{"list/delimiter-large-folder"}, breakIt: folding(func(b *broken, prefix string, o blob.ListOptions) []blob.Info {
			return fold(b.all(prefix, &blob.ListOptions{StartAfter: o.StartAfter}), prefix, o.Delimiter, brokenPage)
		})},
	}
}

func deleteMutations() []mutation {
	return []mutation{
		{defect: "Delete deletes a prefix", rules: []string{"delete/removes", "keys/deleted-alone"}, breakIt: func(b *broken) {
			b.delete = func(ctx context.Context, key string, opts *blob.DeleteOptions) error {
				for _, i := range b.all(key, nil) {
					_ = b.inner.Delete(ctx, i.Key, nil)
				}
				return b.inner.Delete(ctx, key, opts)
			}
		}},
		{defect: "Delete of a missing key is an error", rules: []string{"delete/missing-key"}, breakIt: func(b *broken) {
			b.delete = func(ctx context.Context, key string, opts *blob.DeleteOptions) error {
				if _, err := b.inner.Stat(ctx, key); err != nil {
					return fails(blob.OpDelete, key, blob.ErrNotFound)
				}
				return b.inner.Delete(ctx, key, opts)
			}
		}},
		{defect: "conditions of Delete are dropped", rules: []string{"delete/if-version", "delete/if-invalid"}, breakIt: func(b *broken) {
			b.delete = func(ctx context.Context, key string, _ *blob.DeleteOptions) error {
				return b.inner.Delete(ctx, key, nil)
			}
		}},
		{defect: "a missing key has another version", rules: []string{"delete/if-version-missing"}, breakIt: func(b *broken) {
			b.delete = func(ctx context.Context, key string, opts *blob.DeleteOptions) error {
				if _, err := b.inner.Stat(ctx, key); err != nil && opts != nil && !opts.If.IsZero() {
					return fails(blob.OpDelete, key, blob.ErrPrecondition)
				}
				return b.inner.Delete(ctx, key, opts)
			}
		}},
		{defect: "Delete at most once is never", rules: []string{"delete/at-most-once"}, breakIt: func(b *broken) {
			b.delete = func(ctx context.Context, key string, opts *blob.DeleteOptions) error {
				if opts != nil && opts.AtMostOnce {
					return nil
				}
				return b.inner.Delete(ctx, key, opts)
			}
		}},
		{defect: "a missing key fails the batch", rules: []string{"deleteall/removes"}, breakIt: func(b *broken) {
			b.deleteAll = func(ctx context.Context, keys []string) error {
				for _, k := range keys {
					if _, err := b.inner.Stat(ctx, k); err != nil {
						return fails(blob.OpDeleteAll, k, blob.ErrNotFound)
					}
				}
				return b.inner.DeleteAll(ctx, keys)
			}
		}},
		{defect: "no keys is a malformed request", rules: []string{"deleteall/none"}, breakIt: func(b *broken) {
			b.deleteAll = func(ctx context.Context, keys []string) error {
				if len(keys) == 0 {
					return fails(blob.OpDeleteAll, "", blob.ErrInvalidOption)
				}
				return b.inner.DeleteAll(ctx, keys)
			}
		}},
		{defect: "keys are deleted until one is empty", rules: []string{"deleteall/empty-key"}, breakIt: func(b *broken) {
			b.deleteAll = func(ctx context.Context, keys []string) error {
				if i := slices.Index(keys, ""); i > 0 {
					_ = b.inner.DeleteAll(ctx, keys[:i])
				}
				return b.inner.DeleteAll(ctx, keys)
			}
		}},
		{defect: "there is one batch", rules: []string{"deleteall/many"}, breakIt: func(b *broken) {
			b.deleteAll = func(ctx context.Context, keys []string) error {
				return b.inner.DeleteAll(ctx, keys[:min(brokenPage, len(keys))])
			}
		}},
		{defect: "the caller's keys are sorted", rules: []string{"deleteall/argument-kept"}, breakIt: func(b *broken) {
			b.deleteAll = func(ctx context.Context, keys []string) error {
				slices.Sort(keys)
				return b.inner.DeleteAll(ctx, keys)
			}
		}},
		{defect: "Delete empties before it removes", rules: []string{"concurrency/set-beside-delete"}, breakIt: func(b *broken) {
			b.delete = func(ctx context.Context, key string, opts *blob.DeleteOptions) error {
				_, _ = b.inner.Set(ctx, key, blob.Bytes(nil), nil)
				patiently(never)
				return b.inner.Delete(ctx, key, opts)
			}
		}},
		{defect: "Restore needs a deleted key", rules: []string{"restore/existing", "restore/idempotent"}, breakIt: func(b *broken) {
			b.restore = func(ctx context.Context, key string) (blob.Info, error) {
				if _, err := b.inner.Stat(ctx, key); err == nil {
					return blob.Info{}, fails(blob.OpRestore, key, blob.ErrNotFound)
				}
				return b.inner.Restore(ctx, key)
			}
		}},
		{defect: "Restore brings back over what is there", rules: []string{"restore/existing"}, breakIt: func(b *broken) {
			first := keepFirst(b)
			b.restore = func(ctx context.Context, key string) (blob.Info, error) {
				if d, ok := first.Load(key); ok {
					return b.inner.Set(ctx, key, blob.Bytes(d.([]byte)), nil)
				}
				return b.inner.Restore(ctx, key)
			}
		}},
		{defect: "Restore of nothing succeeds", rules: []string{"restore/never-there"}, breakIt: func(b *broken) {
			b.restore = func(_ context.Context, key string) (blob.Info, error) { return blob.Info{Key: key}, nil }
		}},
		{defect: "Restore is announced to be missing and works", rules: []string{"restore/unsupported"}, breakIt: func(b *broken) {
			b.caps = func() blob.Capabilities {
				c := b.inner.Capabilities()
				c.Restore = false
				return c
			}
		}},
		{defect: "Restore loses metadata", rules: []string{"restore/deleted"}, breakIt: func(b *broken) {
			b.restore = func(ctx context.Context, key string) (blob.Info, error) {
				if _, err := b.inner.Restore(ctx, key); err != nil {
					return blob.Info{}, err
				}
				o, _ := b.inner.Get(ctx, key, nil)
				return b.inner.Set(ctx, key, blob.Bytes(o.Data), nil)
			}
		}},
		{defect: "Restore undoes the first delete", rules: []string{"restore/newest"}, breakIt: func(b *broken) {
			first := keepFirst(b)
			b.restore = func(ctx context.Context, key string) (blob.Info, error) {
				d, _ := first.Load(key)
				return b.inner.Set(ctx, key, blob.Bytes(d.([]byte)), nil)
			}
		}},
		{defect: "DeleteAll is for ever", rules: []string{"restore/after-deleteall"}, breakIt: func(b *broken) {
			var gone sync.Map
			b.deleteAll = func(ctx context.Context, keys []string) error {
				for _, k := range keys {
					gone.Store(k, true)
				}
				return b.inner.DeleteAll(ctx, keys)
			}
			b.restore = func(ctx context.Context, key string) (blob.Info, error) {
				if _, ok := gone.Load(key); ok {
					return blob.Info{}, fails(blob.OpRestore, key, blob.ErrNotFound)
				}
				return b.inner.Restore(ctx, key)
			}
		}},
		{defect: "Restore returns another version", rules: []string{"restore/conditions", "restore/deleted"}, breakIt: func(b *broken) {
			b.restore = func(ctx context.Context, key string) (blob.Info, error) {
				info, err := b.inner.Restore(ctx, key)
				info.Version += "x"
				return info, err
			}
		}},
	}
}

// keepFirst keeps the first content of each key that is deleted.
func keepFirst(b *broken) *sync.Map {
	var first sync.Map
	b.delete = func(ctx context.Context, key string, opts *blob.DeleteOptions) error {
		if o, err := b.inner.Get(ctx, key, nil); err == nil {
			first.LoadOrStore(key, o.Data)
		}
		return b.inner.Delete(ctx, key, opts)
	}
	return &first
}
