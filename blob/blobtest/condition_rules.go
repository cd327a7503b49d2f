package blobtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/wholeblob/wholeblob/blob"
)

func conditionRules() []rule {
	return []rule{
		{name: "condition/if-absent", says: "Set with IfAbsent creates; on a key that exists it is ErrExists and leaves the object.", needs: needsConditions, run: ifAbsent},
		{name: "condition/if-absent-after-delete", says: "A deleted key is absent: Set with IfAbsent creates it again.", needs: needsConditions, run: ifAbsentAfterDelete},
		{name: "condition/if-version", says: "Set with IfVersion replaces that version and no other; a mismatch is ErrPrecondition and leaves the object.", needs: needsConditions, run: ifVersion},
		{name: "condition/if-version-missing", says: "Set with IfVersion of a missing key, deleted or never there, is ErrPrecondition.", needs: needsConditions, run: ifVersionMissing},
		{name: "condition/if-version-chain", says: "Each Set's version is the condition of the next; any older one fails.", needs: needsConditions, run: ifVersionChain},
		{name: "condition/version-from-anywhere", says: "The versions of Set, Get, Stat and List all serve as conditions.", needs: needsConditions, run: ifVersionFrom},
		{name: "condition/if-absent-race", says: "Of many concurrent Sets with IfAbsent exactly one wins; the others are ErrExists.", needs: needsConditions, run: ifAbsentRace},
		{name: "condition/if-version-race", says: "Of many concurrent Sets with IfVersion of one version exactly one wins; the others are ErrPrecondition.", needs: needsConditions, run: ifVersionRace},
		{name: "condition/counter", says: "A counter that is read and set with IfVersion by many loses no step.", needs: needsConditions, run: ifVersionCounter},
		{name: "condition/decided-at-commit", says: "A condition holds when the object becomes visible, not when the Set began.", needs: needsConditions, run: conditionAtCommit},
		{name: "condition/no-trace", says: "A Set that loses its condition leaves no trace of its content or metadata.", needs: needsConditions, run: conditionNoTrace},
		{name: "condition/unsupported", says: "A store that cannot honour conditions returns ErrUnsupported before any I/O; it never drops one.", needs: needsNoConditions, run: conditionUnsupported},
	}
}

func needsConditions(_ *Config, caps blob.Capabilities) string {
	if !caps.Conditions {
		return "the store honours no conditions; see condition/unsupported"
	}
	return ""
}

func needsNoConditions(_ *Config, caps blob.Capabilities) string {
	if caps.Conditions {
		return "the store honours conditions"
	}
	return ""
}

// conditionSizes are tried for every condition: it must mean the same in one request and in many parts.
func (e *env) conditionSizes(f func(size int64)) {
	for _, size := range []int64{0, 100, e.PartSize, 3*e.PartSize + 1} {
		f(size)
	}
}

func (e *env) setIf(key string, data []byte, c blob.Condition) (blob.Info, error) {
	return e.store.Set(e.ctx, key, blob.Bytes(data), &blob.SetOptions{If: c})
}

func (e *env) mustSetIf(key string, data []byte, c blob.Condition) blob.Info {
	info, err := e.setIf(key, data, c)
	if err != nil {
		e.Fatalf("Set(%q) of %d bytes with %v: %v", key, len(data), c, err)
	}
	return info
}

func ifAbsent(e *env) {
	e.conditionSizes(func(size int64) {
		k := e.key(fmt.Sprint(size))
		d := e.data("first", size)
		info := e.mustSetIf(k, d, blob.IfAbsent())
		e.isInfo(info, k, size)
		e.holds(k, d)
		for _, other := range []int64{0, 100, 3*e.PartSize + 1} {
			_, err := e.setIf(k, e.data("second", other), blob.IfAbsent())
			e.refused(err, blob.OpSet, k, blob.ErrExists)
		}
		e.holds(k, d)
		if v := e.mustStat(k).Version; v != info.Version {
			e.Errorf("the version is %q after refused Sets, was %q", v, info.Version)
		}
	})
}

func ifAbsentAfterDelete(e *env) {
	e.conditionSizes(func(size int64) {
		k := e.key(fmt.Sprint(size))
		e.mustSetIf(k, e.data("first", size), blob.IfAbsent())
		e.mustDelete(k)
		d := e.data("second", size)
		e.mustSetIf(k, d, blob.IfAbsent())
		e.holds(k, d)
	})
}

func ifVersion(e *env) {
	e.conditionSizes(func(size int64) {
		k := e.key(fmt.Sprint(size))
		v1 := e.mustSet(k, e.data("first", 50), nil).Version
		d := e.data("second", size)
		v2 := e.mustSetIf(k, d, blob.IfVersion(v1)).Version
		e.holds(k, d)
		for _, v := range []string{v1, "some-version", v2 + "x"} {
			_, err := e.setIf(k, e.data("third", size+1), blob.IfVersion(v))
			e.refused(err, blob.OpSet, k, blob.ErrPrecondition)
		}
		e.holds(k, d)
	})
}

func ifVersionMissing(e *env) {
	e.conditionSizes(func(size int64) {
		deleted := e.key(fmt.Sprint("deleted", size))
		v := e.mustSet(deleted, e.data("x", size), nil).Version
		e.mustDelete(deleted)
		for _, k := range []string{deleted, e.key(fmt.Sprint("missing", size))} {
			for _, v := range []string{v, "some-version"} {
				_, err := e.setIf(k, e.data("x", size), blob.IfVersion(v))
				e.refused(err, blob.OpSet, k, blob.ErrPrecondition)
			}
			e.absent(k)
		}
	})
}

func ifVersionChain(e *env) {
	k := e.key("x")
	versions := []string{e.mustSetIf(k, e.data("0", 10), blob.IfAbsent()).Version}
	for i := 1; i <= 5; i++ {
		size := int64(i%2)*3*e.PartSize + 100
		d := e.data(fmt.Sprint(i), size)
		versions = append(versions, e.mustSetIf(k, d, blob.IfVersion(versions[i-1])).Version)
		for _, old := range versions[:i] {
			_, err := e.setIf(k, e.data("old", 10), blob.IfVersion(old))
			e.refused(err, blob.OpSet, k, blob.ErrPrecondition)
		}
		e.holds(k, d)
	}
}

func ifVersionFrom(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("0", 10), nil)
	for name, version := range map[string]func() string{
		"get":  func() string { return e.mustGet(k, nil).Version },
		"span": func() string { return e.mustGet(k, &blob.GetOptions{Range: blob.Span(0, 1)}).Version },
		"stat": func() string { return e.mustStat(k).Version },
		"list": func() string {
			infos, err := e.list(e.ctx, k, nil)
			if err != nil || len(infos) != 1 {
				e.Fatalf("List: %d keys, %v", len(infos), err)
			}
			return infos[0].Version
		},
	} {
		if _, err := e.setIf(k, e.data(name, 10), blob.IfVersion(version())); err != nil {
			e.Errorf("Set with the version of %s: %v", name, err)
		}
	}
}

// race lets e.Racers Sets of self-describing content run at once and checks that one wins.
func (e *env) race(k string, size int64, c blob.Condition, lost error) {
	type result struct {
		info blob.Info
		err  error
	}
	results := make([]result, e.Racers)
	atOnce(e.Racers, func(i int) {
		for {
			info, err := e.setIf(k, selfDescribing(uint64(i)+1, size), c)
			results[i] = result{info, err}
			// ErrConflict decided nothing: the racer is still in the race.
			if blob.KindOf(err) != blob.ErrConflict || e.ctx.Err() != nil {
				return
			}
			yieldProcessor()
		}
	})
	winner, winners := -1, 0
	for i, r := range results {
		if r.err == nil {
			winner, winners = i, winners+1
			continue
		}
		e.refused(r.err, blob.OpSet, k, lost)
	}
	if winners != 1 {
		e.Errorf("%d of %d racers of %d bytes with %v won, want 1", winners, e.Racers, size, c)
		return
	}
	e.holds(k, selfDescribing(uint64(winner)+1, size))
	if v := e.mustStat(k).Version; v != results[winner].info.Version {
		e.Errorf("the winner's version is %q, Stat says %q", results[winner].info.Version, v)
	}
}

func ifAbsentRace(e *env) {
	for round := range 3 {
		for _, size := range []int64{100, 3*e.PartSize + 1} {
			e.race(e.key(fmt.Sprint(size, "-", round)), size, blob.IfAbsent(), blob.ErrExists)
		}
	}
}

func ifVersionRace(e *env) {
	for round := range 3 {
		for _, size := range []int64{100, 3*e.PartSize + 1} {
			k := e.key(fmt.Sprint(size, "-", round))
			v := e.mustSet(k, e.data("first", size), nil).Version
			e.race(k, size, blob.IfVersion(v), blob.ErrPrecondition)
		}
	}
}

func ifVersionCounter(e *env) {
	const steps = 5
	k := e.key("counter")
	e.mustSet(k, make([]byte, 8), nil)
	atOnce(e.Racers, func(int) {
		for done := 0; done < steps && e.ctx.Err() == nil; {
			o, err := e.store.Get(e.ctx, k, nil)
			if err != nil || len(o.Data) != 8 {
				e.Errorf("Get of the counter: %d bytes, %v", len(o.Data), err)
				return
			}
			next := binary.BigEndian.AppendUint64(nil, beUint64(o.Data)+1)
			_, err = e.setIf(k, next, blob.IfVersion(o.Version))
			switch kind := blob.KindOf(err); {
			case err == nil:
				done++
			case kind == blob.ErrPrecondition, kind == blob.ErrConflict:
			default:
				e.Errorf("Set of the counter: %v", err)
				return
			}
		}
	})
	if got, want := beUint64(e.mustGet(k, nil).Data), uint64(e.Racers*steps); got != want && !e.failed() {
		e.Errorf("the counter is %d after %d steps", got, want)
	}
}

// conditionAtCommit changes the key while a conditional Set reads its source: its condition, which held when it
// began, no longer does.
func conditionAtCommit(e *env) {
	for _, size := range []int64{100, 3*e.PartSize + 1} {
		absent, changed := e.key(fmt.Sprint("absent", size)), e.key(fmt.Sprint("changed", size))
		v := e.mustSet(changed, e.data("first", 10), nil).Version
		for _, c := range []struct {
			k    string
			cond blob.Condition
			kind error
		}{{absent, blob.IfAbsent(), blob.ErrExists}, {changed, blob.IfVersion(v), blob.ErrPrecondition}} {
			late := e.data("late", size)
			meddled := false
			var once sync.Once
			src := readerAtFunc(func(p []byte, off int64) (int, error) {
				once.Do(func() {
					_, err := e.store.Set(e.ctx, c.k, blob.Bytes(e.data("other", 20)), nil)
					meddled = err == nil
				})
				return bytes.NewReader(late).ReadAt(p, off)
			})
			_, err := e.store.Set(e.ctx, c.k, blob.ReaderAt(src, size), &blob.SetOptions{If: c.cond})
			if !meddled {
				e.Errorf("a Set of %q beside one with %v failed", c.k, c.cond)
				continue
			}
			e.refused(err, blob.OpSet, c.k, c.kind)
			e.holds(c.k, e.data("other", 20))
		}
	}
}

func conditionNoTrace(e *env) {
	e.conditionSizes(func(size int64) {
		k := e.key(fmt.Sprint(size))
		d := e.data("first", 60)
		e.mustSet(k, d, &blob.SetOptions{Metadata: map[string]string{"who": "first"}, ContentType: "text/first"})
		before := e.mustStat(k)
		for _, c := range []blob.Condition{blob.IfAbsent(), blob.IfVersion("some-version")} {
			_, err := e.store.Set(e.ctx, k, blob.Bytes(e.data("second", size)), &blob.SetOptions{If: c, Metadata: map[string]string{"who": "second"}})
			if err == nil {
				e.Errorf("Set with %v succeeded", c)
			}
		}
		e.sameInfo(e.mustStat(k), before)
		e.holds(k, d)
		if got := e.keys(k, nil); len(got) != 1 {
			e.Errorf("after refused Sets List yields %q", got)
		}
	})
}

func conditionUnsupported(e *env) {
	k, d := e.key("x"), e.data("x", 10)
	e.mustSet(k, d, nil)
	for _, key := range []string{k, e.key("missing")} {
		for _, c := range []blob.Condition{blob.IfAbsent(), blob.IfVersion("some-version")} {
			src, reads := untouched(100)
			e.noRequests("Set with "+c.String(), func() {
				_, err := e.store.Set(e.ctx, key, src, &blob.SetOptions{If: c})
				e.refused(err, blob.OpSet, key, blob.ErrUnsupported)
			})
			if reads.Load() != 0 {
				e.Errorf("Set with %v read its source", c)
			}
		}
		e.noRequests("Delete with IfVersion", func() {
			err := e.store.Delete(e.ctx, key, &blob.DeleteOptions{If: blob.IfVersion("some-version")})
			e.refused(err, blob.OpDelete, key, blob.ErrUnsupported)
		})
	}
	e.holds(k, d)
	e.absent(e.key("missing"))
}
