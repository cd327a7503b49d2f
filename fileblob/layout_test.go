package fileblob

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// awkwardKeys are keys that a layout may confuse with each other or with its own names.
var awkwardKeys = []string{
	"a", "a/", "a/b", "a//", "a//b", "/", "//", "//a", "/a", "A", "A/", "aA", "Aa",
	"a-b", "a.b", "a0", "a=b", "a+", "a@", "a%", "%", "%/", "%41", "%2f", "a%2fb", "@", "+", "+/",
	".a", ".a/.b", "..a", ".wholeblob/tmp/x", ".wholeblob/locks/00", "a~", "tmp.123", "#a#",
	"é", "e\u0301", "ß", "ſ", "İ", "日本語/キー", " ", " a", "a ", "con", "nul/aux",
	strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 256),
	strings.Repeat("x", 128) + "/", strings.Repeat("x", 128) + "/y", strings.Repeat("x", 128) + ".y",
	strings.Repeat("x", 127) + "É", strings.Repeat("X", 42), strings.Repeat("X", 43), strings.Repeat("X", 300),
	strings.Repeat("é", blob.MaxKey/2), strings.Repeat("/", blob.MaxKeySlashes),
	strings.Repeat("É/", blob.MaxKeySlashes),
}

// roundTrip decodes the location of key again, entry by entry.
func roundTrip(t *testing.T, key string) (texts []string) {
	t.Helper()
	at := locate(key)
	for i, name := range append(slices.Clone(at.dirs), at.name) {
		e, ok := parseEntry(name)
		if !ok {
			t.Fatalf("%q: %q does not parse", key, name)
		}
		if e.object != (i == len(at.dirs)) {
			t.Fatalf("%q: %q is taken for the wrong kind", key, name)
		}
		texts = append(texts, e.text)
	}
	if got := strings.Join(texts, ""); got != key {
		t.Fatalf("%q came back as %q", key, got)
	}
	return texts
}

// checkNames holds names to what the layout promises about them.
func checkNames(t *testing.T, key string) {
	t.Helper()
	at := locate(key)
	for _, name := range append(slices.Clone(at.dirs), at.name) {
		if len(name) > 131 || name[0] == '.' || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._=-%@+") != "" {
			t.Errorf("%q: name %q", key, name)
		}
	}
}

func TestKeysHavePlacesOfTheirOwn(t *testing.T) {
	places := map[string]string{}
	for _, key := range awkwardKeys {
		roundTrip(t, key)
		checkNames(t, key)
		at := locate(key)
		place := strings.ToLower(strings.Join(append(at.dirs, at.name), "/")) // folded as on macOS
		if other, ok := places[place]; ok {
			t.Errorf("%q and %q are both at %q", key, other, place)
		}
		places[place] = key
		if blob.CheckKey(key) == nil && len(place) > 3<<10 {
			t.Errorf("%q has a path of %d bytes", key, len(place))
		}
	}
}

func TestForeignNamesAreNoEntries(t *testing.T) {
	for _, name := range []string{
		"", ".wholeblob", ".", "..", "A@", "%4A@", "%61@", "a%@", "a%4@", "%2f@", ".a@", "a~@", "a b@", "+", "lost+found", "a+",
		strings.Repeat("x", 128), strings.Repeat("x", 128) + "@", strings.Repeat("x", 129) + "+", "%%",
	} {
		if e, ok := parseEntry(name); ok {
			t.Errorf("%q is taken for %+v", name, e)
		}
	}
}

func FuzzLayoutRoundTripAndOrder(f *testing.F) {
	for i, key := range awkwardKeys {
		f.Add(key, awkwardKeys[(i+1)%len(awkwardKeys)])
	}
	f.Add("a-b", "a/b")
	f.Fuzz(func(t *testing.T, a, b string) {
		ta, tb := roundTrip(t, a), roundTrip(t, b)
		checkNames(t, a)
		// The order of a walk: entries by their texts, directory by directory.
		if got, want := slices.Compare(ta, tb), strings.Compare(a, b); got != want {
			t.Errorf("walk order of %q and %q is %d, byte order %d: %q %q", a, b, got, want, ta, tb)
		}
	})
}

func FuzzOneNamePerEntry(f *testing.F) {
	for _, key := range awkwardKeys {
		f.Add(locate(key).name)
	}
	f.Add("%")
	f.Add("a%2e@")
	f.Fuzz(func(t *testing.T, name string) {
		e, ok := parseEntry(name)
		if !ok {
			return
		}
		at := locate(e.text)
		got := at.name
		if !e.object {
			if len(at.dirs) != 1 {
				t.Fatalf("%q: text %q leads through %q", name, e.text, at.dirs)
			}
			got = at.dirs[0]
		}
		if got != name {
			t.Errorf("%q and %q both stand for %q", name, got, e.text)
		}
	})
}

func TestLocateDirsOfAPrefixAreThoseOfEveryKeyUnderIt(t *testing.T) {
	for _, key := range awkwardKeys {
		dirs := locate(key).dirs
		for i := range len(key) + 1 {
			got, rest := locateDirs(key[:i])
			if len(got) > len(dirs) || !slices.Equal(got, dirs[:len(got)]) || !strings.HasSuffix(key[:i], rest) {
				t.Fatalf("prefix %q of %q: %q, %q", key[:i], key, got, rest)
			}
		}
	}
}

func Example_layout() {
	for _, key := range []string{"db/2024/part-0.parquet", "a", "a/", "//A"} {
		at := locate(key)
		fmt.Println(strings.Join(append(at.dirs, at.name), "/"))
	}
	// Output:
	// db/2024/part-0.parquet@
	// a@
	// a/@
	// %/%/%41@
}
