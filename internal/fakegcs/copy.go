package fakegcs

import (
	"fmt"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// rewrite is objects.rewrite, which may take several calls, and objects.copy,
// which takes one. The conditions about the destination are decided by the
// last call.
func (c *call) rewrite() (*fakehttp.Answer, *apiError) {
	src, err := c.copySource()
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
	dst := c.s.bucket(c.dst.bucket)
	if dst == nil {
		return nil, errNoBucket()
	}
	if err := checkName(c.dst.key); err != nil {
		return nil, err
	}
	o := src.copy(c.dst.key)
	if o.attrs, err = c.copiedAttrs(src, body); err != nil {
		return nil, err
	}
	written, err := c.progress(src)
	if err != nil {
		return nil, err
	}
	if written < src.size {
		return c.document(rewriteResponse{
			Kind: "storage#rewriteResponse", Written: itoa(written), Size: itoa(src.size), Token: rewriteToken(src, written),
		})
	}
	if err := dst.commit(c.s, o, c.obeyed(cond).check); err != nil {
		return nil, err
	}
	r := c.resource(c.dst.bucket, o)
	if c.Op == "objects.copy" {
		return c.document(r)
	}
	return c.document(rewriteResponse{
		Kind: "storage#rewriteResponse", Written: itoa(src.size), Size: itoa(src.size), Done: true, Resource: r,
	})
}

type rewriteResponse struct {
	Kind     string    `json:"kind"`
	Written  string    `json:"totalBytesRewritten"`
	Size     string    `json:"objectSize"`
	Done     bool      `json:"done"`
	Token    string    `json:"rewriteToken,omitempty"`
	Resource *resource `json:"resource,omitempty"`
}

func (c *call) copySource() (*object, *apiError) {
	gen, err := c.generation("sourceGeneration")
	if err != nil {
		return nil, err
	}
	cond, err := conditionOf(c.Query, "ifSource")
	if err != nil {
		return nil, err
	}
	o := c.b.find(c.Key, gen)
	return o, c.target(cond)(o)
}

// copiedAttrs are those of the source, or those of the request if it names
// any ("Objects: rewrite", request body).
func (c *call) copiedAttrs(src *object, body []byte) (attrs, *apiError) {
	r, err := parseResource(body)
	if err != nil {
		return attrs{}, err
	}
	if r.ContentType+r.ContentEncoding+r.ContentDisposition+r.ContentLanguage+r.CacheControl+r.StorageClass+r.CustomTime == "" && r.Metadata == nil {
		return src.attrs, nil
	}
	return r.attrs(c.knobs)
}

func rewriteToken(src *object, written int64) string {
	return fmt.Sprintf("rewrite-%d-%d", src.generation, written)
}

// progress is how many bytes of src are copied when this call is over.
func (c *call) progress(src *object) (int64, *apiError) {
	var gen, written int64
	if t := c.Query.Get("rewriteToken"); t != "" {
		if n, err := fmt.Sscanf(t, "rewrite-%d-%d", &gen, &written); err != nil || n != 2 || gen != src.generation {
			return 0, errInvalid("Invalid rewrite token").at("rewriteToken")
		}
	}
	if c.knobs.RewriteStep <= 0 || c.Op == "objects.copy" {
		return src.size, nil
	}
	return min(src.size, written+c.knobs.RewriteStep), nil
}
