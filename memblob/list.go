package memblob

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

// page is how many keys are looked at under one hold of the lock.
const page = 256

// List implements blob.Blob. Nothing is copied but a page at a time: each page begins after the last key of
// the one before, so that what changes in between appears or not, and nothing appears twice.
func (s *Store) List(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		if err := s.gate.Enter(ctx, blob.OpList, prefix); err != nil {
			yield(blob.Info{}, named(err))
			return
		}
		defer s.gate.Leave()
		o, err := blob.CheckList(prefix, opts)
		if err != nil {
			yield(blob.Info{}, named(err))
			return
		}
		w := walk{prefix: prefix, delimiter: o.Delimiter, start: o.StartAfter, after: o.StartAfter}
		for more := true; more; {
			var infos []blob.Info
			infos, more = s.page(&w)
			for _, info := range infos {
				if err := ctx.Err(); err != nil {
					yield(blob.Info{}, refuse(blob.OpList, prefix, err))
					return
				}
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

// walk is the position of one listing.
type walk struct {
	prefix, delimiter string
	start             string // the caller's StartAfter
	after             string // start at first, then the last key or common prefix dealt with
	folded            bool   // after is a common prefix: all that begins with it is dealt with
}

// past reports whether key comes after everything dealt with. It is monotonic in key: what begins with a common
// prefix lies together, directly after it.
func (w *walk) past(key string) bool {
	return key > w.after && !(w.folded && strings.HasPrefix(key, w.after))
}

// fold returns the common prefix that key belongs to.
func (w *walk) fold(key string) (string, bool) {
	if w.delimiter == "" {
		return "", false
	}
	head, _, ok := strings.Cut(key[len(w.prefix):], w.delimiter)
	return w.prefix + head + w.delimiter, ok
}

// page returns the next infos, and whether there may be more.
func (s *Store) page(w *walk) (infos []blob.Info, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range page {
		i, _ := slices.BinarySearchFunc(s.mu.keys, w, func(key string, w *walk) int {
			if key < w.prefix || !w.past(key) {
				return -1
			}
			return 1
		})
		if i == len(s.mu.keys) || !strings.HasPrefix(s.mu.keys[i], w.prefix) {
			return infos, false
		}
		key := s.mu.keys[i]
		if common, ok := w.fold(key); ok {
			w.after, w.folded = common, true
			// StartAfter may lie inside the group: the keys after it exist, their common prefix is not after it.
			if common > w.start {
				infos = append(infos, blob.Info{Key: common, IsPrefix: true})
			}
			continue
		}
		w.after, w.folded = key, false
		o := s.mu.objects[key].info
		infos = append(infos, blob.Info{Key: key, Size: o.Size, Version: o.Version, ModTime: o.ModTime})
	}
	return infos, true
}
