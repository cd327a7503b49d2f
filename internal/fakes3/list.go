package fakes3

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// listQuery is what the listings have in common.
type listQuery struct {
	prefix, delimiter string
	encoding          string // "" or "url"
	limit             int    // entries of a page
	asked             int    // as echoed
}

func (c *call) listQuery(maxName string) (*listQuery, *apiError) {
	q := &listQuery{prefix: c.Query.Get("prefix"), delimiter: c.Query.Get("delimiter"), limit: 1000}
	if v := c.Query.Get(maxName); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return nil, errArgument("Argument %s must be an integer between 0 and 2147483647", maxName)
		}
		q.limit = min(n, 1000)
	}
	switch q.encoding = c.Query.Get("encoding-type"); q.encoding {
	case "", "url":
	default:
		return nil, errArgument("Invalid Encoding Method specified in Request")
	}
	q.asked = q.limit
	if k := c.knobs.PageSize; k > 0 {
		q.limit = min(q.limit, k)
	}
	return q, nil
}

func (q *listQuery) enc(s string) string {
	if q.encoding == "url" {
		return listEncode(s)
	}
	return s
}

// group returns the common prefix that key is rolled up into.
func (q *listQuery) group(key string) (string, bool) {
	if q.delimiter == "" {
		return "", false
	}
	if i := strings.Index(key[len(q.prefix):], q.delimiter); i >= 0 {
		return key[:len(q.prefix)+i+len(q.delimiter)], true
	}
	return "", false
}

func (q *listQuery) prefixes(d *xmlDoc, ps []string) {
	for _, p := range ps {
		d.begin("CommonPrefixes")
		d.text("Prefix", q.enc(p))
		d.end()
	}
}

// order compares two keys as this server lists them.
func (c *call) order(a, b string) int {
	if b == "" {
		return 1 // everything comes after the start
	}
	if c.knobs.Order != nil {
		return c.knobs.Order(a, b)
	}
	return strings.Compare(a, b)
}

// names are the keys of the bucket in this server's order.
func (c *call) names() []string {
	names := c.b.names()
	if c.knobs.Order != nil {
		names = slices.Clone(names)
		slices.SortStableFunc(names, c.knobs.Order)
	}
	return names
}

// A continuation token is opaque to clients: a letter (k: after this key,
// p: after this common prefix) and the name, in base64.
func token(kind, name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + name))
}

func (c *call) startAfter() (after, prefix string, _ *apiError) {
	t := c.Query.Get("continuation-token")
	if !c.Query.Has("continuation-token") {
		return c.Query.Get("start-after"), "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(t)
	if err != nil || len(raw) == 0 || raw[0] != 'k' && raw[0] != 'p' {
		return "", "", errArgument("The continuation token provided is incorrect")
	}
	if raw[0] == 'p' {
		return string(raw[1:]), string(raw[1:]), nil
	}
	return string(raw[1:]), "", nil
}

func (c *call) listObjects() (*response, *apiError) {
	q, err := c.listQuery("max-keys")
	if err != nil {
		return nil, err
	}
	after, skip, err := c.startAfter()
	if err != nil {
		return nil, err
	}
	found := map[string]*version{}
	page := c.page(q, after, skip, found)
	page.Asked = c.Query.Get("continuation-token")
	if page.Here = page.Asked; page.Here == "" {
		page.Here = token("k", after)
	}
	c.EditPage(page)
	return docResponse(c.listDocument(q, page, found)), nil
}

// page collects the entries after a key, without those under a common prefix
// that an earlier page has named.
func (c *call) page(q *listQuery, after, skip string, found map[string]*version) *Page {
	page := &Page{}
	if q.limit == 0 {
		return page
	}
	names := c.names()
	from := 0
	if c.knobs.Order == nil {
		from, _ = slices.BinarySearch(names, max(after, q.prefix))
	}
	var group, last string
	for _, key := range names[from:] {
		if !strings.HasPrefix(key, q.prefix) {
			if c.knobs.Order == nil && key > q.prefix {
				break
			}
			continue
		}
		if c.order(key, after) <= 0 || skip != "" && strings.HasPrefix(key, skip) {
			continue
		}
		v := c.b.find(key, "")
		if v == nil || v.marker {
			continue
		}
		p, grouped := q.group(key)
		if grouped && p == group {
			continue
		}
		if len(page.Keys)+len(page.Prefixes) == q.limit {
			page.Truncated, page.Token = true, last
			return page
		}
		if grouped {
			group, last = p, token("p", p)
			page.Prefixes = append(page.Prefixes, p)
			continue
		}
		last = token("k", key)
		found[key] = v
		page.Keys = append(page.Keys, key)
	}
	return page
}

func (c *call) listDocument(q *listQuery, page *Page, found map[string]*version) *xmlDoc {
	d := newDoc("ListBucketResult")
	d.text("Name", c.Bucket)
	d.text("Prefix", q.enc(q.prefix))
	d.some("Delimiter", q.enc(q.delimiter))
	d.some("StartAfter", q.enc(c.Query.Get("start-after")))
	d.number("MaxKeys", int64(q.asked))
	d.some("EncodingType", q.encoding)
	d.number("KeyCount", int64(len(page.Keys)+len(page.Prefixes)))
	d.flag("IsTruncated", page.Truncated)
	d.some("ContinuationToken", page.Asked)
	d.some("NextContinuationToken", page.Token)
	for _, key := range page.Keys {
		v := found[key]
		if v == nil {
			continue
		}
		d.begin("Contents")
		d.text("Key", q.enc(key))
		d.time("LastModified", v.modTime)
		d.text("ETag", v.etag)
		d.number("Size", v.size)
		d.text("StorageClass", "STANDARD")
		d.end()
	}
	q.prefixes(d, page.Prefixes)
	return d
}
