package fileblob

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

// A listing holds the names of a directory in sorted windows, smallest first: half of what is left of listBudget bytes in
// each directory on the way down, but at least a 64th of it.
const (
	listBudget = 1 << 20
	minWindow  = 64 // of listBudget
	nameCost   = 64 // bytes of an entry, besides its name and text
)

// List implements blob.Blob. The walk goes directory by directory and enters only those that can hold keys asked for.
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
		l := &lister{
			store: s, ctx: ctx, yield: yield,
			prefix: prefix, delimiter: o.Delimiter, start: o.StartAfter, after: o.StartAfter,
		}
		if err := l.run(); err != nil {
			yield(blob.Info{}, fail(blob.OpList, prefix, blob.NotApplied, err))
		}
	}
}

// lister is one listing.
type lister struct {
	store *Store
	ctx   context.Context
	yield func(blob.Info, error) bool
	done  bool // the caller broke out of the loop

	prefix, delimiter string
	start             string // the caller's StartAfter
	after             string // start at first, then the last key or common prefix dealt with
	folded            bool   // after is a common prefix: all that begins with it is dealt with
}

func (l *lister) run() error {
	dirs, rest := locateDirs(l.prefix)
	c, err := l.store.walk(dirs)
	defer c.close()
	if err == nil {
		// A directory of its own: Names moves a position that is shared by all who use one open directory.
		var d directory
		if d, err = c.last().Dir("."); err == nil {
			defer func() { _ = d.Close() }()
			return l.walk(d, strings.TrimSuffix(l.prefix, rest), l.store.listBudget)
		}
	}
	if isAbsent(err) {
		return nil
	}
	return err
}

// walk lists the directory in which all keys begin with base.
func (l *lister) walk(d directory, base string, budget int) error {
	budget /= 2
	for from, all := "", false; !all; {
		var entries []entry
		var err error
		entries, all, err = l.window(d, base, from, max(budget, l.store.listBudget/minWindow))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			if err := l.visit(d, base, e, budget); err != nil || l.done {
				return err
			}
			from = e.text
		}
	}
	return nil
}

// window returns the first entries of the directory after the text from, sorted, as many as fit into limit bytes, and whether
// those are all.
func (l *lister) window(d directory, base, from string, limit int) (entries []entry, all bool, err error) {
	w := nameWindow{limit: limit}
	err = d.Names(func(name string) bool {
		if e, ok := parseEntry(name); ok && (e.text > from || from == "") && l.wants(base+e.text, e.object) {
			w.add(e)
		}
		return l.ctx.Err() == nil
	})
	if isAbsent(err) { // pruned meanwhile
		err = nil
	}
	if err == nil {
		err = l.ctx.Err()
	}
	w.shrink()
	return w.entries, !w.full, err
}

// nameWindow keeps the smallest of the entries added to it, about limit bytes of them.
type nameWindow struct {
	limit   int
	entries []entry
	size    int
	full    bool   // something has been left out
	last    string // if full: nothing greater gets in
}

func (e entry) cost() int { return len(e.name) + len(e.text) + nameCost }

func (w *nameWindow) add(e entry) {
	if w.full && e.text > w.last {
		return
	}
	w.entries = append(w.entries, e)
	// Sorting only at twice the limit makes the cost of a name logarithmic.
	if w.size += e.cost(); w.size > 2*w.limit {
		w.shrink()
	}
}

// shrink sorts the entries and drops the greatest that are beyond the limit. The first always stays, so that a listing gets on.
func (w *nameWindow) shrink() {
	// A file system may tell a name twice that is replaced while the directory is read.
	slices.SortFunc(w.entries, func(a, b entry) int { return strings.Compare(a.text, b.text) })
	w.entries = slices.CompactFunc(w.entries, func(a, b entry) bool { return a.text == b.text })
	w.size = 0
	for i, e := range w.entries {
		if w.size+e.cost() > w.limit && i > 0 {
			clear(w.entries[i:])
			w.entries, w.full, w.last = w.entries[:i], true, w.entries[i-1].text
			return
		}
		w.size += e.cost()
	}
}

// wants reports whether the key full, or for a directory any key that begins with full, may be to be listed.
func (l *lister) wants(full string, object bool) bool {
	if l.folded && strings.HasPrefix(full, l.after) {
		return false
	}
	if object {
		return full > l.after && strings.HasPrefix(full, l.prefix)
	}
	if !strings.HasPrefix(full, l.prefix) && !strings.HasPrefix(l.prefix, full) {
		return false
	}
	return full >= l.after || strings.HasPrefix(l.after, full)
}

// fold returns the common prefix to which all that begins with full belongs.
func (l *lister) fold(full string) (string, bool) {
	if l.delimiter == "" || !strings.HasPrefix(full, l.prefix) {
		return "", false
	}
	head, _, ok := strings.Cut(full[len(l.prefix):], l.delimiter)
	return l.prefix + head + l.delimiter, ok
}

func (l *lister) visit(d directory, base string, e entry, budget int) error {
	full := base + e.text
	if !l.wants(full, e.object) { // the position has moved on since the window was read
		return nil
	}
	common, folds := l.fold(full)
	if folds && common <= l.start {
		return nil // StartAfter lies inside the group: its keys are after it, their common prefix is not
	}
	info, found, err := l.look(d, base, e, budget, folds)
	if err != nil || !found {
		return err
	}
	if folds {
		info = blob.Info{Key: common, IsPrefix: true}
	}
	l.after, l.folded = info.Key, folds
	l.done = !l.yield(info, nil)
	return nil
}

// look returns the info of an object. A directory is walked, unless all it holds folds into one common prefix: then found
// tells whether it holds an object.
func (l *lister) look(d directory, base string, e entry, budget int, folds bool) (info blob.Info, found bool, err error) {
	if e.object {
		info, err = l.store.infoOf(d, e.name, base+e.text)
	} else {
		var sub directory
		if sub, err = d.Dir(e.name); err == nil {
			defer func() { _ = sub.Close() }()
			if folds {
				found, err = l.any(sub, base+e.text)
			} else {
				err = l.walk(sub, base+e.text, budget)
			}
		}
	}
	if isAbsent(err) { // gone since the window was read, or foreign
		return info, false, nil
	}
	return info, found || e.object, err
}

func (s *Store) infoOf(d directory, name, key string) (blob.Info, error) {
	o, err := s.openKey(d, name, key)
	if err != nil && !isAbsent(err) {
		return blob.Info{}, &damagedError{key, err}
	}
	if err != nil {
		return blob.Info{}, err
	}
	defer s.closeObject(o)
	return blob.Info{Key: o.key, Size: o.size, Version: o.version, ModTime: o.modTime}, nil
}

// any reports whether a directory, or one below it, holds an object. An empty directory, as a crash may leave behind, is no common prefix.
func (l *lister) any(d directory, base string) (found bool, err error) {
	nameErr := d.Names(func(name string) bool {
		e, ok := parseEntry(name)
		if !ok {
			return true
		}
		if err = l.ctx.Err(); err != nil {
			return false
		}
		_, found, err = l.look(d, base, e, 0, true)
		return !found && err == nil
	})
	if err == nil && nameErr != nil && !isAbsent(nameErr) {
		err = nameErr
	}
	return found, err
}
