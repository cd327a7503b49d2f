package blobtest

import "github.com/wholeblob/wholeblob/blob"

func statRules() []rule {
	return []rule{
		{name: "stat/fields", says: "Stat returns Key, Size, Version, ModTime, Metadata and ContentType.", run: statFields},
		{name: "stat/missing-key", says: "Stat of a missing or a deleted key is ErrNotFound.", run: statMissing},
		{name: "stat/follows", says: "Stat follows every Set; ModTime does not go backwards.", run: statFollows},
		{name: "stat/no-folders", says: "A prefix of keys is not a key.", run: statNoFolders},
	}
}

func statFields(e *env) {
	for _, size := range []int64{0, 100, 3*e.PartSize + 1} {
		k := e.key("x")
		set := e.mustSet(k, e.data("x", size), &blob.SetOptions{Metadata: map[string]string{"a": "b"}, ContentType: "text/plain"})
		info := e.mustStat(k)
		e.isInfo(info, k, size)
		if info.Version != set.Version {
			e.Errorf("Version is %q, Set returned %q", info.Version, set.Version)
		}
		if info.ModTime.IsZero() {
			e.Errorf("ModTime is zero")
		}
		if len(info.Metadata) != 1 || info.Metadata["a"] != "b" {
			e.Errorf("Metadata is %v", info.Metadata)
		}
		if info.ContentType != "text/plain" {
			e.Errorf("ContentType is %q", info.ContentType)
		}
	}
}

func statMissing(e *env) {
	k := e.key("x")
	e.absent(k)
	e.mustSet(k, e.data("x", 10), nil)
	e.mustStat(k)
	e.mustDelete(k)
	e.absent(k)
}

func statFollows(e *env) {
	k := e.key("x")
	var last blob.Info
	for i := range int64(5) {
		e.mustSet(k, e.data("x", 100+i), nil)
		info := e.mustStat(k)
		e.isInfo(info, k, 100+i)
		if info.ModTime.Before(last.ModTime) {
			e.Errorf("ModTime %v of a later Set is before %v", info.ModTime, last.ModTime)
		}
		last = info
	}
}

func statNoFolders(e *env) {
	e.mustSet(e.key("a/b/c"), e.data("x", 10), nil)
	for _, k := range []string{"a", "a/", "a/b", "a/b/", "a/b/c/", "a/b/c/d"} {
		e.absent(e.key(k))
		if err := e.store.Delete(e.ctx, e.key(k), nil); err != nil {
			e.Errorf("Delete(%q): %v", k, err)
		}
	}
	e.holds(e.key("a/b/c"), e.data("x", 10))
}
