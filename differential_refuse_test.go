package wholeblob_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/blob"
)

// refused draws a call that no store takes.
func (d *differ) refused(t *rapid.T) {
	src, ok := blob.Bytes([]byte("x")), "a"
	set := func(key string, src blob.Source, opts *blob.SetOptions) func(context.Context, *side) error {
		return func(ctx context.Context, s *side) error { _, err := s.Set(ctx, key, src, opts); return err }
	}
	get := func(key string, opts *blob.GetOptions) func(context.Context, *side) error {
		return func(ctx context.Context, s *side) error { _, err := s.Get(ctx, key, opts); return err }
	}
	ranges := func(rs []blob.Range, opts *blob.GetOptions) func(context.Context, *side) error {
		return func(ctx context.Context, s *side) error { _, err := s.GetRanges(ctx, ok, rs, opts); return err }
	}
	list := func(prefix string, opts *blob.ListOptions) func(context.Context, *side) error {
		return func(ctx context.Context, s *side) error {
			for _, err := range s.List(ctx, prefix, opts) {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	calls := map[string]func(context.Context, *side) error{
		"set of no source":               set(ok, blob.Source{}, nil),
		"set of a spent stream":          set(ok, spent(), nil),
		"set with a negative size":       set(ok, blob.ReaderAt(strings.NewReader(""), -1), nil),
		"set of an empty version":        set(ok, src, &blob.SetOptions{If: blob.IfVersion("")}),
		"set with a metadata key":        set(ok, src, &blob.SetOptions{Metadata: map[string]string{"a-b": ""}}),
		"set with our metadata":          set(ok, src, &blob.SetOptions{Metadata: map[string]string{"wholeblobx": ""}}),
		"set with a metadata value":      set(ok, src, &blob.SetOptions{Metadata: map[string]string{"a": "é"}}),
		"set with too much metadata":     set(ok, src, &blob.SetOptions{Metadata: map[string]string{"a": strings.Repeat("x", 600)}}),
		"set with a content type":        set(ok, src, &blob.SetOptions{ContentType: "text/plain\r\nx: y"}),
		"get of no key":                  get("", nil),
		"get if absent":                  get(ok, &blob.GetOptions{If: blob.IfAbsent()}),
		"get of a negative offset":       get(ok, &blob.GetOptions{Range: blob.From(-1)}),
		"get of a negative length":       get(ok, &blob.GetOptions{Range: blob.Span(0, -1)}),
		"get of a negative end":          get(ok, &blob.GetOptions{Range: blob.Last(-1)}),
		"get of what wants no size":      get(ok, &blob.GetOptions{Want: blob.Want{Size: 1}}),
		"getRanges with a range":         ranges([]blob.Range{{}}, &blob.GetOptions{Range: blob.From(1)}),
		"getRanges with a Dst":           ranges([]blob.Range{{}}, &blob.GetOptions{Dst: []byte{1}}),
		"getRanges of a negative one":    ranges([]blob.Range{{}, blob.From(-1)}, nil),
		"list of a prefix without UTF-8": list("\xff", nil),
		"list after what is no UTF-8":    list("", &blob.ListOptions{StartAfter: "\xff"}),
		"list by what is no UTF-8":       list("", &blob.ListOptions{Delimiter: "\xff"}),
		"delete of no key":               func(ctx context.Context, s *side) error { return s.Delete(ctx, "", nil) },
		"delete if absent": func(ctx context.Context, s *side) error {
			return s.Delete(ctx, ok, &blob.DeleteOptions{If: blob.IfAbsent()})
		},
		"deleteAll with no key among the": func(ctx context.Context, s *side) error { return s.DeleteAll(ctx, []string{ok, "", "b"}) },
		"stat of no key":                  func(ctx context.Context, s *side) error { _, err := s.Stat(ctx, ""); return err },
		"restore of no key":               func(ctx context.Context, s *side) error { _, err := s.Restore(ctx, ""); return err },
		"deletePrefix of no prefix":       func(ctx context.Context, s *side) error { _, err := blob.DeletePrefix(ctx, s, ""); return err },
	}
	for _, key := range append([]string{"", "a\x00b", "a\x7f", "\ue000"}, oddKeys...) {
		calls[fmt.Sprintf("set of the key %.20q", key)] = set(key, src, nil)
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(calls))).Draw(t, "call")
	d.agree(t, name, func(ctx context.Context, s *side) (string, error) {
		err := calls[name](ctx, s)
		if err == nil {
			return "", fmt.Errorf("%s: %s was taken", s.name, name)
		}
		return "", err
	})
}

func spent() blob.Source {
	src := blob.Stream(strings.NewReader("x"), 1)
	src.Reader()
	return src
}

// cancelled calls with a context that is already done: nothing happens, and all say so.
func (d *differ) cancelled(t *rapid.T) {
	key := d.key(t)
	call := rapid.IntRange(0, 7).Draw(t, "call")
	d.agree(t, fmt.Sprintf("cancelled call %d of %q", call, key), func(ctx context.Context, s *side) (text string, err error) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		switch call {
		case 0:
			_, err = s.Get(ctx, key, nil)
		case 1:
			_, err = s.GetRanges(ctx, key, []blob.Range{{}}, nil)
		case 2:
			_, err = s.Set(ctx, key, blob.Bytes([]byte("never")), nil)
		case 3:
			_, err = s.Stat(ctx, key)
		case 4:
			for _, err = range s.List(ctx, "", nil) {
				text += "element"
			}
		case 5:
			err = s.Delete(ctx, key, nil)
		case 6:
			err = s.DeleteAll(ctx, []string{key})
		case 7:
			_, err = s.Restore(ctx, key)
		}
		return text, err
	})
}

func (d *differ) removePrefix(t *rapid.T) {
	prefix := rapid.SampledFrom([]string{"a", "a/", "a/b", "b", "é", "zz", "%"}).Draw(t, "prefix")
	d.agree(t, fmt.Sprintf("deletePrefix %q", prefix), func(ctx context.Context, s *side) (string, error) {
		n, err := blob.DeletePrefix(ctx, s, prefix)
		return fmt.Sprint(n), err
	})
}

func (d *differ) copy(t *rapid.T) {
	from, to := d.anyKey(t), d.key(t)
	n := d.write(to)
	d.copied = true
	text, cond := d.condition(t, true)
	d.agree(t, fmt.Sprintf("copy %d of %q to %q %s", n, from, to, text), func(ctx context.Context, s *side) (string, error) {
		info, err := blob.Copy(ctx, s, to, s, from, &blob.SetOptions{If: cond(s)})
		if err == nil {
			clear(s.versions) // on S3 equal content has equal versions, so earlier ones may be this one
		}
		return fmt.Sprintf("%q %d", info.Key, info.Size), err
	})
}

// everything compares all there is at the end.
func (d *differ) everything(t *rapid.T) {
	d.agree(t, "everything", func(ctx context.Context, s *side) (text string, err error) {
		for info, err := range s.List(ctx, "", nil) {
			if err != nil {
				return text, err
			}
			obj, err := s.Get(ctx, info.Key, &blob.GetOptions{Range: blob.Last(limit)})
			if err != nil {
				return text, err
			}
			text += objectText(obj) + "\n"
		}
		return text, nil
	})
}
