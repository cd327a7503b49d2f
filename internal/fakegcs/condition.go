package fakegcs

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// condition are the generation conditions of one request ("Request
// preconditions"). Nil: not asked for.
type condition struct {
	generation, notGeneration         *int64
	metageneration, notMetageneration *int64
}

// conditionOf reads the query parameters whose names begin with prefix: "if",
// or "ifSource" for the source of a copy.
func conditionOf(q url.Values, prefix string) (condition, *apiError) {
	var c condition
	for _, p := range []struct {
		name string
		to   **int64
	}{
		{"GenerationMatch", &c.generation}, {"GenerationNotMatch", &c.notGeneration},
		{"MetagenerationMatch", &c.metageneration}, {"MetagenerationNotMatch", &c.notMetageneration},
	} {
		name := prefix + p.name
		if !q.Has(name) {
			continue
		}
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil || n < 0 {
			return c, errInvalid("Invalid value for: %s is not a valid number", q.Get(name)).at(name)
		}
		*p.to = &n
	}
	return c, nil
}

// headerCondition reads the headers of the XML API, which has no "not" forms.
func headerCondition(h http.Header) (condition, *apiError) {
	q := url.Values{}
	for header, name := range map[string]string{
		"X-Goog-If-Generation-Match": "ifGenerationMatch", "X-Goog-If-Metageneration-Match": "ifMetagenerationMatch",
	} {
		if v := h.Get(header); v != "" {
			q.Set(name, v)
		}
	}
	return conditionOf(q, "if")
}

// check decides about what is to be replaced: o, or nil when nothing is live.
// Generation 0 means that nothing is; the "not" forms fail when nothing is
// ("If no live object exists, the precondition fails").
func (c condition) check(o *object) *apiError {
	var gen, metagen int64
	if o != nil {
		gen, metagen = o.generation, o.metageneration
	}
	switch {
	case c.generation != nil && *c.generation != gen:
		return errCondition("If-Match")
	case c.metageneration != nil && (o == nil || *c.metageneration != metagen):
		return errCondition("If-Match")
	case c.notGeneration != nil && (o == nil || *c.notGeneration == gen):
		return errNotModified()
	case c.notMetageneration != nil && (o == nil || *c.notMetageneration == metagen):
		return errNotModified()
	}
	return nil
}

// target is the check of a read, a delete or an update. The documents do not
// say which wins when the object is missing; by RFC 9110, section 13.2.1, a
// request that fails anyway is not conditional, so it is the 404.
// Knobs.MissingFailsCondition asks for the other.
func (c *call) target(cond condition) func(*object) *apiError {
	return func(o *object) *apiError {
		if o == nil && !c.knobs.MissingFailsCondition {
			return errNoObject(c.Bucket, c.Key)
		}
		if err := cond.check(o); err != nil {
			return err
		}
		if o == nil {
			return errNoObject(c.Bucket, c.Key)
		}
		return nil
	}
}

// readCondition applies the standard conditional headers: entity tags on both
// APIs, dates on the XML API only ("Request preconditions").
func (c *call) readCondition(o *object, etag string) *apiError {
	h := c.Header
	mod := o.updated.Truncate(time.Second) // dates in headers have whole seconds
	match, none := h.Get("If-Match"), h.Get("If-None-Match")
	since := func(name string) (time.Time, bool) {
		t, err := http.ParseTime(h.Get(name))
		return t, err == nil && c.xml
	}
	switch {
	case match != "" && !tagMatches(match, etag):
		return errCondition("If-Match")
	case none != "" && tagMatches(none, etag):
		return errNotModified()
	}
	if t, ok := since("If-Unmodified-Since"); ok && match == "" && mod.After(t) {
		return errCondition("If-Unmodified-Since")
	}
	if t, ok := since("If-Modified-Since"); ok && none == "" && !mod.After(t) {
		return errNotModified()
	}
	return nil
}

// tagMatches compares a list of entity tags, quoted or not, or "*".
func tagMatches(list, etag string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if t = strings.TrimSpace(t); t == "*" || strings.Trim(t, `"`) == strings.Trim(etag, `"`) {
			return true
		}
	}
	return false
}
