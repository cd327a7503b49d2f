package fakegcs

import (
	"bytes"
	"encoding/json"
	"strings"
)

// mask is a partial response as it was asked for ("Partial response" of the
// JSON API overview): names with the masks of what is below them, "*" for any
// name. A mask of no names is everything.
type mask map[string]mask

// parseMask reads a list such as "items(name,size),nextPageToken,a/b". It
// returns what follows the list.
func parseMask(s string) (m mask, rest string, ok bool) {
	m = mask{}
	for {
		i := strings.IndexAny(s, ",()/")
		if i < 0 {
			i = len(s)
		}
		name := s[:i]
		if name == "" {
			return nil, s, false
		}
		sub := mask{}
		m[name], s = sub, s[i:]
		for strings.HasPrefix(s, "/") {
			i := strings.IndexAny(s[1:], ",()/")
			if i < 0 {
				i = len(s) - 1
			}
			next := mask{}
			sub[s[1:1+i]] = next
			sub, s = next, s[1+i:]
		}
		if strings.HasPrefix(s, "(") {
			inner, after, ok := parseMask(s[1:])
			if !ok || !strings.HasPrefix(after, ")") {
				return nil, s, false
			}
			for k, v := range inner {
				sub[k] = v
			}
			s = after[1:]
		}
		if !strings.HasPrefix(s, ",") {
			return m, s, true
		}
		s = s[1:]
	}
}

// selectFields keeps of a JSON document what the text of a mask names.
func selectFields(doc []byte, text string) ([]byte, bool) {
	m, rest, ok := parseMask(text)
	if !ok || rest != "" {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	return mustJSON(m.keep(v)), true
}

func (m mask) keep(v any) any {
	if len(m) == 0 {
		return v
	}
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = m.keep(v[i])
		}
	case map[string]any:
		for k := range v {
			sub, named := m[k]
			every, anyName := m["*"]
			switch {
			case named:
				v[k] = sub.keep(v[k])
			case anyName:
				v[k] = every.keep(v[k])
			default:
				delete(v, k)
			}
		}
	}
	return v
}
