package blobtest

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

func readMutations() []mutation {
	return []mutation{
		{defect: "the last byte is lost", rules: []string{"get/whole-object"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, _ blob.GetOptions) error { o.Data = o.Data[:max(len(o.Data)-1, 0)]; return nil })
		}},
		{defect: "one bit is wrong", rules: []string{"get/whole-object", "get/large-object", "range/exact"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, _ blob.GetOptions) error {
				o.Data = slices.Clone(o.Data)
				o.Data[len(o.Data)/2] ^= 4
				return nil
			})
		}},
		{defect: "an empty object is not found", rules: []string{"get/empty-object"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, _ blob.GetOptions) error {
				if o.Size == 0 {
					return fails(blob.OpGet, o.Key, blob.ErrNotFound)
				}
				return nil
			})
		}},
		{defect: "the first part is taken for the object", rules: []string{"get/large-object", "set/sizes-bytes", "set/round-trip"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, _ blob.GetOptions) error { o.Data = o.Data[:min(len(o.Data), 256)]; return nil })
		}},
		{defect: "an empty range does not ask the store", rules: []string{"get/missing-key"}, breakIt: func(b *broken) {
			b.get = func(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
				if opts != nil && (opts.Range == blob.Span(0, 0) || opts.Range == blob.Last(0)) {
					return blob.Object{Info: blob.Info{Key: key}}, nil
				}
				return b.inner.Get(ctx, key, opts)
			}
		}},
		{defect: "ranges lose metadata", rules: []string{"get/info"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, opts blob.GetOptions) error {
				if !opts.Range.IsWhole() {
					o.Metadata = nil
				}
				return nil
			})
		}},
		{defect: "a read condition never holds", rules: []string{"get/if-version"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, opts blob.GetOptions) error {
				if !opts.If.IsZero() {
					return fails(blob.OpGet, o.Key, blob.ErrPrecondition)
				}
				return nil
			})
		}},
		{defect: "read conditions are dropped", rules: []string{"get/if-version-mismatch", "get/if-invalid", "getranges/if-version"}, breakIt: func(b *broken) {
			b.getOptions(func(o *blob.GetOptions) { o.If = blob.Condition{} })
		}},
		{defect: "the checksum of the whole is compared with a part", rules: []string{"get/want"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, opts blob.GetOptions) error {
				if opts.Want.HasCRC32C && castagnoli(o.Data) != opts.Want.CRC32C {
					return fails(blob.OpGet, o.Key, blob.ErrCorrupt)
				}
				return nil
			})
		}},
		{defect: "Want is ignored", rules: []string{"get/want-size-larger", "get/want-size-smaller", "get/want-crc", "get/want-invalid", "getranges/want"}, breakIt: func(b *broken) {
			b.getOptions(func(o *blob.GetOptions) { o.Want = blob.Want{} })
		}},
		{defect: "Dst is ignored", rules: []string{"get/dst"}, breakIt: func(b *broken) {
			b.getOptions(func(o *blob.GetOptions) { o.Dst = nil })
		}},
		{defect: "the capacity of Dst is used", rules: []string{"get/dst-short"}, breakIt: func(b *broken) {
			b.getOptions(func(o *blob.GetOptions) { o.Dst = o.Dst[:cap(o.Dst)] })
		}},
		{defect: "without the cache there is nothing", rules: []string{"get/skip-cache"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, opts blob.GetOptions) error {
				if opts.SkipCache {
					o.Data = nil
				}
				return nil
			})
		}},
		{defect: "there is no MaxGet", rules: []string{"get/max-get"}, breakIt: func(*broken) {}, config: Config{
			MaxGet: func(*testing.T, int64) blob.Blob { return memblob.New(nil) },
		}},
		{defect: "MaxGet bounds each range and not the sum", rules: []string{"get/max-get"}, breakIt: func(*broken) {}, config: Config{
			MaxGet: func(_ *testing.T, n int64) blob.Blob {
				b := newBroken(memblob.New(&memblob.Options{MaxGet: n}))
				b.oneByOne(never)
				return b
			},
		}},
	}
}

// rangeOf returns a mutation of how ranges are understood.
func rangeOf(change func(r blob.Range, size int64) (blob.Range, bool)) func(b *broken) {
	return func(b *broken) {
		b.get = func(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
			if opts == nil {
				return b.inner.Get(ctx, key, nil)
			}
			info, _ := b.inner.Stat(ctx, key)
			o := *opts
			var ok bool
			if o.Range, ok = change(o.Range, info.Size); !ok {
				return blob.Object{}, fails(blob.OpGet, key, blob.ErrInvalidRange)
			}
			return b.inner.Get(ctx, key, &o)
		}
	}
}

// span returns what a Span was made of.
func span(r blob.Range) (off, n int64, ok bool) {
	off, hasStart := r.Start()
	n, hasLimit := r.Limit()
	return off, n, hasStart && hasLimit
}

// oneByOne makes GetRanges a loop of Gets without a common version.
func (b *broken) oneByOne(between func() bool) {
	b.getRanges = func(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) (os []blob.Object, err error) {
		for _, r := range rs {
			var o blob.GetOptions
			if opts != nil {
				o = *opts
			}
			o.Range = r
			obj, err := b.inner.Get(ctx, key, &o)
			if err != nil {
				return nil, err
			}
			os = append(os, obj)
			patiently(between)
		}
		return os, nil
	}
}

func rangesMutations() []mutation {
	return []mutation{
		{defect: "the end of a range is inclusive", rules: []string{"range/exact"}, breakIt: rangeOf(func(r blob.Range, _ int64) (blob.Range, bool) {
			if off, n, ok := span(r); ok {
				return blob.Span(off, n+1), true
			}
			return r, true
		})},
		{defect: "Info.Size is that of the range", rules: []string{"range/exact", "range/clipped", "range/last"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, _ blob.GetOptions) error { o.Size = int64(len(o.Data)); return nil })
		}},
		{defect: "a range past the end is invalid", rules: []string{"range/clipped"}, breakIt: rangeOf(func(r blob.Range, size int64) (blob.Range, bool) {
			off, n, ok := span(r)
			return r, !ok || n <= size-off
		})},
		{defect: "an offset at the end is invalid", rules: []string{"range/at-the-end", "range/last"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, _ blob.GetOptions) error {
				if o.Offset == o.Size {
					return fails(blob.OpGet, o.Key, blob.ErrInvalidRange)
				}
				return nil
			})
		}},
		{defect: "an offset beyond the end is empty", rules: []string{"range/beyond-the-end"}, breakIt: rangeOf(func(r blob.Range, size int64) (blob.Range, bool) {
			if off, ok := r.Start(); ok && off > size {
				return blob.From(size), true
			}
			return r, true
		})},
		{defect: "no bytes means all", rules: []string{"range/empty"}, breakIt: rangeOf(func(r blob.Range, _ int64) (blob.Range, bool) {
			if off, n, ok := span(r); ok && n == 0 {
				return blob.From(off), true
			}
			return r, true
		})},
		{defect: "a suffix longer than the object is invalid", rules: []string{"range/last"}, breakIt: rangeOf(func(r blob.Range, size int64) (blob.Range, bool) {
			_, isStart := r.Start()
			n, _ := r.Limit()
			return r, isStart || n <= size
		})},
		{defect: "offset plus length overflows", rules: []string{"range/huge"}, breakIt: rangeOf(func(r blob.Range, _ int64) (blob.Range, bool) {
			off, n, ok := span(r)
			return r, !ok || n <= math.MaxInt64-off
		})},
		{defect: "negative numbers are zero", rules: []string{"range/negative"}, breakIt: rangeOf(func(r blob.Range, _ int64) (blob.Range, bool) {
			if r.Check() != nil {
				return blob.Range{}, true
			}
			return r, true
		})},
		{defect: "a range ends with its part", rules: []string{"range/across-parts"}, breakIt: func(b *broken) {
			b.got(func(o *blob.Object, _ blob.GetOptions) error {
				o.Data = o.Data[:min(int64(len(o.Data)), 256-o.Offset%256)]
				return nil
			})
		}},
		{defect: "ranges come in order of offset", rules: []string{"getranges/callers-order"}, breakIt: func(b *broken) {
			b.getRanges = func(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
				os, err := b.inner.GetRanges(ctx, key, rs, opts)
				slices.SortFunc(os, func(a, b blob.Object) int { return cmp.Compare(a.Offset, b.Offset) })
				return os, err
			}
		}},
		{defect: "no ranges ask the store", rules: []string{"getranges/none"}, breakIt: func(b *broken) {
			b.getRanges = func(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
				if _, err := b.inner.Stat(ctx, key); len(rs) == 0 && err != nil {
					return nil, err
				}
				return b.inner.GetRanges(ctx, key, rs, opts)
			}
		}},
		{defect: "a bad range is left out", rules: []string{"getranges/one-bad"}, breakIt: func(b *broken) {
			b.getRanges = func(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
				info, err := b.inner.Stat(ctx, key)
				if err != nil {
					return nil, err
				}
				return b.inner.GetRanges(ctx, key, slices.DeleteFunc(slices.Clone(rs), func(r blob.Range) bool {
					_, _, err := r.Resolve(info.Size)
					return err != nil
				}), opts)
			}
		}},
		{defect: "empty ranges of a missing key are found", rules: []string{"getranges/missing-key"}, breakIt: func(b *broken) {
			b.getRanges = func(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
				if len(rs) == 1 && rs[0] == blob.Span(0, 0) {
					return make([]blob.Object, 1), nil
				}
				return b.inner.GetRanges(ctx, key, rs, opts)
			}
		}},
		{defect: "options that GetRanges has no use for are ignored", rules: []string{"getranges/options"}, breakIt: func(b *broken) {
			b.getOptions(func(o *blob.GetOptions) { o.Range, o.Dst = blob.Range{}, nil })
		}},
		{defect: "ranges are of different versions", rules: []string{"getranges/one-version"}, breakIt: func(b *broken) { b.oneByOne(never) }},
		{defect: "the caller's ranges are sorted", rules: []string{"getranges/argument-kept"}, breakIt: func(b *broken) {
			b.getRanges = func(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
				os, err := b.inner.GetRanges(ctx, key, rs, opts)
				slices.Reverse(rs)
				return os, err
			}
		}},
	}
}
