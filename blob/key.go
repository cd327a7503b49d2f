package blob

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of keys and prefixes. A key under a store's own prefix has at most
// 1024 bytes, what S3 and GCS allow ("Object key naming guidelines" of the
// Amazon S3 User Guide, "Object naming" of the Cloud Storage documentation), and
// at most 250 slashes: Azure allows 254 path segments ("Naming and
// Referencing Containers, Blobs, and Metadata").
const (
	MaxKey           = 896 // bytes of a key
	MaxKeySlashes    = 200 // slashes in a key
	MaxPrefix        = 128 // bytes of a store's own prefix
	MaxPrefixSlashes = 50  // slashes in a store's own prefix
)

// acmePrefix is refused by GCS ("Object naming": objects cannot start with it).
const acmePrefix = ".well-known/acme-challenge/"

// CheckKey returns an error that matches ErrInvalidKey unless Set accepts
// key. The rule is the common ground of all stores, so that a key
// that is accepted on one round-trips byte for byte on every other:
//
//   - valid UTF-8 of 1 to MaxKey bytes, at most MaxKeySlashes of them '/'
//   - no control characters: below U+0020, U+007F, U+0080 to U+009F
//   - no backslash, no private use U+E000 to U+F8FF, no U+FFFE, no U+FFFF
//   - no segment between slashes that ends in a dot (which covers "." and "..")
//   - not beginning with ".well-known/acme-challenge/"
//
// Other methods accept any non-empty key: what an older program or another tool
// stored can be read and deleted.
func CheckKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w: it is empty", ErrInvalidKey)
	}
	if len(key) > MaxKey {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrInvalidKey, len(key), MaxKey)
	}
	if strings.HasPrefix(key, acmePrefix) {
		return fmt.Errorf("%w: begins with %q", ErrInvalidKey, acmePrefix)
	}
	return checkName(key, MaxKeySlashes)
}

// CheckPrefix returns p as a store's own prefix, under which all its keys lie: empty,
// or with its final slash, which is added if it is missing, so that the prefix "team" never reaches
// "team2". A prefix that breaks the rules of keys or the limits above is
// ErrInvalidOption.
func CheckPrefix(p string) (string, error) {
	if p == "" {
		return "", nil
	}
	if !strings.HasSuffix(p, "/") {
		p += "/"
	}
	if len(p) > MaxPrefix {
		return "", fmt.Errorf("%w: prefix %q has %d bytes, at most %d", ErrInvalidOption, p, len(p), MaxPrefix)
	}
	if strings.HasPrefix(p, acmePrefix) || strings.HasPrefix(acmePrefix, p) {
		// A prefix such as ".well-known/" would let a valid key complete the refused one.
		return "", fmt.Errorf("%w: prefix %q can begin %q", ErrInvalidOption, p, acmePrefix)
	}
	if err := checkName(p, MaxPrefixSlashes); err != nil {
		return "", fmt.Errorf("%w: prefix %q: %v", ErrInvalidOption, p, strings.TrimPrefix(err.Error(), ErrInvalidKey.Error()+": "))
	}
	return p, nil
}

func checkName(s string, slashes int) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: not valid UTF-8", ErrInvalidKey)
	}
	if n := strings.Count(s, "/"); n > slashes {
		return fmt.Errorf("%w: %d slashes, at most %d", ErrInvalidKey, n, slashes)
	}
	var last rune
	for i, r := range s {
		if badRune(r) {
			return fmt.Errorf("%w: character %U at byte %d", ErrInvalidKey, r, i)
		}
		if r == '/' && last == '.' {
			return fmt.Errorf("%w: segment ends in a dot before byte %d", ErrInvalidKey, i)
		}
		last = r
	}
	if last == '.' {
		return fmt.Errorf("%w: segment ends in a dot", ErrInvalidKey)
	}
	return nil
}

func badRune(r rune) bool {
	switch {
	case r < 0x20, r == '\\':
		return true
	case 0x7F <= r && r <= 0x9F:
		return true
	case 0xE000 <= r && r <= 0xF8FF, r == 0xFFFE, r == 0xFFFF:
		return true
	}
	return false
}
