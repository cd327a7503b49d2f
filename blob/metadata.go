package blob

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits of the caller's metadata.
const (
	MaxMetadata    = 512 // bytes of all keys and values together
	MaxMetadataKey = 32  // bytes of one key
)

// metadataPrefix begins the names that are ours: hidden from callers and refused from them.
const metadataPrefix = "wholeblob"

// Metadata format v1. Frozen: names and spellings below never change, later formats add names.
// A reader hides every name that begins with "wholeblob" and ignores those it does not know.
//
//	wholeblobtoken   "1-" and 32 lower-case hex digits, random for each Set
//	wholeblobcrc32c  8 lower-case hex digits, Castagnoli of the whole object
//	wholeblobsha256  64 lower-case hex digits, of the whole object
const (
	metaToken  = metadataPrefix + "token"
	metaCRC32C = metadataPrefix + "crc32c"
	metaSHA256 = metadataPrefix + "sha256"

	tokenFormat = "1-"
)

// CheckMetadata returns an error that matches ErrInvalidOption unless every store keeps m as it is:
// keys of the form [a-z][a-z0-9]{0,31} that do not begin with "wholeblob", values of 1 or more printable ASCII
// characters without a space at either end, MaxMetadata bytes in all.
//
// Neither '_' nor '-' nor upper case is allowed in a key: Azure refuses the one (names must be C#
// identifiers: "Setting and retrieving properties and metadata"), gateways and proxies change
// or drop the other, and HTTP header names do not keep their case.
func CheckMetadata(m map[string]string) error {
	total := 0
	for _, k := range slices.Sorted(maps.Keys(m)) { // sorted: the same mistake gives the same error
		v := m[k]
		if err := checkMetadataKey(k); err != nil {
			return err
		}
		if v == "" || !printable(v) {
			return fmt.Errorf("%w: value of metadata %q: %q is not printable ASCII without edge spaces, or empty", ErrInvalidOption, k, v)
		}
		total += len(k) + len(v)
	}
	if total > MaxMetadata {
		return fmt.Errorf("%w: metadata has %d bytes, at most %d", ErrInvalidOption, total, MaxMetadata)
	}
	return nil
}

func checkMetadataKey(k string) error {
	if strings.HasPrefix(k, metadataPrefix) {
		return fmt.Errorf("%w: metadata key %q: names that begin with %q are reserved", ErrInvalidOption, k, metadataPrefix)
	}
	ok := k != "" && len(k) <= MaxMetadataKey && 'a' <= k[0] && k[0] <= 'z'
	for i := 0; i < len(k) && ok; i++ {
		ok = 'a' <= k[i] && k[i] <= 'z' || '0' <= k[i] && k[i] <= '9'
	}
	if !ok {
		return fmt.Errorf("%w: metadata key %q is not of the form [a-z][a-z0-9]{0,%d}", ErrInvalidOption, k, MaxMetadataKey-1)
	}
	return nil
}

// printable reports whether s is printable ASCII without a space at either end.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7E {
			return false
		}
	}
	return strings.Trim(s, " ") == s
}

func checkContentType(s string) error {
	if len(s) > 255 || !printable(s) {
		return fmt.Errorf("%w: content type %q is not printable ASCII of at most 255 bytes without edge spaces", ErrInvalidOption, s)
	}
	return nil
}

// Stamp is what a store keeps for itself beside the caller's metadata: the token that
// lets a writer recognise its own write, and checksums of the whole object.
type Stamp struct {
	Token     string // as returned by NewToken; "" if there is none
	CRC32C    uint32
	HasCRC32C bool
	SHA256    [32]byte
	HasSHA256 bool
}

// NewToken returns a fresh write token: 128 random bits in lower-case hex.
func NewToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

// Seal returns what to store: the caller's entries and those of the stamp. user is not changed.
func (s Stamp) Seal(user map[string]string) map[string]string {
	m := make(map[string]string, len(user)+3)
	maps.Copy(m, user)
	if s.Token != "" {
		m[metaToken] = tokenFormat + s.Token
	}
	if s.HasCRC32C {
		m[metaCRC32C] = fmt.Sprintf("%08x", s.CRC32C)
	}
	if s.HasSHA256 {
		m[metaSHA256] = hex.EncodeToString(s.SHA256[:])
	}
	return m
}

// Unseal splits stored metadata into the caller's entries, which are nil if there are none, and the stamp. Names are
// compared without case, since HTTP header names do not keep it. A value
// of ours that is not well formed counts as absent: a damaged checksum entry must not make good bytes unreadable.
func Unseal(stored map[string]string) (user map[string]string, s Stamp) {
	for name, v := range stored {
		switch name = strings.ToLower(name); name {
		case metaToken:
			if t, ok := strings.CutPrefix(v, tokenFormat); ok && isHex(t, 32) {
				s.Token = t
			}
		case metaCRC32C:
			if n, err := strconv.ParseUint(v, 16, 32); err == nil && isHex(v, 8) {
				s.CRC32C, s.HasCRC32C = uint32(n), true
			}
		case metaSHA256:
			if isHex(v, 64) {
				_, err := hex.Decode(s.SHA256[:], []byte(v))
				s.HasSHA256 = err == nil
			}
		default:
			if strings.HasPrefix(name, metadataPrefix) {
				continue
			}
			if user == nil {
				user = make(map[string]string, len(stored))
			}
			user[name] = v
		}
	}
	return user, s
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}
