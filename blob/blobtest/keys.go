package blobtest

import (
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

// namedKey is a key and the stable name of its case.
type namedKey struct{ name, key string }

// validKeys are keys that Set accepts and that some store or file system is known to fold, change or
// refuse. The names are the cases of the rules "keys/...".
func (s *settings) validKeys() []namedKey {
	keys := []namedKey{
		{"plain", "a"},
		{"beside-folder-marker", "a/"},
		{"beside-child", "a/b"},
		{"folder-of-file", "f/g"},
		{"file-of-folder", "f"},
		{"leading-slash", "/a"},
		{"leading-double-slash", "//a"},
		{"double-slash", "a//b"},
		{"double-slash-end", "a//"},
		{"triple-slash", "a///b"},
		{"slash", "/"},
		{"double-slash-only", "//"},
		{"plus", "a+b"},
		{"percent-2f", "a%2Fb"},
		{"percent-2f-lower", "a%2fb"},
		{"percent-25", "a%25b"},
		{"percent-252f", "a%252Fb"},
		{"percent-bare", "100%"},
		{"percent-broken", "a%zz"},
		{"percent-00", "a%00"},
		{"space", "a b"},
		{"space-leading", " a"},
		{"space-trailing", "a "},
		{"space-segment", "a/ /b"},
		{"space-only", " "},
		{"tilde", "~"},
		{"tilde-user", "~root/a"},
		{"equals", "k=v/x=1"},
		{"brackets", "[f]"},
		{"braces", "{a,b}"},
		{"query-fragment", "a?x#y"},
		{"query-acl", "a?acl"},
		{"ampersand", "a&b=c"},
		{"xml", `&<>"'`},
		{"xml-entity", "&amp;"},
		{"star", "*"},
		{"glob", "a*[b]?"},
		{"pipe", "a|b"},
		{"colon", "c:a"},
		{"quotes", `"q" 'r' ` + "`s`"},
		{"at-sign", "a@b:80"},
		{"semicolon-comma", "a;b,c"},
		{"dollar-caret", "$a^b!"},
		{"nfc", "caf\u00e9"},
		{"nfd", "cafe\u0301"},
		{"upper", "CASE"},
		{"lower", "case"},
		{"mixed", "Case"},
		{"dotless-i", "\u0131I\u0130"},
		{"emoji", "\U0001F600"},
		{"fullwidth-tilde", "\uFF5E"},
		{"rtl", "\u05d0\u202eb"},
		{"zero-width", "a\u200bb"},
		{"no-break-space", "a\u00a0"},
		{"bom", "\ufeffa"},
		{"replacement", "\ufffd"},
		{"plane-16", "\U0010FFFD"},
		{"dot-file", ".a"},
		{"dot-segment-like", "a/..b"},
		{"dots-inside", "a..b"},
		{"dash-leading", "-rf"},
		{"temp-file", "a.tmp"},
		{"temp-file-hidden", ".tmp-123456"},
		{"temp-file-tilde", "a~"},
		{"temp-upload", ".wholeblob.tmp"},
		{"partial", "a.partial"},
		{"windows-nul", "NUL"},
		{"windows-con", "con/aux.txt"},
		{"windows-com", "COM1.log"},
		{"windows-stream", "a:b:$DATA"},
		{"well-known", ".well-known/x"},
		{"long-segment", strings.Repeat("s", 256)},
		{"long-segment-escaped", strings.Repeat("%", 200)},
		{"long-segment-unicode", strings.Repeat("\u00e9", 140)},
	}
	return append(keys, s.longestKeys()...)
}

// longestKeys reach the limits of length and slashes.
func (s *settings) longestKeys() []namedKey {
	segments := strings.Repeat("segment-of-32-bytes-------------/", 1+blob.MaxKey/33)
	return []namedKey{
		{"longest-one-segment", strings.Repeat("k", s.MaxKey)},
		{"longest-segments", strings.TrimSuffix(segments[:s.MaxKey-1], "/") + strings.Repeat("e", s.MaxKey-len(strings.TrimSuffix(segments[:s.MaxKey-1], "/")))},
		{"most-slashes", strings.Repeat("d/", s.MaxKeySlashes) + "e"},
	}
}

// invalidKeys are keys that Set must refuse. The names are the cases of "keys/refused...".
func (s *settings) invalidKeys() []namedKey {
	return []namedKey{
		{"dot", "."},
		{"dot-dot", ".."},
		{"dot-segment", "a/./b"},
		{"dot-dot-segment", "a/../b"},
		{"dot-dot-leading", "../a"},
		{"dot-dot-deep", "a/../../../../b"},
		{"ends-in-dot", "a."},
		{"ends-in-dots", "a..."},
		{"segment-ends-in-dot", "a./b"},
		{"ends-in-dot-segment", "a/."},
		{"backslash", `a\b`},
		{"backslash-dot-dot", `..\a`},
		{"nul", "a\x00b"},
		{"newline", "a\nb"},
		{"tab", "a\tb"},
		{"control-1f", "a\x1fb"},
		{"delete", "a\x7f"},
		{"control-80", "a\u0080"},
		{"control-9f", "a\u009f"},
		{"private-e000", "a\ue000"},
		{"private-f8ff", "a\uf8ff"},
		{"fffe", "a\ufffe"},
		{"ffff", "a\uffff"},
		{"not-utf8", "a\xff"},
		{"not-utf8-surrogate", "a\xed\xa0\x80"},
		{"not-utf8-cut", "a\xc3"},
		{"too-long", strings.Repeat("k", s.MaxKey+1)},
		{"too-long-utf8", strings.Repeat("\u00e9", s.MaxKey/2+1)},
		{"too-many-slashes", strings.Repeat("/", s.MaxKeySlashes+1)},
		{"acme", ".well-known/acme-challenge/x"},
		{"acme-alone", ".well-known/acme-challenge/"},
	}
}
