// Package param reads what people write: the URL of a store with its
// parameters, and the sizes, durations and switches in URLs, flags and configurations.
//
// It is strict, since a value that is guessed at or dropped works until it
// matters: nothing is trimmed, folded or defaulted when it is there but wrong, and every
// parameter has to be one that somebody takes. All errors match
// blob.ErrInvalidOption, name what is wrong, and hold no secrets: neither user information of
// a URL nor the value of a parameter that is secret or that nobody knows.
package param

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

// URL is the parsed URL of a store.
type URL struct {
	Scheme string  // in lower case
	Host   string  // what stands between "//" and the path, with a port if there is one; may be empty
	Path   string  // unescaped, with its leading slash; "%2F" is a slash like any other
	Query  *Values // the parameters
}

// ParseURL parses a URL of the form scheme://host/path?name=value&name=value.
// User information ("key:secret@") and fragments are refused.
func ParseURL(raw string) (*URL, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !validScheme(scheme) {
		return nil, fmt.Errorf("%w: %q is no URL of the form scheme://host/path?name=value", blob.ErrInvalidOption, Redact(raw))
	}
	base, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest, "#") {
		return nil, fmt.Errorf("%w: URL %q has a fragment: write %%23 for the character #", blob.ErrInvalidOption, Redact(raw))
	}
	u, err := url.Parse(scheme + "://" + base)
	if err != nil {
		return nil, fmt.Errorf("%w: URL %q: %s", blob.ErrInvalidOption, Redact(raw), parseReason(raw, err))
	}
	if u.User != nil {
		return nil, fmt.Errorf("%w: URL %q has user information before the host: credentials do not belong in a URL", blob.ErrInvalidOption, Redact(raw))
	}
	return &URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, Query: newValues(u.Scheme, query)}, nil
}

// String returns the URL without its parameters.
func (u *URL) String() string {
	host := (&url.URL{Host: u.Host}).String() // escaped; "" or with its slashes
	return u.Scheme + "://" + strings.TrimPrefix(host, "//") + (&url.URL{Path: u.Path}).EscapedPath()
}

// Redact returns the part of a URL, however malformed, that may be shown: nothing
// after the scheme if an "@" can have been meant to end user information, and no parameters.
func Redact(raw string) string {
	if strings.Contains(raw, "@") {
		// A password may hold any of "/?#:", so there is no saying where it begins or ends.
		scheme, _, ok := strings.Cut(raw, "://")
		if !ok || !validScheme(scheme) {
			return "..."
		}
		return scheme + "://..."
	}
	if i := strings.IndexAny(raw, "?#"); i >= 0 {
		return raw[:i]
	}
	return raw
}

// Hide returns what may be shown of a secret: whether there is one.
func Hide[S ~string | ~[]byte](secret S) string {
	if len(secret) == 0 {
		return `""`
	}
	return "redacted"
}

// parseReason is the cause in an error of url.Parse. It can quote from the URL, so it is
// shown only where Redact shows the same.
func parseReason(raw string, err error) string {
	if e, ok := err.(*url.Error); ok && !strings.Contains(raw, "@") { //nolint:errorlint // url.Parse returns it unwrapped
		return e.Err.Error()
	}
	return "cannot be parsed"
}

func validScheme(s string) bool {
	for i, c := range s {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", c)) {
			return false
		}
	}
	return s != ""
}
