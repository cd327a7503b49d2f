package blobtest

import (
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
)

func restoreRules() []rule {
	return []rule{
		{name: "restore/existing", says: "Restore of a key that exists leaves it as it is and returns its Info, on every store.", run: restoreExisting},
		{name: "restore/never-there", says: "Restore of a key that was never there is ErrNotFound on a store that keeps, ErrUnsupported on one that does not.", run: restoreNever},
		{name: "restore/unsupported", says: "On a store that keeps nothing Restore of a deleted key is ErrUnsupported, and the key stays absent.", needs: needsNoRestore, run: restoreUnsupported},
		{name: "restore/deleted", says: "Restore brings back the deleted object whole: content, metadata and content type.", needs: needsRestore, run: restoreDeleted},
		{name: "restore/newest", says: "Restore undoes the newest delete.", needs: needsRestore, run: restoreNewest},
		{name: "restore/idempotent", says: "A second Restore changes nothing, and the key can be deleted and restored again.", needs: needsRestore, run: restoreTwice},
		{name: "restore/after-deleteall", says: "What DeleteAll deleted can be restored too.", needs: needsRestore, run: restoreDeleteAll},
		{name: "restore/conditions", says: "A restored object has a version that conditions accept.", needs: func(c *Config, caps blob.Capabilities) string {
			if why := needsRestore(c, caps); why != "" {
				return why
			}
			return needsConditions(c, caps)
		}, run: restoreConditions},
	}
}

func needsRestore(_ *Config, caps blob.Capabilities) string {
	if !caps.Restore {
		return "the store keeps no deleted objects; see restore/unsupported"
	}
	return ""
}

func needsNoRestore(_ *Config, caps blob.Capabilities) string {
	if caps.Restore {
		return "the store keeps deleted objects"
	}
	return ""
}

// restores checks that Restore of key succeeds and the object is then d.
func (e *env) restores(key string, d []byte) blob.Info {
	info, err := e.store.Restore(e.ctx, key)
	if err != nil {
		e.Errorf("Restore(%q): %v", key, err)
		return info
	}
	e.isInfo(info, key, int64(len(d)))
	e.holds(key, d)
	if v := e.mustStat(key).Version; v != info.Version {
		e.Errorf("Restore(%q) returned version %q, Stat says %q", key, info.Version, v)
	}
	return info
}

func restoreExisting(e *env) {
	k, d := e.key("x"), e.data("2", 100)
	e.mustSet(k, e.data("1", 50), nil)
	e.mustSet(k, d, nil)
	before := e.mustStat(k)
	e.restores(k, d)
	e.sameInfo(e.mustStat(k), before)

	again := e.key("again") // deleted once and set anew: there is nothing to undo
	e.mustSet(again, e.data("1", 50), nil)
	e.mustDelete(again)
	e.mustSet(again, d, nil)
	e.restores(again, d)
}

func (e *env) restoreKind() error {
	if e.caps.Restore {
		return blob.ErrNotFound
	}
	return blob.ErrUnsupported
}

func restoreNever(e *env) {
	k := e.key("never")
	_, err := e.store.Restore(e.ctx, k)
	e.refused(err, blob.OpRestore, k, e.restoreKind())
	e.absent(k)
}

func restoreUnsupported(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 100), nil)
	e.mustDelete(k)
	_, err := e.store.Restore(e.ctx, k)
	e.refused(err, blob.OpRestore, k, blob.ErrUnsupported)
	e.absent(k)
}

func restoreDeleted(e *env) {
	for _, size := range []int64{0, 100, 3*e.PartSize + 1} {
		k := e.key(fmt.Sprint(size))
		d := e.data(k, size)
		e.mustSet(k, d, &blob.SetOptions{Metadata: map[string]string{"a": "b"}, ContentType: "text/plain"})
		e.mustDelete(k)
		e.absent(k)
		e.restores(k, d)
		if s := e.mustStat(k); s.Metadata["a"] != "b" || len(s.Metadata) != 1 || s.ContentType != "text/plain" {
			e.Errorf("restored with metadata %v and content type %q", s.Metadata, s.ContentType)
		}
		if got := e.keys(k, nil); len(got) != 1 {
			e.Errorf("after Restore List yields %q", got)
		}
	}
}

func restoreNewest(e *env) {
	k := e.key("x")
	for _, label := range []string{"1", "2"} {
		e.mustSet(k, e.data(label+" overwritten", 70), nil)
		e.mustSet(k, e.data(label, 100), nil)
		e.mustDelete(k)
	}
	e.restores(k, e.data("2", 100))
}

func restoreTwice(e *env) {
	k, d := e.key("x"), e.data("x", 100)
	e.mustSet(k, d, nil)
	for range 2 {
		e.mustDelete(k)
		e.mustDelete(k) // a delete that found nothing is not the newest delete
		e.restores(k, d)
		e.restores(k, d)
	}
}

func restoreDeleteAll(e *env) {
	e.setKeys("a", "b")
	if err := e.store.DeleteAll(e.ctx, []string{e.key("a"), e.key("b")}); err != nil {
		e.Fatalf("DeleteAll: %v", err)
	}
	e.restores(e.key("b"), []byte("b"))
	e.absent(e.key("a"))
}

func restoreConditions(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("1", 100), nil)
	e.mustDelete(k)
	v := e.restores(k, e.data("1", 100)).Version
	_, err := e.setIf(k, nil, blob.IfAbsent())
	e.refused(err, blob.OpSet, k, blob.ErrExists)
	e.mustSetIf(k, e.data("2", 100), blob.IfVersion(v))
	e.holds(k, e.data("2", 100))
}
