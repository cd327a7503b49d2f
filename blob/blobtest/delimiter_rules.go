package blobtest

import (
	"slices"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

func delimiterRules() []rule {
	return []rule{
		{name: "list/delimiter-folds", says: "Keys that contain the delimiter after the prefix are folded into one Info each, in byte order among the others.", run: delimiterFolds},
		{name: "list/delimiter-info", says: "A common prefix has IsPrefix and Key, up to and including the delimiter, and nothing else.", run: delimiterInfo},
		{name: "list/delimiter-inside-a-name", says: "A prefix that ends inside a name folds at the next delimiter.", run: delimiterInside},
		{name: "list/delimiter-beside-key", says: "A key and the folder of the same name are both yielded.", run: delimiterBesideKey},
		{name: "list/delimiter-several-characters", says: "A delimiter of several characters folds at the whole of it only.", run: delimiterLong},
		{name: "list/delimiter-not-slash", says: "Any string serves as a delimiter.", run: delimiterOther},
		{name: "list/delimiter-start-after", says: "Keys and common prefixes alike are yielded only if they are themselves greater than StartAfter.", run: delimiterStartAfter},
		{name: "list/delimiter-many", says: "More than a page of common prefixes are yielded each once.", run: func(e *env) {
			e.many()
			e.listsMany(0, &blob.ListOptions{Delimiter: "/"})
		}},
		{name: "list/delimiter-many-start-after", says: "StartAfter holds in a listing of more than a page of common prefixes.", run: delimiterManyStartAfter},
		{name: "list/delimiter-large-folder", says: "A common prefix of more than a page of keys is yielded once, and what comes after it too.", run: delimiterLarge},
	}
}

func byDelimiter(d string) *blob.ListOptions { return &blob.ListOptions{Delimiter: d} }

func delimiterFolds(e *env) {
	e.setKeys("a", "b/1", "b/2", "b/c/1", "b-", "c/1", "d", "b0")
	e.lists("", byDelimiter("/"), "a", "b-", "b/", "b0", "c/", "d")
	e.lists("b/", byDelimiter("/"), "b/1", "b/2", "b/c/")
	e.lists("b/c/", byDelimiter("/"), "b/c/1")
	e.lists("x", byDelimiter("/"))
}

func delimiterInfo(e *env) {
	e.setKeys("a/1", "a/2", "b")
	infos, err := e.list(e.ctx, e.prefix, byDelimiter("/"))
	if err != nil || len(infos) != 2 {
		e.Fatalf("List: %d elements, %v", len(infos), err)
	}
	p := infos[0]
	if p.Key != e.key("a/") || !p.IsPrefix {
		e.Errorf("the common prefix is %+v", p)
	}
	p.Key, p.IsPrefix = "", false
	if !isZeroInfo(p) {
		e.Errorf("the common prefix has more than Key and IsPrefix: %+v", p)
	}
	e.isInfo(infos[1], e.key("b"), 1)
}

func delimiterInside(e *env) {
	e.setKeys("xa/1", "xab/1", "xab/2", "xac", "xb/1")
	e.lists("xa", byDelimiter("/"), "xa/", "xab/", "xac")
	e.lists("xab", byDelimiter("/"), "xab/")
	e.lists("xab/", byDelimiter("/"), "xab/1", "xab/2")
}

func delimiterBesideKey(e *env) {
	e.setKeys("xab/1", "xab", "xab-")
	e.lists("xab", byDelimiter("/"), "xab", "xab-", "xab/")
	e.lists("", byDelimiter("/"), "xab", "xab-", "xab/")
}

func delimiterLong(e *env) {
	e.setKeys("a-1", "a--1", "a--2", "a---1", "b-", "b--", "c")
	e.lists("", byDelimiter("--"), "a--", "a-1", "b-", "b--", "c")
	// The prefix has already eaten one '-': only what comes after it is searched.
	e.lists("a-", byDelimiter("--"), "a---", "a--1", "a--2", "a-1")
}

func delimiterOther(e *env) {
	e.setKeys("a.1", "a.2", "a/1", "bé1", "bé2", "b 1")
	e.lists("", byDelimiter("."), "a.", "a/1", "b 1", "bé1", "bé2")
	e.lists("", byDelimiter("é"), "a.1", "a.2", "a/1", "b 1", "bé")
	e.lists("", byDelimiter("1"), "a.1", "a.2", "a/1", "b 1", "bé1", "bé2")
}

func delimiterStartAfter(e *env) {
	e.setKeys("a", "b/1", "b/2", "b0", "c/1", "d")
	for after, want := range map[string][]string{
		"":     {"a", "b/", "b0", "c/", "d"},
		"a":    {"b/", "b0", "c/", "d"},
		"b":    {"b/", "b0", "c/", "d"},
		"b/":   {"b0", "c/", "d"},
		"b/1":  {"b0", "c/", "d"}, // "b/" is not greater, although "b/2" is
		"b/2":  {"b0", "c/", "d"},
		"b/zz": {"b0", "c/", "d"},
		"b0":   {"c/", "d"},
		"c/0":  {"d"},
		"c/1":  {"d"},
		"d":    {},
	} {
		e.lists("", &blob.ListOptions{Delimiter: "/", StartAfter: e.key(after)}, want...)
	}
	e.lists("b/", &blob.ListOptions{Delimiter: "/", StartAfter: e.key("b/1")}, "b/2")
}

func delimiterManyStartAfter(e *env) {
	e.many()
	for _, i := range []int{0, e.ListKeys / 2, e.ListKeys - 1} {
		folded := e.manyPrefix() + strings.TrimSuffix(manyName(i), "x")
		for _, after := range []string{folded, folded + "a", folded + "x", folded + "z"} {
			e.listsMany(i+1, &blob.ListOptions{Delimiter: "/", StartAfter: after})
		}
		e.listsMany(i, &blob.ListOptions{Delimiter: "/", StartAfter: strings.TrimSuffix(folded, "/")})
	}
}

func delimiterLarge(e *env) {
	e.many()
	parent := strings.TrimSuffix(e.manyPrefix(), "many/")
	want := []string{parent + "many-z/", parent + "many/"}
	if got := e.keys(parent, byDelimiter("/")); !slices.Equal(got, want) {
		e.Errorf("List: %s", diffKeys(got, want))
	}
	if got := e.keys(parent, &blob.ListOptions{Delimiter: "/", StartAfter: parent + "many-z/"}); !slices.Equal(got, want[1:]) {
		e.Errorf("List: %s", diffKeys(got, want[1:]))
	}
}
