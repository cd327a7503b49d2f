package fakegcs

import (
	"encoding/json"
	"net/http"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// deleteObject is objects.delete.
func (c *call) deleteObject() (*fakehttp.Answer, *apiError) {
	gen, err := c.generation("generation")
	if err != nil {
		return nil, err
	}
	cond, err := conditionOf(c.Query, "if")
	if err != nil {
		return nil, err
	}
	if err := c.b.remove(c.Key, gen, c.s.Now(), c.target(c.obeyed(cond))); err != nil {
		return nil, err
	}
	return fakehttp.NewAnswer(http.StatusNoContent), nil
}

// restore is objects.restore: the new object is a copy, so the soft-deleted
// generation stays until its time is over.
func (c *call) restore() (*fakehttp.Answer, *apiError) {
	gen, err := c.generation("generation")
	switch {
	case err != nil:
		return nil, err
	case gen == 0:
		return nil, errRequired("generation")
	case c.knobs.NoSoftDelete:
		return nil, errInvalid("Soft deletion is not supported")
	}
	cond, err := conditionOf(c.Query, "if")
	if err != nil {
		return nil, err
	}
	src := c.b.findSoft(c.Key, gen, c.s.Now())
	if src == nil {
		return nil, errNoObject(c.Bucket, c.Key)
	}
	o := src.copy(src.name)
	if err := c.b.commit(c.s, o, c.obeyed(cond).check); err != nil {
		return nil, err
	}
	return c.document(c.resource(c.Bucket, o))
}

// copy is a new object of the same content and attributes.
func (o *object) copy(name string) *object {
	return &object{name: name, attrs: o.attrs, data: o.data, size: o.size, crc: o.crc, md5: o.md5}
}

// patch is objects.patch, and objects.update, which replaces what it does not name.
func (c *call) patch() (*fakehttp.Answer, *apiError) {
	gen, err := c.generation("generation")
	if err != nil {
		return nil, err
	}
	cond, err := conditionOf(c.Query, "if")
	if err != nil {
		return nil, err
	}
	body, err := c.readBody(maxDocument)
	if err != nil {
		return nil, err
	}
	change := func(a *attrs) *apiError { return a.merge(body) }
	if c.Op == "objects.update" {
		r, err := parseResource(body)
		if err != nil {
			return nil, err
		}
		change = func(a *attrs) (err *apiError) {
			*a, err = r.attrs(c.knobs)
			return err
		}
	}
	o, err := c.b.change(c.s, c.Key, gen, c.target(c.obeyed(cond)), change)
	if err != nil {
		return nil, err
	}
	return c.document(c.resource(c.Bucket, o))
}

// merge applies a patch: null takes a field, or a key of the metadata, away.
func (a *attrs) merge(patch []byte) *apiError {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(patch, &doc); err != nil {
		return fail(http.StatusBadRequest, "parseError", "InvalidArgument", "Parse Error: %v", err)
	}
	for name, to := range map[string]*string{
		"contentType": &a.contentType, "contentEncoding": &a.contentEncoding, "contentDisposition": &a.contentDisposition,
		"contentLanguage": &a.contentLanguage, "cacheControl": &a.cacheControl, "customTime": &a.customTime,
	} {
		if raw, ok := doc[name]; ok {
			*to = ""
			if err := json.Unmarshal(raw, to); err != nil {
				return errInvalid("Invalid value for: %s", name)
			}
		}
	}
	raw, ok := doc["metadata"]
	if !ok {
		return nil
	}
	var meta map[string]*string
	if err := json.Unmarshal(raw, &meta); err != nil {
		return errInvalid("Invalid value for: metadata")
	}
	if meta == nil || a.meta == nil {
		a.meta = map[string]string{}
	}
	for k, v := range meta {
		if v == nil {
			delete(a.meta, k)
		} else {
			a.meta[k] = *v
		}
	}
	return checkMetadata(a.meta)
}
