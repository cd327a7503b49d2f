package blobtest

import (
	"errors"
	"slices"

	"github.com/wholeblob/wholeblob/blob"
)

func keyRules() []rule {
	return []rule{
		{name: "keys/round-trip", says: "Every valid key, alone in the store, goes byte for byte through Set, Get, Stat, List and Delete.", own: true, run: keysRoundTrip},
		{name: "keys/never-collide", says: "All valid keys exist beside each other, each with its own content.", own: true, run: keysCollide},
		{name: "keys/deleted-alone", says: "Deleting some keys leaves all the others.", own: true, run: keysDeletedAlone},
		{name: "keys/deleteall", says: "DeleteAll deletes every valid key under its own name.", own: true, run: keysDeleteAll},
		{name: "keys/refused-by-set", says: "Set refuses a key that some store could not hold with ErrInvalidKey, before any I/O and without touching a neighbour.", run: keysRefused},
		{name: "keys/refused-elsewhere", says: "Every other method accepts such a key: ErrNotFound, and nil for Delete and DeleteAll.", run: keysRefusedElsewhere},
		{name: "keys/empty", says: "The empty key is ErrInvalidKey for every method, before any I/O.", run: keysEmpty},
	}
}

// startClean deletes the keys of the table, which other runs may have left.
func (e *env) startClean() []namedKey {
	table := e.validKeys()
	for _, k := range table {
		// One by one: the batch call has a rule of its own. A store that fails here fails below.
		_ = e.store.Delete(e.ctx, k.key, nil)
	}
	return table
}

// dropAfter deletes the keys of the table at the end of the rule.
func (e *env) dropAfter(table []namedKey) {
	for _, k := range table {
		_ = e.store.Delete(e.ctx, k.key, nil)
	}
}

func keysRoundTrip(e *env) {
	table := e.startClean()
	for _, k := range table {
		e.Case(k.name, func(e *env) {
			d := e.data(k.key, 40)
			defer func() { _ = e.store.Delete(e.ctx, k.key, nil) }()
			e.absent(k.key)
			info, err := e.store.Set(e.ctx, k.key, blob.Bytes(d), nil)
			if err != nil {
				e.Fatalf("Set(%q): %v", k.key, err)
			}
			e.isInfo(info, k.key, 40)
			e.holds(k.key, d)
			e.isPart(e.mustGet(k.key, &blob.GetOptions{Range: blob.Span(3, 4)}), k.key, d, 3, 4)
			e.isInfo(e.mustStat(k.key), k.key, 40)
			infos, err := e.list(e.ctx, k.key, nil)
			if err != nil {
				e.Fatalf("List(%q): %v", k.key, err)
			}
			if len(infos) == 0 || infos[0].Key != k.key {
				e.Errorf("List(%q) does not yield the key first: %+v", k.key, infos)
			}
			if err := e.store.Delete(e.ctx, k.key, nil); err != nil {
				e.Errorf("Delete(%q): %v", k.key, err)
			}
			e.absent(k.key)
		})
	}
}

// setTable stores the whole table at once and returns what failed, by name of the key.
func (e *env) setTable(table []namedKey) map[string]error {
	failed := map[string]error{}
	for _, k := range table {
		if _, err := e.store.Set(e.ctx, k.key, blob.Bytes([]byte(k.name)), nil); err != nil {
			failed[k.name] = err
		}
	}
	return failed
}

// listed returns the keys of the table that a listing of the whole store yields, in its order.
func (e *env) listed(table []namedKey) []string {
	infos, err := e.list(e.ctx, "", nil)
	if err != nil {
		e.Fatalf("List: %v", err)
	}
	var keys []string
	for _, info := range infos {
		if slices.ContainsFunc(table, func(k namedKey) bool { return k.key == info.Key }) {
			keys = append(keys, info.Key)
		}
	}
	return keys
}

func keysCollide(e *env) {
	table := e.startClean()
	defer e.dropAfter(table)
	failed := e.setTable(table)
	keys := e.listed(table)
	if !slices.IsSorted(keys) {
		e.Errorf("List is not in byte order: %q", keys)
	}
	for _, k := range table {
		e.Case(k.name, func(e *env) {
			if err := failed[k.name]; err != nil {
				e.Fatalf("Set(%q) beside the other keys: %v", k.key, err)
			}
			e.holds(k.key, []byte(k.name))
			n := 0
			for _, key := range keys {
				if key == k.key {
					n++
				}
			}
			if n != 1 {
				e.Errorf("List yields %q %d times", k.key, n)
			}
		})
	}
}

func keysDeletedAlone(e *env) {
	table := e.startClean()
	defer e.dropAfter(table)
	failed := e.setTable(table)
	for i, k := range table {
		if i%2 == 0 {
			if err := e.store.Delete(e.ctx, k.key, nil); err != nil && failed[k.name] == nil {
				failed[k.name] = err
			}
		}
	}
	keys := e.listed(table)
	for i, k := range table {
		e.Case(k.name, func(e *env) {
			if err := failed[k.name]; err != nil {
				e.Fatalf("Set or Delete of %q: %v", k.key, err)
			}
			if i%2 == 0 {
				e.absent(k.key)
			} else {
				e.holds(k.key, []byte(k.name))
			}
			if got := slices.Contains(keys, k.key); got != (i%2 != 0) {
				e.Errorf("List yields %q: %v", k.key, got)
			}
		})
	}
}

func keysDeleteAll(e *env) {
	table := e.startClean()
	defer e.dropAfter(table)
	failed := e.setTable(table)
	all := make([]string, len(table))
	for i, k := range table {
		all[i] = k.key
	}
	err := e.store.DeleteAll(e.ctx, all)
	var de *blob.DeleteError
	if err != nil && !errors.As(err, &de) {
		e.Fatalf("DeleteAll: %v", err)
	}
	keys := e.listed(table)
	for _, k := range table {
		e.Case(k.name, func(e *env) {
			if err := failed[k.name]; err != nil {
				e.Fatalf("Set(%q) beside the other keys: %v", k.key, err)
			}
			if de != nil {
				for _, f := range de.Failed {
					if f.Key == k.key {
						e.Errorf("DeleteAll: %q failed: %v", f.Key, f.Err)
					}
				}
			}
			e.absent(k.key)
			if slices.Contains(keys, k.key) {
				e.Errorf("List yields %q after DeleteAll", k.key)
			}
		})
	}
}

func keysRefused(e *env) {
	neighbour, d := e.key("b"), e.data("b", 10)
	table := append(e.invalidKeys(), namedKey{"dot-dot-onto-neighbour", e.key("a/../b")}, namedKey{"dot-after-neighbour", neighbour + "."})
	for _, k := range table {
		e.Case(k.name, func(e *env) {
			e.mustSet(neighbour, d, nil)
			src, reads := untouched(10)
			e.noRequests("Set of an invalid key", func() {
				_, err := e.store.Set(e.ctx, k.key, src, nil)
				e.refused(err, blob.OpSet, k.key, blob.ErrInvalidKey)
			})
			if reads.Load() != 0 {
				e.Errorf("Set(%q) read its source", k.key)
			}
			e.holds(neighbour, d)
		})
	}
}

func keysRefusedElsewhere(e *env) {
	for _, k := range e.invalidKeys() {
		e.Case(k.name, func(e *env) {
			e.absent(k.key)
			_, err := e.store.GetRanges(e.ctx, k.key, []blob.Range{{}}, nil)
			e.refused(err, blob.OpGetRanges, k.key, blob.ErrNotFound)
			if err := e.store.Delete(e.ctx, k.key, nil); err != nil {
				e.Errorf("Delete(%q): %v", k.key, err)
			}
			if err := e.store.DeleteAll(e.ctx, []string{k.key}); err != nil {
				e.Errorf("DeleteAll(%q): %v", k.key, err)
			}
			if e.caps.Conditions {
				if err := e.deleteIf(k.key, blob.IfVersion("some-version")); err != nil {
					e.Errorf("Delete(%q) with IfVersion: %v", k.key, err)
				}
			}
			_, err = e.store.Restore(e.ctx, k.key)
			kind := blob.ErrNotFound
			if !e.caps.Restore && errors.Is(err, blob.ErrUnsupported) {
				kind = blob.ErrUnsupported // both sentences apply: nothing is kept, and no such key can be
			}
			e.refused(err, blob.OpRestore, k.key, kind)
		})
	}
}

func keysEmpty(e *env) {
	src, reads := untouched(10)
	e.noRequests("calls with an empty key", func() {
		_, err := e.store.Get(e.ctx, "", nil)
		e.refused(err, blob.OpGet, "", blob.ErrInvalidKey)
		_, err = e.store.GetRanges(e.ctx, "", []blob.Range{{}}, nil)
		e.refused(err, blob.OpGetRanges, "", blob.ErrInvalidKey)
		_, err = e.store.Set(e.ctx, "", src, nil)
		e.refused(err, blob.OpSet, "", blob.ErrInvalidKey)
		_, err = e.store.Stat(e.ctx, "")
		e.refused(err, blob.OpStat, "", blob.ErrInvalidKey)
		err = e.store.Delete(e.ctx, "", nil)
		e.refused(err, blob.OpDelete, "", blob.ErrInvalidKey)
		_, err = e.store.Restore(e.ctx, "")
		e.refused(err, blob.OpRestore, "", blob.ErrInvalidKey)
	})
	if reads.Load() != 0 {
		e.Errorf("Set read its source")
	}
}

func foreignRules() []rule {
	needs := func(c *Config, _ blob.Capabilities) string {
		if c.Foreign == nil {
			return "Config.Foreign is nil"
		}
		return ""
	}
	return []rule{
		{name: "foreign/listed", says: "List yields keys that Set would refuse as they are stored.", needs: needs, run: foreignListed},
		{name: "foreign/readable", says: "Every method but Set works on such a key.", needs: needs, run: foreignReadable},
	}
}

func foreignListed(e *env) {
	e.setKeys("a", "b")
	e.Foreign(e.rt, e.store, e.key("a."), []byte("foreign"))
	e.lists("", nil, "a", "a.", "b")
	e.lists("a", nil, "a", "a.")
}

func foreignReadable(e *env) {
	k, d := e.key("a."), []byte("foreign")
	e.Foreign(e.rt, e.store, k, d)
	e.holds(k, d)
	e.isInfo(e.mustStat(k), k, int64(len(d)))
	os, err := e.store.GetRanges(e.ctx, k, []blob.Range{blob.Span(1, 2)}, nil)
	if err != nil || len(os) != 1 {
		e.Fatalf("GetRanges: %d objects, %v", len(os), err)
	}
	e.isPart(os[0], k, d, 1, 2)
	if _, err := e.store.Restore(e.ctx, k); err != nil {
		e.Errorf("Restore of a key that exists: %v", err)
	}
	_, err = e.store.Set(e.ctx, k, blob.Bytes(d), nil)
	e.refused(err, blob.OpSet, k, blob.ErrInvalidKey)
	e.mustDelete(k)
	e.absent(k)
	e.Foreign(e.rt, e.store, k, d)
	if err := e.store.DeleteAll(e.ctx, []string{k}); err != nil {
		e.Errorf("DeleteAll: %v", err)
	}
	e.absent(k)
}
