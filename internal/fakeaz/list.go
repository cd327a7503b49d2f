package fakeaz

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxPage is the most entries of a page ("List Blobs").
const maxPage = 5000

// listQuery is what List Blobs is asked for.
type listQuery struct {
	prefix, delimiter, from string
	include                 map[string]bool
	limit                   int
	asked                   string // maxresults as it was sent
	marker                  marker
}

// marker is where a page begins. Clients must take it as it is: a kind (k: with an entry; p: the page itself, where
// Knobs.EmptyPages has an empty one before it), a name, and the place among the entries of that name.
type marker struct {
	kind  string
	name  string
	index int
}

func (m marker) String() string {
	text := fmt.Sprintf("%s %d %s", m.kind, m.index, m.name)
	return "2!" + strconv.Itoa(len(text)) + "!" + base64.RawURLEncoding.EncodeToString([]byte(text))
}

func parseMarker(v string) (m marker, _ *apiError) {
	if v == "" {
		return marker{kind: "k"}, nil
	}
	parts := strings.Split(v, "!")
	raw, err := base64.RawURLEncoding.DecodeString(parts[len(parts)-1])
	fields := strings.SplitN(string(raw), " ", 3)
	if err != nil || len(parts) != 3 || len(fields) != 3 {
		return m, errQuery("marker", v, "Invalid Marker.")
	}
	m.kind, m.name = fields[0], fields[2]
	if m.index, err = strconv.Atoi(fields[1]); err != nil {
		return m, errQuery("marker", v, "Invalid Marker.")
	}
	return m, nil
}

func (c *call) listQuery() (*listQuery, *apiError) {
	q := &listQuery{
		prefix: c.query.Get("prefix"), delimiter: c.query.Get("delimiter"), from: c.query.Get("startFrom"),
		include: map[string]bool{}, limit: maxPage, asked: c.query.Get("maxresults"),
	}
	if q.asked != "" {
		n, err := strconv.Atoi(q.asked)
		if err != nil {
			return nil, errQuery("maxresults", q.asked, "Not an integer.")
		}
		if n <= 0 {
			return nil, errQueryRange("maxresults", q.asked)
		}
		q.limit = min(n, maxPage)
	}
	if k := c.s.Knobs().PageSize; k > 0 {
		q.limit = min(q.limit, k)
	}
	for what := range strings.SplitSeq(c.query.Get("include"), ",") {
		switch what {
		case "", "snapshots", "metadata", "uncommittedblobs", "copy", "deleted", "tags", "versions", "deletedwithversions", "immutabilitypolicy", "legalhold", "permissions":
			q.include[what] = true
		default:
			return nil, errQuery("include", what, "Invalid query parameter value.")
		}
	}
	if q.delimiter != "" && q.include["snapshots"] {
		return nil, errQuery("include", "snapshots", "Snapshots cannot be listed with a delimiter.")
	}
	// "For non-recursive list, only one entity level is supported": a deeper name is refused rather than guessed at.
	if rest, ok := strings.CutPrefix(q.from, q.prefix); q.delimiter != "" && ok && strings.Contains(strings.TrimSuffix(rest, q.delimiter), q.delimiter) {
		return nil, errQuery("startFrom", q.from, "More than one level with a delimiter.")
	}
	var err *apiError
	q.marker, err = parseMarker(c.query.Get("marker"))
	return q, err
}

// group returns the prefix that a name is rolled up into.
func (q *listQuery) group(name string) (string, bool) {
	if q.delimiter == "" {
		return "", false
	}
	if i := strings.Index(name[len(q.prefix):], q.delimiter); i >= 0 {
		return name[:len(q.prefix)+i+len(q.delimiter)], true
	}
	return "", false
}

// item is one entry of a page: a prefix, or a blob in one of its states.
type item struct {
	prefix       string
	rev          *revision // nil for a prefix
	current      bool      // the blob itself, where there are versions
	deleted      *past     // nil: not deleted
	uncommitted  bool
	versionsOnly bool
}

func (it item) name() string {
	if it.rev != nil {
		return it.rev.name
	}
	return it.prefix
}

// items are the entries of one name: its snapshots and versions, oldest first, then the blob itself.
func (q *listQuery) items(name string, e *entry) []item {
	var out []item
	with := func(p *past) item {
		it := item{rev: p.revision}
		if !p.deleted.IsZero() {
			it.deleted = p
		}
		return it
	}
	for _, p := range e.past {
		wanted := q.include["versions"]
		if p.snapshot != "" {
			wanted = q.include["snapshots"]
		}
		if wanted && (p.deleted.IsZero() || q.include["deleted"]) {
			out = append(out, with(p))
		}
	}
	switch {
	case e.current != nil:
		out = append(out, item{rev: e.current, current: e.current.version != ""})
	case e.gone != nil && q.include["deleted"]:
		out = append(out, with(e.gone))
	case len(e.blocks) > 0 && q.include["uncommittedblobs"]:
		out = append(out, item{rev: &revision{name: name}, uncommitted: true})
	case len(e.past) > 0 && len(out) == 0 && q.include["deletedwithversions"]:
		last := e.past[len(e.past)-1]
		out = append(out, item{rev: &revision{name: name, etag: last.etag, modTime: last.modTime}, versionsOnly: true})
	}
	return out
}

// collect finds the entries of a page and where the next one begins. A name or a prefix that sorts before startFrom is
// left out (it is inclusive).
func (c *call) collect(q *listQuery) (page []item, next marker) {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	names := c.c.names()
	order := c.s.Knobs().Order
	var from int
	if order == nil {
		from, _ = slices.BinarySearch(names, max(q.marker.name, q.prefix))
	} else {
		names = slices.Clone(names)
		slices.SortStableFunc(names, order)
		from = max(0, slices.Index(names, q.marker.name))
	}
	group := ""
	for _, name := range names[from:] {
		if !strings.HasPrefix(name, q.prefix) {
			continue
		}
		e := c.c.entry(c.s, name)
		if e == nil {
			continue
		}
		items := q.items(name, e)
		if p, grouped := q.group(name); grouped && len(items) > 0 {
			if p == group {
				continue
			}
			group = p
			items = []item{{prefix: p}}
		}
		for i, it := range items {
			if it.name() < q.from || name == q.marker.name && i < q.marker.index {
				continue
			}
			if len(page) == q.limit {
				return page, marker{kind: "k", name: name, index: i}
			}
			page = append(page, it)
		}
	}
	return page, marker{}
}

func (c *call) listBlobs() (*response, *apiError) {
	q, err := c.listQuery()
	if err != nil {
		return nil, err
	}
	var items []item
	var next marker
	if c.s.Knobs().EmptyPages && q.marker.kind == "k" {
		next = q.marker
		next.kind = "p"
	} else {
		items, next = c.collect(q)
	}
	token := ""
	if next.kind != "" {
		token = next.String()
	}
	here := q.marker
	items, token = c.script(items, token, here.String())
	return docResponse(c.listDocument(q, items, token)), nil
}

// script lets a fault change the page.
func (c *call) script(items []item, token, here string) ([]item, string) {
	if c.shape.List == nil {
		return items, token
	}
	p := &page{Truncated: token != "", Token: token, Asked: c.query.Get("marker"), Here: here}
	found := map[string][]item{}
	for _, it := range items {
		switch {
		case it.rev == nil:
			p.Prefixes = append(p.Prefixes, it.prefix)
		case found[it.rev.name] == nil:
			p.Keys = append(p.Keys, it.rev.name)
			fallthrough
		default:
			found[it.rev.name] = append(found[it.rev.name], it)
		}
	}
	c.shape.EditPage(p)
	var out []item
	for _, k := range p.Keys {
		out = append(out, found[k]...)
	}
	for _, pre := range p.Prefixes {
		out = append(out, item{prefix: pre})
	}
	if !p.Truncated {
		p.Token = ""
	}
	return out, p.Token
}
