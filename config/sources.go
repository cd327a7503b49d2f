package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/wholeblob/wholeblob/internal/param"
)

// ParseYAML reads a Config from a YAML mapping of names to scalars; "url" is the store.
func ParseYAML(text []byte) (Config, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil {
		return Config{}, notRead("YAML", err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Config{}, &Error{Err: invalid("the YAML has more than one document")}
	}
	var c Config
	err := c.UnmarshalYAML(&doc)
	return c, err
}

// UnmarshalYAML implements yaml.Unmarshaler of go.yaml.in/yaml/v3. Texts, numbers and switches are taken as they are written. An alias is the
// value it stands for; merge keys and tags of one's own are refused.
func (c *Config) UnmarshalYAML(n *yaml.Node) error {
	for n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		return c.UnmarshalText([]byte(n.Value))
	}
	if n.Kind != yaml.MappingNode {
		return &Error{Err: invalid("line %d of the YAML: want a mapping of settings, or a URL", n.Line)}
	}
	s := newSettings()
	for pair := range slices.Chunk(n.Content, 2) {
		name, value := pair[0], pair[1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if !plain(name) || !plain(value) {
			return &Error{Setting: name.Value, Err: invalid("line %d of the YAML: want one text, number or switch", name.Line)}
		}
		s.add(name.Value, value.Value)
	}
	return c.set(s)
}

// plain reports whether n means what it says: it is neither null nor a merge key, and has no tag such as !!binary or !vault that asks for its
// text to be turned into another.
func plain(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && slices.Contains([]string{"!!str", "!!bool", "!!int", "!!float", "!!timestamp"}, n.ShortTag())
}

// ParseJSON reads a Config from a JSON object of names and texts, numbers or switches; "url" is the store.
func ParseJSON(text []byte) (Config, error) {
	var c Config
	err := c.UnmarshalJSON(text)
	return c, err
}

// UnmarshalJSON implements json.Unmarshaler. A string is taken for a URL.
func (c *Config) UnmarshalJSON(text []byte) error {
	if !utf8.Valid(text) {
		return &Error{Err: invalid("the JSON is no UTF-8")} // the decoder would put other characters in place of what is not
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	t, err := d.Token()
	if err != nil {
		return notRead("JSON", err)
	}
	if raw, ok := t.(string); ok {
		if err := ended(d); err != nil {
			return err
		}
		return c.UnmarshalText([]byte(raw))
	}
	if t != json.Delim('{') {
		return &Error{Err: invalid("the JSON is neither an object of settings nor a URL")}
	}
	s := newSettings()
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return notRead("JSON", err)
		}
		value, err := d.Token()
		if err != nil {
			return notRead("JSON", err)
		}
		switch value.(type) {
		case string, json.Number, bool:
			s.add(fmt.Sprint(name), fmt.Sprint(value))
		default:
			return &Error{Setting: fmt.Sprint(name), Err: invalid("want one text, number or switch")}
		}
	}
	if _, err := d.Token(); err != nil {
		return notRead("JSON", err)
	}
	if err := ended(d); err != nil {
		return err
	}
	return c.set(s)
}

// ended fails if there is more than the one value that was read.
func ended(d *json.Decoder) error {
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &Error{Err: invalid("the JSON goes on behind its value")}
	}
	return nil
}

// notRead hides what the parser says of a text: it can quote a secret.
func notRead(what string, err error) error {
	why := "is not well-formed"
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		why = "is empty or ends early"
	}
	var at *json.SyntaxError
	if errors.As(err, &at) {
		why += fmt.Sprintf(" at byte %d", at.Offset)
	}
	return &Error{Err: invalid("the %s %s", what, why)}
}

// UnmarshalText implements encoding.TextUnmarshaler: the text is a URL.
func (c *Config) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*c = parsed
	}
	return err
}

// MarshalText is String.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// ParseEnv reads a Config from the variables, each NAME=value as in os.Environ, whose names begin with prefix: prefix+"URL" is the store, and
// prefix+"PART_SIZE" is part_size. Every variable with the prefix must be a setting; the names are in upper case.
func ParseEnv(prefix string, environ []string) (Config, error) {
	if prefix == "" {
		return Config{}, &Error{Err: invalid("the prefix of the environment variables is empty")}
	}
	s := newSettings()
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if rest != strings.ToUpper(rest) {
			return Config{}, &Error{Setting: rest, Err: invalid("environment variable %s: want it in upper case", param.Quote(name))}
		}
		s.add(strings.ToLower(rest), value)
	}
	var c Config
	err := c.set(s)
	return c, err
}

func (c *Config) set(s *settings) error {
	parsed, err := s.merge()
	if err == nil {
		*c = parsed
	}
	return err
}
