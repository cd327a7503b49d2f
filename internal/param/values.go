package param

import (
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// Error is a parameter that is wrong.
type Error struct {
	Scheme string   // of the URL
	Name   string   // of the parameter
	Valid  []string // the parameters of the scheme, sorted; nil if only the value is wrong
	Err    error    // what is wrong; matches blob.ErrInvalidOption
}

// Error names the parameter and the fault, and the valid parameters unless only the value is wrong.
func (e *Error) Error() string {
	// The cause begins with the kind already: say it once, in front.
	reason := strings.TrimPrefix(e.Err.Error(), blob.ErrInvalidOption.Error()+": ")
	text := fmt.Sprintf("%v: %s URL parameter %s: %s", blob.ErrInvalidOption, e.Scheme, quote(e.Name), reason)
	switch {
	case e.Valid == nil:
		return text
	case len(e.Valid) == 0:
		return text + " (it has no parameters)"
	}
	return text + " (valid parameters: " + strings.Join(e.Valid, ", ") + ")"
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Values are the parameters of a URL. Whoever understands them takes each by its name and
// type and asks Err at the end, which reports the first thing wrong in the order of the URL: a parameter
// that was given twice, has no or an empty value, cannot be parsed, or that nobody took. A
// parameter that is not given is its default; so is a wrong one, until Err tells.
//
// Values is for one goroutine.
type Values struct {
	scheme string
	given  []given
	taken  []string
}

type given struct {
	name, value string
	err         error // the first that was found
	malformed   bool  // err is about the text
	refused     bool  // err is about the value: whoever took it could not use it
}

// newValues never fails: faults are kept with their parameter for Err, which can name
// the valid parameters.
func newValues(scheme, query string) *Values {
	v := &Values{scheme: scheme}
	if query == "" {
		return v
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		g := given{name: name}
		var errName, errValue error
		if n, err := url.QueryUnescape(name); err == nil {
			g.name = n
		} else {
			errName = err
		}
		g.value, errValue = url.QueryUnescape(value)
		switch {
		case errName != nil || errValue != nil:
			g.err, g.malformed = invalid("has a % that begins no escape"), true // url's own error quotes the value
		case strings.Contains(pair, ";"):
			// Old programs separate parameters so, and dropping the pair is what net/url does.
			g.err, g.malformed = invalid("has a semicolon: separate parameters with &, or write %3B"), true
		case g.name == "":
			g.err = invalid("has no name")
		case v.has(g.name):
			g.err = invalid("is given twice")
		case g.value == "":
			g.err = invalid("has no value: leave it out for its default")
		}
		v.given = append(v.given, g)
	}
	return v
}

func invalid(text string) error { return fmt.Errorf("%w: %s", blob.ErrInvalidOption, text) }

func (v *Values) has(name string) bool {
	return slices.ContainsFunc(v.given, func(g given) bool { return g.name == name })
}

// String takes a text, which is never empty when it is given.
func (v *Values) String(name, def string) string {
	return take(v, name, def, func(s string) (string, error) { return s, nil })
}

// Secret takes a text that no error may show.
func (v *Values) Secret(name string) string { return v.String(name, "") }

// Bool takes "true" or "false".
func (v *Values) Bool(name string, def bool) bool { return take(v, name, def, ParseBool) }

// Size takes a number of bytes, as ParseSize reads it.
func (v *Values) Size(name string, def int64) int64 { return take(v, name, def, ParseSize) }

// Duration takes a duration, as ParseDuration reads it.
func (v *Values) Duration(name string, def time.Duration) time.Duration {
	return take(v, name, def, ParseDuration)
}

// Int takes a whole number from lo to hi.
func (v *Values) Int(name string, def, lo, hi int) int {
	return take(v, name, def, func(s string) (int, error) { return ParseInt(s, lo, hi) })
}

// Enum takes one of the given words.
func (v *Values) Enum(name, def string, words ...string) string {
	return take(v, name, def, func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", fmt.Errorf("%w: %s: want one of %s", blob.ErrInvalidOption, quote(s), strings.Join(words, ", "))
		}
		return s, nil
	})
}

// Endpoint takes the http or https URL of a server, without user information, parameters or
// fragment, and returns it without a final slash.
func (v *Values) Endpoint(name, def string) string { return take(v, name, def, ParseEndpoint) }

// ParseEndpoint is the parser of Endpoint. Its error matches blob.ErrInvalidOption.
func ParseEndpoint(s string) (string, error) {
	fail := func(why string) (string, error) {
		return "", fmt.Errorf("%w: %s: want an http:// or https:// URL of a host: %s", blob.ErrInvalidOption, quote(Redact(s)), why)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return fail(parseReason(s, err))
	case u.Scheme != "http" && u.Scheme != "https":
		return fail("the scheme is another")
	case u.User != nil:
		return fail("it has user information")
	case u.Hostname() == "":
		return fail("it has no host")
	case strings.ContainsAny(s, "?#"):
		return fail("it has parameters or a fragment")
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

func take[T any](v *Values, name string, def T, parse func(string) (T, error)) T {
	if !slices.Contains(v.taken, name) {
		v.taken = append(v.taken, name)
	}
	for i := range v.given {
		g := &v.given[i]
		if g.name != name || g.err != nil {
			continue
		}
		x, err := parse(g.value)
		if err != nil {
			g.err, g.refused = err, true
			return def
		}
		return x
	}
	return def
}

// All yields the names and values in the order of the URL, whoever takes them.
func (v *Values) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, g := range v.given {
			if !yield(g.name, g.value) {
				return
			}
		}
	}
}

// Malformed returns a *Error about the first parameter that is no name and value at all, or nil. What is doubled, empty or unknown it leaves
// to Err.
func (v *Values) Malformed() error {
	for _, g := range v.given {
		if g.malformed {
			return &Error{Scheme: v.scheme, Name: g.name, Err: g.err}
		}
	}
	return nil
}

// Fail makes Err report the parameter name, if it is given, as wrong for a reason that the types here
// do not know. The error should match blob.ErrInvalidOption.
func (v *Values) Fail(name string, err error) {
	for i := range v.given {
		if g := &v.given[i]; g.name == name && g.err == nil {
			g.err, g.refused = err, true
		}
	}
}

// Err returns a *Error about the first parameter that is wrong, or nil.
func (v *Values) Err() error {
	for _, g := range v.given {
		err := g.err
		if err == nil && !slices.Contains(v.taken, g.name) {
			err = invalid("is unknown")
		}
		if err != nil {
			e := &Error{Scheme: v.scheme, Name: g.name, Err: err}
			if !g.refused {
				e.Valid = slices.AppendSeq([]string{}, slices.Values(v.taken))
				slices.Sort(e.Valid)
			}
			return e
		}
	}
	return nil
}
