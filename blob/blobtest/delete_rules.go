package blobtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/wholeblob/wholeblob/blob"
)

func deleteRules() []rule {
	return []rule{
		{name: "delete/removes", says: "A deleted key is gone for every read, and only that key.", run: deleteRemoves},
		{name: "delete/missing-key", says: "Delete of a key that does not exist is no error.", run: deleteMissing},
		{name: "delete/if-version", says: "Delete with IfVersion removes that version and no other; a mismatch is ErrPrecondition and leaves the object.", needs: needsConditions, run: deleteIfVersion},
		{name: "delete/if-version-missing", says: "Delete with IfVersion of a missing key is no error.", needs: needsConditions, run: deleteIfVersionMissing},
		{name: "delete/if-invalid", says: "Delete with IfAbsent or an empty version is ErrInvalidOption before any I/O.", run: deleteIfInvalid},
		{name: "delete/at-most-once", says: "AtMostOnce changes nothing in what is deleted.", run: func(e *env) {
			e.mustSet(e.key("x"), nil, nil)
			if err := e.store.Delete(e.ctx, e.key("x"), &blob.DeleteOptions{AtMostOnce: true}); err != nil {
				e.Errorf("Delete: %v", err)
			}
			e.absent(e.key("x"))
		}},
	}
}

func deleteRemoves(e *env) {
	for _, size := range []int64{0, 100, 3*e.PartSize + 1} {
		k, d := e.key("b"), e.data("b", size)
		others := []string{"a", "b-", "b0", "ba"}
		e.setKeys(others...)
		e.mustSet(k, d, nil)
		e.mustDelete(k)
		e.absent(k)
		e.lists("", nil, others...)
		e.holds(e.key("ba"), []byte("ba"))
		e.mustSet(k, d, nil)
		e.holds(k, d)
	}
}

func deleteMissing(e *env) {
	k := e.key("x")
	for range 2 {
		if err := e.store.Delete(e.ctx, k, nil); err != nil {
			e.Errorf("Delete of a key that was never there: %v", err)
		}
	}
	e.mustSet(k, nil, nil)
	for range 2 {
		if err := e.store.Delete(e.ctx, k, nil); err != nil {
			e.Errorf("Delete, once more: %v", err)
		}
	}
	e.absent(k)
}

func (e *env) deleteIf(key string, c blob.Condition) error {
	return e.store.Delete(e.ctx, key, &blob.DeleteOptions{If: c})
}

func deleteIfVersion(e *env) {
	k, d := e.key("x"), e.data("2", 100)
	v1 := e.mustSet(k, e.data("1", 100), nil).Version
	v2 := e.mustSet(k, d, nil).Version
	for _, v := range []string{v1, "some-version", v2 + "x"} {
		e.refused(e.deleteIf(k, blob.IfVersion(v)), blob.OpDelete, k, blob.ErrPrecondition)
		e.holds(k, d)
	}
	if err := e.deleteIf(k, blob.IfVersion(v2)); err != nil {
		e.Errorf("Delete with IfVersion of the current version: %v", err)
	}
	e.absent(k)
}

func deleteIfVersionMissing(e *env) {
	k := e.key("x")
	if err := e.deleteIf(k, blob.IfVersion("some-version")); err != nil {
		e.Errorf("Delete with IfVersion of a key that was never there: %v", err)
	}
	v := e.mustSet(k, nil, nil).Version
	e.mustDelete(k)
	if err := e.deleteIf(k, blob.IfVersion(v)); err != nil {
		e.Errorf("Delete with IfVersion of a deleted key: %v", err)
	}
	e.absent(k)
}

func deleteIfInvalid(e *env) {
	k, d := e.key("x"), e.data("x", 10)
	e.mustSet(k, d, nil)
	for _, key := range []string{k, e.key("missing")} {
		for _, c := range []blob.Condition{blob.IfAbsent(), blob.IfVersion("")} {
			e.noRequests("Delete with "+c.String(), func() {
				e.refused(e.deleteIf(key, c), blob.OpDelete, key, blob.ErrInvalidOption)
			})
		}
	}
	e.holds(k, d)
}

func deleteAllRules() []rule {
	return []rule{
		{name: "deleteall/removes", says: "DeleteAll removes exactly the keys it names; missing and repeated ones count as deleted.", run: deleteAllRemoves},
		{name: "deleteall/none", says: "No keys: nil, without I/O.", run: deleteAllNone},
		{name: "deleteall/empty-key", says: "An empty key among them is ErrInvalidKey before any I/O: no key is deleted.", run: deleteAllEmptyKey},
		{name: "deleteall/many", says: "More keys than one batch are all deleted.", run: deleteAllMany},
		{name: "deleteall/argument-kept", says: "DeleteAll does not change the caller's slice of keys.", run: deleteAllArgument},
	}
}

func deleteAllRemoves(e *env) {
	e.setKeys("a", "b", "c", "d/e", "d/f")
	err := e.store.DeleteAll(e.ctx, []string{e.key("c"), e.key("missing"), e.key("a"), e.key("c"), e.key("d/e"), e.key("d")})
	if err != nil {
		e.Errorf("DeleteAll: %v", err)
	}
	e.lists("", nil, "b", "d/f")
	e.absent(e.key("a"))
	e.holds(e.key("b"), []byte("b"))
	if err := e.store.DeleteAll(e.ctx, []string{e.key("missing")}); err != nil {
		e.Errorf("DeleteAll of a missing key alone: %v", err)
	}
}

func deleteAllNone(e *env) {
	e.setKeys("a")
	for _, keys := range [][]string{nil, {}} {
		e.noRequests("DeleteAll of no keys", func() {
			if err := e.store.DeleteAll(e.ctx, keys); err != nil {
				e.Errorf("DeleteAll of no keys: %v", err)
			}
		})
	}
	e.lists("", nil, "a")
}

func deleteAllEmptyKey(e *env) {
	e.setKeys("a", "b")
	for _, keys := range [][]string{{""}, {e.key("a"), ""}, {"", e.key("b")}, {e.key("a"), "", e.key("b")}} {
		e.noRequests("DeleteAll with an empty key", func() {
			e.refused(e.store.DeleteAll(e.ctx, keys), blob.OpDeleteAll, "", blob.ErrInvalidKey)
		})
	}
	e.lists("", nil, "a", "b")
}

func deleteAllMany(e *env) {
	names := make([]string, e.ListKeys)
	keys := make([]string, 0, e.ListKeys)
	for i := range names {
		names[i] = fmt.Sprintf("%05d", i)
		if i != e.ListKeys/2 {
			keys = append(keys, e.key(names[i]))
		}
	}
	e.setKeys(names...)
	if err := e.store.DeleteAll(e.ctx, keys); err != nil {
		var d *blob.DeleteError
		if errors.As(err, &d) {
			e.Logf("%d keys failed", len(d.Failed))
		}
		e.Errorf("DeleteAll of %d keys: %v", len(keys), err)
	}
	e.lists("", nil, names[e.ListKeys/2])
}

func deleteAllArgument(e *env) {
	e.setKeys("a", "b", "c")
	keys := []string{e.key("c"), e.key("a"), e.key("a"), e.key("b")}
	was := slices.Clone(keys)
	if err := e.store.DeleteAll(e.ctx, keys); err != nil {
		e.Errorf("DeleteAll: %v", err)
	}
	if !slices.Equal(keys, was) {
		e.Errorf("the slice is %q after the call, was %q", keys, was)
	}
}
