package blob

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestKeysThatSetAccepts(t *testing.T) {
	for _, key := range []string{
		"a", "a/", "a/b", "/", "//", "/a", "a//b", "//a", " ", "a b", "+", "%2F", "%25", "~", "=", "?x=1&y", "#", "*", ":", "\"", "<>|",
		".a", "a.b", "..a", "a/.b", ".well-known", ".well-known/x", ".well-known/acme-challenge", "x/.well-known/acme-challenge/y",
		"\u00e9", "e\u0301", "\u00a0", "\u2028", "\ud7ff", "\uf900", "\ufdd0", "\ufffd", "\U0001F600", "\U0010FFFF",
		strings.Repeat("k", MaxKey), strings.Repeat("/", MaxKeySlashes), strings.Repeat("\u00e9", MaxKey/2),
	} {
		if err := CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestKeysThatSetRefuses(t *testing.T) {
	for _, c := range []struct{ key, says string }{
		{"", "it is empty"},
		{strings.Repeat("k", MaxKey+1), "897 bytes, at most 896"},
		{strings.Repeat("\u00e9", MaxKey/2) + "k", "897 bytes, at most 896"},
		{strings.Repeat("/", MaxKeySlashes+1), "201 slashes, at most 200"},
		{".well-known/acme-challenge/", `begins with ".well-known/acme-challenge/"`},
		{".well-known/acme-challenge/x", `begins with ".well-known/acme-challenge/"`},
		{".", "segment ends in a dot"},
		{"..", "segment ends in a dot"},
		{"a.", "segment ends in a dot"},
		{"a/..", "segment ends in a dot"},
		{"./a", "segment ends in a dot before byte 1"},
		{"a/../b", "segment ends in a dot before byte 4"},
		{"a./b", "segment ends in a dot before byte 2"},
		{"a\xff", "not valid UTF-8"},
		{"a\xed\xa0\x80", "not valid UTF-8"}, // a surrogate
		{"a\xc0\x80", "not valid UTF-8"},     // an overlong NUL
		{"\x00", "character U+0000 at byte 0"},
		{"a\x1fb", "character U+001F at byte 1"},
		{"a\x7f", "character U+007F at byte 1"},
		{"a\u0080", "character U+0080 at byte 1"},
		{"\u00e9\u009f", "character U+009F at byte 2"},
		{`a\b`, "character U+005C at byte 1"},
		{"\ue000", "character U+E000 at byte 0"},
		{"\uf8ff", "character U+F8FF at byte 0"},
		{"\ufffe", "character U+FFFE at byte 0"},
		{"\uffff", "character U+FFFF at byte 0"},
	} {
		err := CheckKey(c.key)
		if !errors.Is(err, ErrInvalidKey) {
			t.Errorf("%.40q: %v", c.key, err)
			continue
		}
		if want := "invalid key: " + c.says; err.Error() != want {
			t.Errorf("%.40q: %q, want %q", c.key, err, want)
		}
	}
}

func TestPrefixGetsItsFinalSlash(t *testing.T) {
	longest := strings.Repeat("p", MaxPrefix-1)
	for in, want := range map[string]string{
		"": "", "/": "/", "team": "team/", "team/": "team/", "team//": "team//", "a/b": "a/b/", "/a": "/a/",
		longest: longest + "/", longest + "/": longest + "/",
		strings.Repeat("/", MaxPrefixSlashes): strings.Repeat("/", MaxPrefixSlashes),
		".well-known2":                        ".well-known2/",
		"a/.well-known/acme-challenge":        "a/.well-known/acme-challenge/",
	} {
		if got, err := CheckPrefix(in); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestPrefixesThatNoStoreTakes(t *testing.T) {
	for _, p := range []string{
		strings.Repeat("p", MaxPrefix), // its slash is one byte too many
		strings.Repeat("p", MaxPrefix) + "/",
		strings.Repeat("/", MaxPrefixSlashes+1),
		"team.", "team./", ".", "..", "../x", "a/./b",
		`a\b`, "a\x00", "a\xff", "\ue000",
		".well-known", ".well-known/", ".well-known/acme-challenge", ".well-known/acme-challenge/", ".well-known/acme-challenge/x",
	} {
		got, err := CheckPrefix(p)
		if !errors.Is(err, ErrInvalidOption) || errors.Is(err, ErrInvalidKey) || got != "" {
			t.Errorf("%q is %q, %v", p, got, err)
		}
	}
}

// Each part of the pattern is one line of the rule in CheckKey's documentation; it shares nothing with its code.
var (
	oneKey = regexp.MustCompile(`^[^\x00-\x1f\x7f-\x{9f}\\\x{e000}-\x{f8ff}\x{fffe}\x{ffff}]+$`)
	dotEnd = regexp.MustCompile(`\.(/|$)`)
)

func keyByDefinition(key string) bool {
	return oneKey.MatchString(key) && len([]byte(key)) <= 896 && len(strings.Split(key, "/")) <= 201 &&
		!dotEnd.MatchString(key) && !strings.HasPrefix(key, ".well-known/acme-challenge/") &&
		string([]rune(key)) == key // false for what is not UTF-8, which turns into U+FFFD
}

func addKeys(f *testing.F) {
	for _, s := range []string{
		"", "a", "a/b", ".", "a./b", "a\\b", "\xff", "\u0080", "\u009f", "\u00a0", "\ue000", "\uf8ff", "\uf900", "\ufffd", "\ufffe", "\uffff", "\x7f", "\x1f", "\n",
		".well-known/acme-challenge/", strings.Repeat("/", 201), strings.Repeat("k", 897), strings.Repeat("ab/", 43),
	} {
		f.Add(s, s)
	}
}

func FuzzCheckKeyAgreesWithItsDefinition(f *testing.F) {
	addKeys(f)
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, key := range []string{a, a + b, a + "/" + b, strings.Repeat(a, 7) + b} {
			err := CheckKey(key)
			if (err == nil) != keyByDefinition(key) {
				t.Errorf("%q: %v", key, err)
			}
			if err != nil && !errors.Is(err, ErrInvalidKey) {
				t.Errorf("%q: %v is no ErrInvalidKey", key, err)
			}
		}
	})
}

// FuzzPrefixAndKeyFitEveryStore checks what the two limits are for: what reaches the store.
func FuzzPrefixAndKeyFitEveryStore(f *testing.F) {
	addKeys(f)
	f.Add(strings.Repeat("p", MaxPrefix-1), strings.Repeat("k", MaxKey))
	f.Add(strings.Repeat("p/", MaxPrefixSlashes), strings.Repeat("k/", MaxKeySlashes))
	f.Add(".well-known/acme-challenge", "x")
	f.Add(".well-known", "acme-challenge/x")
	f.Fuzz(func(t *testing.T, prefix, key string) {
		p, err := CheckPrefix(prefix)
		if err != nil || CheckKey(key) != nil {
			return
		}
		full := p + key
		switch {
		case len(full) > 1024:
			t.Errorf("%q and %q: %d bytes", p, key, len(full))
		case strings.Count(full, "/") > 253: // 254 segments
			t.Errorf("%q and %q: %d slashes", p, key, strings.Count(full, "/"))
		case strings.HasPrefix(full, ".well-known/acme-challenge/"), dotEnd.MatchString(full), !oneKey.MatchString(full):
			t.Errorf("%q and %q: together no store takes them", p, key)
		case p != "" && p != prefix && p != prefix+"/":
			t.Errorf("the prefix %q became %q", prefix, p)
		}
	})
}
