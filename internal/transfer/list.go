package transfer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// List implements blob.Blob.
func (s *Store) List(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		o, err := blob.CheckList(prefix, opts)
		if err == nil {
			err = s.gate.Enter(ctx, blob.OpList, prefix)
		}
		if err != nil {
			yield(blob.Info{}, s.fail(blob.OpList, prefix, err))
			return
		}
		defer s.gate.Leave()
		l := listing{s: s, prefix: prefix, o: o, last: o.StartAfter}
		if err := l.run(ctx, yield); err != nil {
			yield(blob.Info{}, s.fail(blob.OpList, prefix, err))
		}
	}
}

// listing is one walk over the pages. INVARIANT: every yielded key is greater than last, so a page that comes twice, or
// a prefix that is repeated on each page, is not seen twice.
type listing struct {
	s      *Store
	prefix string
	o      blob.ListOptions
	last   string // the greatest key yielded, or StartAfter
	some   bool   // a key has been yielded: last is one
}

// run yields until the end (nil), until the consumer breaks (nil), or returns the error to be yielded.
func (l *listing) run(ctx context.Context, yield func(blob.Info, error) bool) error {
	if !l.s.traits.Ordered {
		return badReply(fmt.Errorf("%w: this store does not list in byte order", blob.ErrUnsupported))
	}
	req := ListRequest{Prefix: l.s.full(l.prefix), Delimiter: l.o.Delimiter}
	if l.o.StartAfter != "" && l.s.traits.StartAfter { // else admit passes over what comes before, page by page
		req.StartAfter = l.s.full(l.o.StartAfter)
	}
	var moves circle // of the pages since the last key: those with keys move on by themselves, in order
	for {
		page, err := l.page(ctx, req)
		if err != nil {
			return err
		}
		for _, info := range page.Infos {
			ok, err := l.admit(&info)
			switch {
			case err != nil:
				return err
			case ok && !yield(info, nil):
				return nil
			case ok:
				moves = circle{}
			}
		}
		switch {
		case !page.More:
			return nil
		case page.Token == "":
			return truncated("the listing goes on, but the store does not say where")
		case page.Token == req.Token:
			return badReply(fmt.Errorf("%w: the listing does not move on", blob.ErrCorrupt))
		}
		if err := moves.next(page.Token); err != nil {
			return err
		}
		req.Token = page.Token
	}
}

// page fetches one page and sorts keys among common prefixes, which services return apart from each other.
func (l *listing) page(ctx context.Context, req ListRequest) (page ListPage, err error) {
	err = l.s.do(ctx, call{op: blob.OpList, key: l.prefix, effect: retry.None}, func(ctx context.Context, _ attempt) error {
		page, err = l.s.r.List(ctx, req)
		return err
	})
	slices.SortStableFunc(page.Infos, func(a, b blob.Info) int { return cmp.Compare(a.Key, b.Key) })
	return page, err
}

// admit turns a stored Info into the caller's and reports whether to yield it.
func (l *listing) admit(info *blob.Info) (bool, error) {
	key, ok := strings.CutPrefix(info.Key, l.s.o.Prefix)
	switch {
	case !ok || !strings.HasPrefix(key, l.prefix):
		return false, badReply(fmt.Errorf("%w: the listing holds %q, which has another prefix", blob.ErrCorrupt, info.Key))
	case key == "" || key <= l.last && !l.some: // an object named like our own prefix; StartAfter inside a common prefix
		return false, nil
	case key == l.last:
		return false, nil // once more, on another page
	case key < l.last:
		return false, badReply(fmt.Errorf("%w: this store does not list in byte order: %q after %q", blob.ErrUnsupported, key, l.last))
	}
	l.last, l.some = key, true
	info.Key = key
	return true, nil
}
