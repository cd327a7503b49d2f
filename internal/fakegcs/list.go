package fakegcs

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// listing is a page of objects.list that is being filled.
type listing struct {
	prefix, delimiter, from, before string
	trailing                        bool // includeTrailingDelimiter
	which                           which
	limit                           int
	after                           position

	items    []*object
	prefixes []string
	last     position
	more     bool
}

// position is a place in the order of a listing: behind a generation of a
// name, or behind all names that begin with a prefix.
type position struct {
	name   string
	gen    int64
	prefix bool
}

// token is opaque to clients.
func (p position) token() string {
	kind := "o"
	if p.prefix {
		kind = "p"
	}
	return base64.URLEncoding.EncodeToString([]byte(kind + itoa(p.gen) + ":" + p.name))
}

func parseToken(t string) (p position, ok bool) {
	if t == "" {
		return p, true
	}
	b, err := base64.URLEncoding.DecodeString(t)
	if err != nil || len(b) < 2 {
		return p, false
	}
	gen, name, colon := strings.Cut(string(b[1:]), ":")
	if p.gen, err = strconv.ParseInt(gen, 10, 64); err != nil || !colon {
		return p, false
	}
	p.name, p.prefix = name, b[0] == 'p'
	return p, true
}

// list is objects.list: names in the byte order of UTF-8, generations of one
// name in ascending order, each prefix once over all pages.
func (c *call) list() (*fakehttp.Answer, *apiError) {
	l, err := c.newListing()
	if err != nil {
		return nil, err
	}
	c.fill(l)
	page := fakehttp.Page{Prefixes: l.prefixes, Truncated: l.more, Asked: c.Query.Get("pageToken"), Here: l.after.token()}
	if l.more {
		page.Token = l.last.token()
	}
	byKey := map[string]*object{}
	for _, o := range l.items {
		id := o.name
		if l.which != liveOnes {
			id += "#" + itoa(o.generation) // names repeat there
		}
		page.Keys = append(page.Keys, id)
		byKey[id] = o
	}
	c.EditPage(&page)
	if _, ok := parseToken(page.Token); !ok {
		page.Token = l.last.token() // one that the script made up leads behind this page
	}
	doc := struct {
		Kind     string      `json:"kind"`
		Next     string      `json:"nextPageToken,omitempty"`
		Prefixes []string    `json:"prefixes,omitempty"`
		Items    []*resource `json:"items,omitempty"`
	}{Kind: "storage#objects", Prefixes: page.Prefixes, Next: page.Token}
	for _, id := range page.Keys {
		if o := byKey[id]; o != nil {
			doc.Items = append(doc.Items, c.resource(c.Bucket, o))
		}
	}
	return c.document(doc)
}

func (c *call) newListing() (*listing, *apiError) {
	q := c.Query
	l := &listing{
		prefix: q.Get("prefix"), delimiter: q.Get("delimiter"), from: q.Get("startOffset"), before: q.Get("endOffset"),
		trailing: q.Get("includeTrailingDelimiter") == "true", limit: 1000,
	}
	if q.Has("maxResults") {
		n, err := strconv.Atoi(q.Get("maxResults"))
		if err != nil || n < 0 {
			return nil, errInvalid("Invalid value for: %s is not a valid value", q.Get("maxResults")).at("maxResults")
		}
		if n > 0 {
			l.limit = min(l.limit, n)
		}
	}
	if c.knobs.PageSize > 0 {
		l.limit = min(l.limit, c.knobs.PageSize)
	}
	versions, soft := q.Get("versions") == "true", q.Get("softDeleted") == "true"
	switch {
	case versions && soft, soft && c.knobs.NoSoftDelete:
		return nil, errInvalid("softDeleted cannot be used here").at("softDeleted")
	case versions:
		l.which = liveAndOld
	case soft:
		l.which = softOnes
	}
	if q.Get("matchGlob") != "" {
		return nil, fail(http.StatusNotImplemented, "notImplemented", "NotImplemented", "matchGlob is not implemented")
	}
	var ok bool
	if l.after, ok = parseToken(q.Get("pageToken")); !ok {
		return nil, errInvalid("Invalid page token: %q", q.Get("pageToken")).at("pageToken")
	}
	l.last = l.after
	return l, nil
}

// fill takes what comes next of the bucket into the page.
func (c *call) fill(l *listing) {
	for _, name := range c.b.names() {
		if !strings.HasPrefix(name, l.prefix) || name < l.from || l.before != "" && name >= l.before || l.passed(name) {
			continue
		}
		gens := c.b.generations(name, l.which, c.s.Now())
		if len(gens) == 0 {
			continue
		}
		if group, also := l.group(name); group != "" {
			if !l.addPrefix(group) {
				return
			}
			if !also {
				continue
			}
		}
		for _, o := range gens {
			if !l.add(o) {
				return
			}
		}
	}
}

// passed says that earlier pages had the whole of a name.
func (l *listing) passed(name string) bool {
	if l.after.prefix {
		own := l.trailing && name == l.after.name // the item of that name comes behind the prefix
		return !own && (name <= l.after.name || strings.HasPrefix(name, l.after.name))
	}
	return name < l.after.name || name == l.after.name && l.which == liveOnes && l.after.gen != 0
}

// group is the prefix that a name is rolled up in, "" for none; also says that
// it is listed as an item too.
func (l *listing) group(name string) (group string, also bool) {
	if l.delimiter == "" {
		return "", false
	}
	i := strings.Index(name[len(l.prefix):], l.delimiter)
	if i < 0 {
		return "", false
	}
	group = name[:len(l.prefix)+i+len(l.delimiter)]
	return group, l.trailing && group == name
}

func (l *listing) addPrefix(group string) bool {
	if n := len(l.prefixes); n > 0 && l.prefixes[n-1] == group || group == l.after.name {
		return true // on this page, or on the one before
	}
	if !l.room() {
		return false
	}
	l.prefixes = append(l.prefixes, group)
	l.last = position{name: group, prefix: true}
	return true
}

func (l *listing) add(o *object) bool {
	if o.name == l.after.name && !l.after.prefix && o.generation <= l.after.gen {
		return true
	}
	if !l.room() {
		return false
	}
	l.items = append(l.items, o)
	l.last = position{name: o.name, gen: o.generation}
	return true
}

func (l *listing) room() bool {
	if len(l.items)+len(l.prefixes) >= l.limit {
		l.more = true
		return false
	}
	return true
}
