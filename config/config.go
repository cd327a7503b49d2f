// Package config builds a whole stack — a store, the retry loop around it, a cache in front of both — from one Config, so that a
// program swaps its backend by changing a text.
//
//	cfg, err := config.Parse("s3://bucket/prefix?region=eu-central-1&part_size=16MiB")
//	stack, err := config.Open(ctx, cfg)
//	defer stack.Close(ctx)
//
// # Spellings
//
// A Config is the URL of a store and settings by name. The same names serve in every spelling:
//
//	URL          s3://bucket/prefix?region=eu-central-1&part_size=16MiB      Parse
//	YAML         url: s3://bucket/prefix                                     ParseYAML, or a field of type Config
//	             region: eu-central-1
//	             part_size: 16MiB
//	JSON         {"url": "s3://bucket/prefix", "region": "eu-central-1"}     ParseJSON, or a field of type Config
//	environment  MYDB_BLOB_URL=s3://bucket/prefix MYDB_BLOB_PART_SIZE=16MiB  ParseEnv("MYDB_BLOB_", environ)
//
// Sizes are written like 512MiB, durations like 30s, switches true or false. Reading is strict: an unknown name, one that is given twice
// (in the URL and beside it, too), an empty value and a wrong one are *Error, which names the setting and, where the name is at fault, lists
// the valid ones. A Config that was read without an error has been checked in full; only what needs I/O can still fail in Open.
//
// # Secrets
//
// Secrets (see Secrets) are settings in YAML, JSON and the environment, and refused in URLs, which end up in logs. For each secret there is a
// setting of the same name with "_file" behind it, the path of a file that holds it, which Open reads. No error, String, Marshal method,
// format verb or log value shows a secret, nor does printing a struct that has a Config in it.
//
// # Stores
//
//	mem://                      memory of this process; settings max_get, max_object, restore
//	file:///dir                 a directory; create, nosync, restore, max_get, max_object, temp_age
//	s3://bucket/prefix          see s3blob.ParseURL
//	gs://bucket/prefix          see gcsblob.ParseURL
//	azblob://container/prefix   see azblob.ParseURL
//
// All take retry_attempts, retry_attempt and retry_total, the policy of each request.
//
// # Cache
//
// A stack has a cache in front of the store if one of its settings is given, which are the same for all stores. They are cache.Options, whose
// fields say what they do:
//
//	cache                on (if another of these is given) or off: no cache is made, whatever else is said; true and false mean the same
//	cache_memory         size of the memory tier, by default 256MiB, or off (false)
//	cache_dir            directory of the disk tier, which one process has at a time; by default none
//	cache_disk           size of the disk tier, at least 64KiB; wanted with cache_dir
//	cache_block          unit of ranged reads, a multiple of 4KiB, by default 128KiB; with a cache_max_fill below it no range is kept
//	cache_max_fill       largest object or range that is kept; by default, and at most, what a tier takes: an eighth of its capacity, on
//	                     disk below 64MiB
//	cache_fill_bytes     bytes of all fills in flight, by default 64MiB
//	cache_revalidate     never (the default: keys are written once, or by this stack alone), always, or the age at which the store is asked
//	cache_write_through  whether Set fills the cache, by default true
//
// If the cache cannot be opened, Open fails: with blob.ErrConflict while another process has the directory.
//
// A program that names its store in code, and wants only that store's SDK linked, calls the New of the store's own package.
package config

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
)

// Config describes a stack. The zero value describes none, and Open refuses it. A Config is a value: copies are independent, and it is safe for
// concurrent use.
type Config struct {
	base     string            // the URL without parameters, as it was written
	settings map[string]string // by name, secrets apart; never changed once the Config is made
	secrets  sealed
}

// sealed holds secrets by name. nil holds none. It is a function since package fmt prints a Config in an unexported field of another struct by
// reflection, without asking Format, and sees neither through a function nor into it.
type sealed func() map[string]string

func seal(secrets map[string]string) sealed {
	if len(secrets) == 0 {
		return nil
	}
	return func() map[string]string { return secrets }
}

// open returns the secrets, for reading only.
func (s sealed) open() map[string]string {
	if s == nil {
		return nil
	}
	return s()
}

// Error is a setting that is wrong. It matches blob.ErrInvalidOption.
type Error struct {
	Setting string   // its name; "url" for the URL itself; "" for the whole
	Valid   []string // the names there are, sorted; nil if only the value is wrong
	Err     error
}

// Error names the setting and what is wrong, and the valid names unless only the value is wrong.
func (e *Error) Error() string {
	reason := strings.TrimPrefix(e.Err.Error(), blob.ErrInvalidOption.Error()+": ")
	text := blob.ErrInvalidOption.Error() + ": "
	if e.Setting != "" {
		text += fmt.Sprintf("setting %s: ", param.Quote(e.Setting))
	}
	text += reason
	if e.Valid != nil {
		text += " (valid settings: " + strings.Join(e.Valid, ", ") + ")"
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Parse reads a Config from a URL, whose parameters are the settings.
func Parse(raw string) (Config, error) {
	s := newSettings()
	base, err := s.url(raw)
	if err != nil {
		return Config{}, err
	}
	return s.config(base)
}

// settings collects what a source says, and the first thing wrong with it.
type settings struct {
	values map[string]string
	err    *Error
}

// url adds the parameters of a URL and returns the rest of it.
func (s *settings) url(raw string) (base string, err error) {
	u, err := param.ParseURL(raw)
	if err != nil {
		return "", &Error{Setting: "url", Err: err}
	}
	if err := u.Query.Malformed(); err != nil {
		return "", &Error{Err: err}
	}
	sc := schemes()[u.Scheme]
	for name, value := range u.Query.All() {
		if sc.secret(name) {
			return "", &Error{Setting: name, Err: invalid("a secret does not belong in a URL: use another spelling, or %s_file", name)}
		}
		s.add(name, value)
	}
	base, _, _ = strings.Cut(raw, "?")
	return base, nil
}

func newSettings() *settings { return &settings{values: make(map[string]string)} }

func (s *settings) add(name, value string) {
	switch _, twice := s.values[name]; {
	case s.err != nil: // the first counts
	case name == "":
		s.err = &Error{Err: invalid("a setting has no name")}
	case twice:
		s.err = &Error{Setting: name, Err: invalid("is given twice")}
	case value == "":
		s.err = &Error{Setting: name, Err: invalid("has no value: leave it out for its default")}
	}
	s.values[name] = value
}

// config makes a Config of base and the settings, and checks it.
func (s *settings) config(base string) (Config, error) {
	scheme, _, _ := strings.Cut(base, "://")
	sc, ok := schemes()[strings.ToLower(scheme)]
	if !ok {
		return Config{}, &Error{Setting: "url", Err: invalid("unsupported scheme %s: want one of %s", param.Quote(scheme), strings.Join(Schemes(), ", "))}
	}
	if s.err != nil {
		s.err.Valid = sc.names(base)
		return Config{}, s.err
	}
	c, secrets := Config{base: base, settings: make(map[string]string)}, make(map[string]string)
	for name, value := range s.values {
		if sc.secret(name) {
			secrets[name] = value
		} else {
			c.settings[name] = value
		}
	}
	c.secrets = seal(secrets)
	if _, err := c.plan(sc); err != nil {
		return Config{}, err
	}
	return c, nil
}

// merge makes a Config of settings from one source that give the URL as a setting of its own. The URL may have parameters: a name in both is given
// twice.
func (s *settings) merge() (Config, error) {
	raw, ok := s.values["url"]
	if !ok {
		return Config{}, &Error{Setting: "url", Err: invalid("is missing: want the URL of a store, such as s3://bucket/prefix")}
	}
	delete(s.values, "url")
	base, err := s.url(raw)
	if err != nil {
		return Config{}, err
	}
	return s.config(base)
}

// With returns a copy of c with other settings: each of changes is added, or replaces what c has; a value of "" takes the setting out.
func (c Config) With(changes map[string]string) (Config, error) {
	s := newSettings()
	maps.Copy(s.values, c.settings)
	maps.Copy(s.values, c.secrets.open())
	for _, name := range slices.Sorted(maps.Keys(changes)) { // in order: of several errors it is always the same
		delete(s.values, name)
		if value := changes[name]; value != "" {
			s.add(name, value)
		}
	}
	return s.config(c.base)
}

// Get returns a setting as it was written, or "". Secrets it does not return.
func (c Config) Get(name string) string { return c.settings[name] }

// Scheme returns which kind of store it is: one of Schemes, or "" for the zero Config.
func (c Config) Scheme() string {
	scheme, _, _ := strings.Cut(c.base, "://")
	return strings.ToLower(scheme)
}

// Target returns the URL without the settings: what to call the store where people read.
func (c Config) Target() string { return c.base }

// Equal reports whether both describe the same stack in the same words. It is the only way to compare: reflect.DeepEqual takes a Config with
// secrets for different from itself.
func (c Config) Equal(d Config) bool {
	return c.base == d.base && maps.Equal(c.settings, d.settings) && maps.Equal(c.secrets.open(), d.secrets.open())
}

// redacted stands for a secret. Reading it back is an error, so that a secret is never lost in silence.
const redacted = "REDACTED"

// String returns the Config as a URL with the settings in order of their names. Parse reads it back into an equal Config. Secrets
// are shown as REDACTED, and such a URL is refused: secrets given as files survive.
func (c Config) String() string {
	var b strings.Builder
	b.WriteString(c.base)
	sep := "?"
	for _, name := range c.names() {
		value, ok := c.settings[name]
		if !ok {
			value = redacted
		}
		b.WriteString(sep + url.QueryEscape(name) + "=" + url.QueryEscape(value))
		sep = "&"
	}
	return b.String()
}

func (c Config) names() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for _, m := range []map[string]string{c.settings, c.secrets.open()} {
			for name := range m {
				if !yield(name) {
					return
				}
			}
		}
	})
}

// Format implements fmt.Formatter, so that no verb shows a secret.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue implements slog.LogValuer without secrets.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", blob.ErrInvalidOption, fmt.Sprintf(format, args...))
}
