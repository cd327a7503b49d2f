package blobtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/wholeblob/wholeblob/blob"
)

func listRules() []rule {
	return []rule{
		{name: "list/nothing", says: "A prefix of no key yields nothing and no error.", run: listNothing},
		{name: "list/order", says: "Keys come in ascending byte order, whatever '/', '-', '.' and case mean to a file system.", run: listOrder},
		{name: "list/order-unicode", says: "Byte order of UTF-8 holds beyond ASCII, where that of UTF-16 differs.", run: listOrderUnicode},
		{name: "list/prefix-is-a-string", says: "The prefix is a plain string, not a folder: \"bar\" matches \"bar-baz/1\".", run: listPrefix},
		{name: "list/prefix-is-a-key", says: "A key that equals the prefix is yielded.", run: listPrefixIsKey},
		{name: "list/no-prefix", says: "The empty prefix yields every key of the store.", run: listNoPrefix},
		{name: "list/fields", says: "Each yielded Info has Key, Size, Version and ModTime, as Stat has them.", run: listFields},
		{name: "list/start-after", says: "StartAfter is exclusive and need not be a key or begin with the prefix.", run: listStartAfter},
		{name: "list/follows", says: "A listing shows what Set and Delete did before it.", run: listFollows},
		{name: "list/again", says: "Each range over the sequence lists anew.", run: listAgain},
		{name: "list/break", says: "Breaking out of the loop ends the listing, and the store goes on to work.", run: listBreak},
		{name: "list/error-last", says: "An error is yielded once, as the last element, with a zero Info.", run: listErrorLast},
		{name: "list/cancel-midway", says: "A listing that is cancelled midway ends in an error or is complete, never a clean early end.", run: listCancel},
		{name: "list/invalid", says: "A prefix, StartAfter or Delimiter that is not UTF-8 is ErrInvalidOption.", run: listInvalid},
		{name: "list/many-keys", says: "A listing of more than a page yields every key once.", run: listMany},
		{name: "list/many-start-after", says: "StartAfter holds in a listing of more than a page.", run: listManyStartAfter},
		{name: "list/beside-writers", says: "While keys come and go, no key appears twice and none that stays is left out.", run: listBesideWriters},
	}
}

// setKeys stores an object under each of names; its content is the name.
func (e *env) setKeys(names ...string) {
	e.parallel(names, func(name string) {
		if _, err := e.store.Set(e.ctx, e.key(name), blob.Bytes([]byte(name)), nil); err != nil {
			e.Errorf("Set(%q): %v", e.key(name), err)
		}
	})
	if e.failed() {
		e.Fatalf("the keys of the rule could not be set")
	}
}

// parallel calls f for each of names, a few at a time.
func (e *env) parallel(names []string, f func(name string)) {
	work := make(chan string)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for name := range work {
				f(name)
			}
		})
	}
	for _, name := range names {
		work <- name
	}
	close(work)
	wg.Wait()
}

// lists checks that a listing yields want, names within the rule, in that order.
func (e *env) lists(prefix string, opts *blob.ListOptions, want ...string) {
	got := e.keys(e.prefix+prefix, opts)
	if slices.Equal(got, want) {
		return
	}
	o := blob.ListOptions{}
	if opts != nil {
		o = *opts
	}
	e.Errorf("List(%q, StartAfter %q, Delimiter %q) yields %s", prefix, strings.TrimPrefix(o.StartAfter, e.prefix), o.Delimiter, diffKeys(got, want))
}

func diffKeys(got, want []string) string {
	if len(got)+len(want) < 40 {
		return fmt.Sprintf("%q\nwant %q", got, want)
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%d keys, want %d; number %d is %q, want %q", len(got), len(want), i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d keys, want %d", len(got), len(want))
}

func listNothing(e *env) {
	e.setKeys("a", "c")
	e.lists("b", nil)
	e.lists("aa", nil)
	e.lists("a/", nil)
	e.lists("b", &blob.ListOptions{Delimiter: "/"})
}

func listOrder(e *env) {
	names := []string{"b", "a-b", "a.b", "a/b", "a0", "a b", "A", "Z", "_", "a/b-c", "a/bb/c2", "a00/b", "a!", "a~", "aa", "a,b", "a+b", "0", "10", "9"}
	e.setKeys(names...)
	slices.Sort(names)
	e.lists("", nil, names...)
}

func listOrderUnicode(e *env) {
	// U+1F600 sorts before U+FF5E in UTF-16 and after it in UTF-8.
	names := []string{"x\U0001F600", "x\uFF5E", "xé", "xz", "x\u4e2d", "xe\u0301", "x\uFFFD", "x\u00A0"}
	e.setKeys(names...)
	slices.Sort(names)
	e.lists("x", nil, names...)
	e.lists("x", &blob.ListOptions{StartAfter: e.key("x\uFF5E")}, names[slices.Index(names, "x\uFF5E")+1:]...)
}

func listPrefix(e *env) {
	e.setKeys("bar/1", "bar/2", "bar-baz/1", "barn", "ba", "baz", "Bar/1", "c/bar/1")
	e.lists("bar", nil, "bar-baz/1", "bar/1", "bar/2", "barn")
	e.lists("bar/", nil, "bar/1", "bar/2")
	e.lists("bar/1", nil, "bar/1")
	e.lists("ba", nil, "ba", "bar-baz/1", "bar/1", "bar/2", "barn", "baz")
	e.lists("bar-", nil, "bar-baz/1")
	e.lists("bar/3", nil)
	e.lists("/", nil)
}

func listPrefixIsKey(e *env) {
	e.setKeys("foo", "foo-bar", "fop")
	e.lists("foo", nil, "foo", "foo-bar")
	e.lists("foo", &blob.ListOptions{Delimiter: "/"}, "foo", "foo-bar")
}

func listNoPrefix(e *env) {
	e.setKeys("a", "b/c", "d")
	infos, err := e.list(e.ctx, "", nil)
	if err != nil {
		e.Fatalf("List: %v", err)
	}
	var got []string
	last := ""
	for _, info := range infos {
		if info.Key <= last {
			e.Errorf("%q is yielded after %q", info.Key, last)
		}
		last = info.Key
		if name, mine := strings.CutPrefix(info.Key, e.prefix); mine {
			got = append(got, name)
		}
	}
	if !slices.Equal(got, []string{"a", "b/c", "d"}) {
		e.Errorf("List of the empty prefix yields %q of the keys a, b/c, d", got)
	}
}

func listFields(e *env) {
	sizes := map[string]int64{"empty": 0, "large": 3*e.PartSize + 1, "small": 100}
	for name, size := range sizes {
		e.mustSet(e.key(name), e.data(name, size), nil)
	}
	infos, err := e.list(e.ctx, e.prefix, nil)
	if err != nil || len(infos) != len(sizes) {
		e.Fatalf("List: %d keys, %v", len(infos), err)
	}
	for _, info := range infos {
		stat := e.mustStat(info.Key)
		e.isInfo(info, info.Key, sizes[strings.TrimPrefix(info.Key, e.prefix)])
		if info.Version != stat.Version {
			e.Errorf("%q: List says version %q, Stat %q", info.Key, info.Version, stat.Version)
		}
		// Protocols round to seconds in one place and not in another.
		if d := info.ModTime.Sub(stat.ModTime); info.ModTime.IsZero() || d > 1e9 || d < -1e9 {
			e.Errorf("%q: List says ModTime %v, Stat %v", info.Key, info.ModTime, stat.ModTime)
		}
	}
}

func listStartAfter(e *env) {
	e.setKeys("a", "b", "b-", "bb/1", "c", "d")
	for after, want := range map[string][]string{
		e.key(""):   {"a", "b", "b-", "bb/1", "c", "d"},
		e.key("A"):  {"a", "b", "b-", "bb/1", "c", "d"},
		e.key("a"):  {"b", "b-", "bb/1", "c", "d"},
		e.key("aa"): {"b", "b-", "bb/1", "c", "d"},
		e.key("b"):  {"b-", "bb/1", "c", "d"},
		e.key("b/"): {"bb/1", "c", "d"},
		e.key("c"):  {"d"},
		e.key("d"):  {},
		e.key("e"):  {},
		"!":         {"a", "b", "b-", "bb/1", "c", "d"},
		"~":         {},
	} {
		e.lists("", &blob.ListOptions{StartAfter: after}, want...)
	}
	e.lists("b", &blob.ListOptions{StartAfter: e.key("b")}, "b-", "bb/1")
	e.lists("b", &blob.ListOptions{StartAfter: e.key("a")}, "b", "b-", "bb/1")
	e.lists("b", &blob.ListOptions{StartAfter: e.key("c")})
	e.lists("bb/", &blob.ListOptions{StartAfter: e.key("bb/1")})
}

func listFollows(e *env) {
	e.setKeys("a", "b", "c")
	e.mustDelete(e.key("b"))
	e.lists("", nil, "a", "c")
	e.mustSet(e.key("b2"), nil, nil)
	e.mustSet(e.key("a"), e.data("a", 500), nil)
	e.lists("", nil, "a", "b2", "c")
	infos, _ := e.list(e.ctx, e.key("a"), nil)
	if len(infos) == 1 && infos[0].Size != 500 {
		e.Errorf("Size is %d after an overwrite of 500 bytes", infos[0].Size)
	}
}

func listAgain(e *env) {
	e.setKeys("a", "b")
	seq := e.store.List(e.ctx, e.prefix, nil)
	count := func() (n int) {
		for _, err := range seq {
			if err != nil {
				e.Fatalf("List: %v", err)
			}
			n++
		}
		return n
	}
	if n := count(); n != 2 {
		e.Errorf("first range: %d keys, want 2", n)
	}
	e.setKeys("c")
	if n := count(); n != 3 {
		e.Errorf("second range over the same sequence, after another Set: %d keys, want 3", n)
	}
}

func listBreak(e *env) {
	e.many()
	prefix := e.manyPrefix()
	e.requests("List with a break after one key", 2, func() {
		for _, err := range e.store.List(e.ctx, prefix, nil) {
			if err != nil {
				e.Fatalf("List: %v", err)
			}
			break
		}
	})
	e.mustSet(e.key("after"), nil, nil)
	e.lists("", nil, "after")
}

func listErrorLast(e *env) {
	e.setKeys("a", "b")
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	for _, o := range []*blob.ListOptions{nil, {Delimiter: "/"}, {StartAfter: e.key("a")}} {
		infos, err := e.list(ctx, e.prefix, o)
		if len(infos) != 0 {
			e.Errorf("List with a done context yields %d keys", len(infos))
		}
		e.refused(err, blob.OpList, e.prefix, context.Canceled)
	}
}

func listCancel(e *env) {
	e.many()
	prefix := e.manyPrefix()
	for _, after := range []int{1, e.ListKeys / 2, e.ListKeys - 1} {
		ctx, cancel := context.WithCancel(e.ctx)
		n := 0
		var last error
		for info, err := range e.store.List(ctx, prefix, nil) {
			if last != nil {
				e.Errorf("an element after the error: %q, %v", info.Key, err)
			}
			if last = err; err != nil {
				continue
			}
			if n++; n == after {
				cancel()
			}
		}
		cancel()
		switch {
		case last != nil:
			e.refused(last, blob.OpList, prefix, context.Canceled)
		case n != e.ListKeys:
			e.Errorf("List cancelled after %d of %d keys ended cleanly after %d", after, e.ListKeys, n)
		}
	}
}

func listInvalid(e *env) {
	for _, o := range []struct {
		prefix string
		opts   *blob.ListOptions
	}{{"\xff", nil}, {e.prefix, &blob.ListOptions{StartAfter: "a\xffb"}}, {e.prefix, &blob.ListOptions{Delimiter: "\xc3"}}} {
		infos, err := e.list(e.ctx, o.prefix, o.opts)
		e.refused(err, blob.OpList, o.prefix, blob.ErrInvalidOption)
		if len(infos) != 0 {
			e.Errorf("List yields %d keys and then that an option is invalid", len(infos))
		}
	}
}

// manyPrefix is the folder of a fixture of e.ListKeys keys "00000/x", "00001/x" ..., shared by the group.
func (e *env) manyPrefix() string { return e.settings.run + e.group.name + "/fixture/many/" }

func manyName(i int) string { return fmt.Sprintf("%05d/x", i) }

// many makes the fixture.
func (e *env) many() {
	if e.fixtures["many"] {
		return
	}
	names := make([]string, e.ListKeys)
	for i := range names {
		names[i] = e.manyPrefix() + manyName(i)
	}
	slices.Reverse(names) // a store that lists in the order of writing is found out
	e.parallel(append(names, strings.TrimSuffix(e.manyPrefix(), "/")+"-z/x"), func(k string) {
		if _, err := e.store.Set(e.ctx, k, blob.Bytes(nil), nil); err != nil {
			e.Errorf("Set(%q): %v", k, err)
		}
	})
	if e.failed() {
		e.Fatalf("the keys of the rule could not be set")
	}
	if e.group.fixtures == nil {
		e.group.fixtures = map[string]bool{}
	}
	e.group.fixtures["many"] = true
}

func listMany(e *env) {
	e.many()
	e.listsMany(0, nil)
	if got := len(e.keys(e.manyPrefix()+"0000", nil)); got != min(10, e.ListKeys) {
		e.Errorf("List of a prefix of 10 keys yields %d", got)
	}
}

// listsMany checks that a listing of the fixture yields its keys from number first on.
func (e *env) listsMany(first int, opts *blob.ListOptions) {
	got := e.keys(e.manyPrefix(), opts)
	want := make([]string, 0, e.ListKeys)
	for i := first; i < e.ListKeys; i++ {
		name := e.manyPrefix() + manyName(i)
		if opts != nil && opts.Delimiter != "" {
			name = strings.TrimSuffix(name, "x")
		}
		want = append(want, name)
	}
	if !slices.Equal(got, want) {
		e.Errorf("List: %s", diffKeys(got, want))
	}
}

func listManyStartAfter(e *env) {
	e.many()
	for _, i := range []int{0, 1, e.ListKeys / 2, e.ListKeys - 1} {
		e.listsMany(i+1, &blob.ListOptions{StartAfter: e.manyPrefix() + manyName(i)})
		e.listsMany(i, &blob.ListOptions{StartAfter: e.manyPrefix() + manyName(i)[:5]})
	}
}

func listBesideWriters(e *env) {
	var stays, comes []string
	for i := range 40 {
		stays = append(stays, fmt.Sprintf("%02d-stays", i))
		comes = append(comes, fmt.Sprintf("%02d-comes", i))
	}
	e.setKeys(stays...)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !isDone(stop); i++ {
			k := e.key(comes[i%len(comes)])
			_, err := e.store.Set(e.ctx, k, blob.Bytes(nil), nil)
			if err == nil && i%2 == 1 {
				err = e.store.Delete(e.ctx, k, nil)
			}
			if err != nil {
				e.Errorf("a writer beside a listing: %v", err)
				return
			}
			yieldProcessor()
		}
	})
	defer func() {
		close(stop)
		wg.Wait()
	}()
	for i := 0; i < 10 && !e.failed(); i++ {
		got := e.keys(e.prefix, nil)
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			e.Errorf("List beside writers is out of order or repeats a key: %q", got)
		}
		got = slices.DeleteFunc(got, func(k string) bool { return slices.Contains(comes, k) })
		if !slices.Equal(got, stays) {
			e.Errorf("List beside writers: of the keys that stay: %s", diffKeys(got, stays))
		}
	}
}
