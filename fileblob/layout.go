package fileblob

import (
	"strings"
)

// The layout maps keys to paths under the root, one to one, so that
//
//   - names hold only [a-z0-9._=-] and the marks % @ +, none begins with a dot: the same on file systems that fold case or
//     Unicode normal forms, never ".", "..", or the hidden directory
//   - no name is longer than 131 bytes (encrypting file systems such as eCryptfs allow 143, others 255), and the longest valid key gives a
//     path of less than 3 KiB
//   - an object, a directory and a part of a long segment differ in their last byte, so that "a", "a/", and
//     "a/b" live beside each other
//
// A key is split at its slashes. What stands before a slash is a directory, what stands after the last slash an
// object: escape(segment)+"@". A segment whose escaped form has segmentLimit bytes or more is cut after the byte that
// reaches the limit, as often as it takes; each piece cut off is a directory escape(piece)+"+" that holds all that begins with it.
// An empty segment before a slash is the directory "%".
//
// INVARIANT (order): in one directory give each entry a text: an object its segment, a directory its segment and "/", a
// piece itself. Walking the entries in byte order of their texts visits keys in byte order, because no text is a prefix of another, except an
// object's, which comes first and holds nothing: whatever begins with a piece lies inside the piece.
const (
	segmentLimit = 128
	objectMark   = '@'
	pieceMark    = '+'
	emptyDir     = "%"
)

// location is where a key lives.
type location struct {
	dirs []string // below the root, outermost first
	name string
}

func locate(key string) location {
	dirs, rest := locateDirs(key)
	return location{dirs: dirs, name: escape(rest) + string(objectMark)}
}

// locateDirs returns the directories through which every key that begins with prefix is reached, and what of prefix is left to
// compare inside the innermost one.
func locateDirs(prefix string) (dirs []string, rest string) {
	for rest = prefix; ; {
		text, kind := cut(rest)
		switch kind {
		case cutPiece:
			dirs = append(dirs, escape(text)+string(pieceMark))
			rest = rest[len(text):]
		case cutDir:
			dirs = append(dirs, dirName(text))
			rest = rest[len(text)+1:]
		default:
			return dirs, rest
		}
	}
}

type cutKind uint8

const (
	cutObject cutKind = iota // text is all there is
	cutDir                   // text is followed by a slash
	cutPiece                 // text is the first piece of a long segment
)

// cut returns the text of the first entry on the way to s.
func cut(s string) (string, cutKind) {
	n := 0
	for i := range len(s) {
		if s[i] == '/' {
			return s[:i], cutDir
		}
		n += escapedLen(s[i], i == 0)
		if n >= segmentLimit {
			return s[:i+1], cutPiece
		}
	}
	return s, cutObject
}

func dirName(segment string) string {
	if segment == "" {
		return emptyDir
	}
	return escape(segment)
}

// entry is what a name in a directory stands for.
type entry struct {
	name   string
	text   string // see the order invariant
	object bool   // otherwise a directory
}

// parseEntry returns the entry called name. ok is false for a name that locate never makes.
func parseEntry(name string) (e entry, ok bool) {
	if name == emptyDir {
		return entry{name: name, text: "/"}, true
	}
	if name == "" {
		return entry{}, false
	}
	body, kind := name, cutDir
	switch name[len(name)-1] {
	case objectMark:
		body, kind = name[:len(name)-1], cutObject
	case pieceMark:
		body, kind = name[:len(name)-1], cutPiece
	}
	text, ok := unescape(body)
	if !ok || kind == cutDir && text == "" {
		return entry{}, false
	}
	// Only one name stands for a text: a segment that should have been cut, a piece cut elsewhere, or a
	// byte escaped without need is foreign, or one key would have two places.
	s := text
	if kind == cutDir {
		s += "/"
	}
	if again, k := cut(s); k != kind || again != text {
		return entry{}, false
	}
	return entry{name: name, text: s, object: kind == cutObject}, true
}

const hexDigits = "0123456789abcdef"

// plain reports whether b stands for itself. A dot does not at the beginning of a name.
func plain(b byte, first bool) bool {
	switch {
	case 'a' <= b && b <= 'z', '0' <= b && b <= '9', b == '-', b == '_', b == '=':
		return true
	case b == '.':
		return !first
	}
	return false
}

func escapedLen(b byte, first bool) int {
	if plain(b, first) {
		return 1
	}
	return 3
}

func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if plain(s[i], i == 0) {
			b.WriteByte(s[i])
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hexDigits[s[i]>>4])
		b.WriteByte(hexDigits[s[i]&15])
	}
	return b.String()
}

// unescape is the inverse of escape; ok is false for what escape never returns.
func unescape(s string) (text string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		first := b.Len() == 0
		if s[i] != '%' {
			if !plain(s[i], first) {
				return "", false
			}
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		hi, lo := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
		if hi < 0 || lo < 0 || plain(byte(hi<<4|lo), first) || hi<<4|lo == '/' {
			return "", false
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	return b.String(), true
}
