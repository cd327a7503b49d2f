package param

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// ParseDuration is time.ParseDuration without signs, so the result is never
// negative, and without positive durations that round to zero, which may mean "default" or "off" to
// whoever asked. The error matches blob.ErrInvalidOption.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || strings.ContainsAny(s, "+-") {
		return 0, fmt.Errorf("%w: duration %s: want a number with a unit such as 500ms, 30s or 1h30m, not negative", blob.ErrInvalidOption, quote(s))
	}
	if d == 0 && strings.ContainsAny(s, "123456789") {
		return 0, fmt.Errorf("%w: duration %s is below one nanosecond", blob.ErrInvalidOption, quote(s))
	}
	return d, nil
}

// ParseBool accepts "true" and "false" only. The error matches blob.ErrInvalidOption.
func ParseBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%w: %s: want true or false", blob.ErrInvalidOption, quote(s))
}

// ParseInt accepts decimal digits that give a number in [lo, hi], both not
// negative. The error matches blob.ErrInvalidOption.
func ParseInt(s string, lo, hi int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || strings.ContainsAny(s, "+-") || n < lo || n > hi {
		return 0, fmt.Errorf("%w: %s: want a whole number from %d to %d", blob.ErrInvalidOption, quote(s), lo, hi)
	}
	return n, nil
}

// maxQuote bounds how much of a wrong value an error repeats.
const maxQuote = 64

// Quote shows a wrong value in an error: quoted, cut when it is long, and not at all if it can hold the user
// information of a URL.
func Quote(s string) string { return quote(s) }

func quote(s string) string {
	if strings.Contains(s, "@") {
		return `"..."`
	}
	if len(s) <= maxQuote {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:maxQuote]) + "..."
}
