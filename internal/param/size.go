package param

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

// Size is a number of bytes that people read and write. It is a flag
// (flag.TextVar) and a field of a text configuration.
type Size int64

// units in the order FormatSize tries them. Binary units come first: they are
// what sizes of parts and caches are given in.
var units = [...]struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"B", 1},
}

// sizeSyntax ends every error about a size, so that the reader need not look it up.
const sizeSyntax = "want whole bytes such as 512, 4KiB, 10MB, with a unit of B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024)"

// ParseSize returns the bytes that s says: decimal digits, then nothing or
// one of the units B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of
// 1024), spelled exactly so. Signs, fractions, exponents, spaces and other spellings ("5mb", "5M") are
// refused instead of guessed at, and so is what does not fit into an int64. The error matches
// blob.ErrInvalidOption.
func ParseSize(s string) (int64, error) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	factor, ok := unit(s[digits:])
	if digits == 0 || !ok {
		return 0, fmt.Errorf("%w: size %s: %s", blob.ErrInvalidOption, quote(s), sizeSyntax)
	}
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	if err != nil || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%w: size %s is above %d bytes", blob.ErrInvalidOption, quote(s), int64(math.MaxInt64))
	}
	return n * factor, nil
}

func unit(name string) (int64, bool) {
	if name == "" {
		return 1, true
	}
	for _, u := range units {
		if u.name == name {
			return u.bytes, true
		}
	}
	return 0, false
}

// FormatSize returns n in the largest unit that keeps it whole, binary units
// first, and in plain digits if only bytes do. ParseSize gives back n, unless it is negative.
func FormatSize(n int64) string {
	for _, u := range units {
		if n > 0 && u.bytes > 1 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// ParseSizes returns the sizes of a list separated by commas. An empty list or
// element is refused.
func ParseSizes(s string) ([]int64, error) {
	var sizes []int64
	for part := range strings.SplitSeq(s, ",") {
		n, err := ParseSize(part)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// String is FormatSize.
func (s Size) String() string { return FormatSize(int64(s)) }

// MarshalText is FormatSize.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseSize.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := ParseSize(string(text))
	if err == nil {
		*s = Size(n)
	}
	return err
}
