package fakeaz_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// listing is what the checks look at of a page.
type listing struct {
	NextMarker string
	Blobs      struct {
		Entries []struct {
			XMLName xml.Name
			Name    struct {
				Encoded bool   `xml:"Encoded,attr"`
				Text    string `xml:",chardata"`
			}
			Properties struct {
				Etag          string
				ContentLength int64 `xml:"Content-Length"`
			}
		} `xml:",any"`
	}
}

// names reads a page: blobs as they are, prefixes with ">" before them, without the prefix of the check.
func (f *conf) names(r reply) (names []string, marker string, err error) {
	var l listing
	if err := all(r.is(200), xml.Unmarshal([]byte(strings.TrimPrefix(r.body, "\ufeff")), &l)); err != nil {
		return nil, "", err
	}
	for _, e := range l.Blobs.Entries {
		name := e.Name.Text
		if e.Name.Encoded {
			if name, err = url.PathUnescape(name); err != nil {
				return nil, "", err
			}
		}
		name = strings.TrimPrefix(name, f.prefix)
		if e.XMLName.Local == "BlobPrefix" {
			name = ">" + name
		}
		names = append(names, name)
	}
	return names, l.NextMarker, nil
}

// listed reads all pages.
func (f *conf) listed(query string) (out []string, pages int, err error) {
	for marker := ""; ; pages++ {
		q := query
		if marker != "" {
			q += "&marker=" + url.QueryEscape(marker)
		}
		var names []string
		if names, marker, err = f.names(f.list(strings.TrimPrefix(q, "&"))); err != nil {
			return nil, pages, err
		}
		out = append(out, names...)
		if marker == "" {
			return out, pages + 1, nil
		}
		if pages > 100 {
			return nil, pages, errors.New("the listing does not end")
		}
	}
}

func (f *conf) wantList(query string, pages int, want ...string) error {
	got, n, err := f.listed(query)
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: have %q, want %q", query, got, want)
	}
	return same("pages", n, pages)
}

func (f *conf) fill(names ...string) error {
	var errs []error
	for _, n := range names {
		errs = append(errs, f.put(n, n).is(201))
	}
	return errors.Join(errs...)
}

// kept is a check that names survive every operation.
func kept(names ...string) func(*conf) error {
	return func(f *conf) error {
		err := f.fill(names...)
		for _, n := range names {
			err = all(err, f.get(n).holds(200, n))
		}
		slices.Sort(names)
		return all(err, f.wantList("", 1, names...), f.del(names[0]).is(202), f.wantList("", 1, names[1:]...))
	}
}

var listChecks = []check{
	{"list-nothing", func(f *conf) error { return f.wantList("", 1) }},
	{"list-in-pages", func(f *conf) error {
		return all(f.fill("a", "b", "c", "d"), f.wantList("maxresults=3", 2, "a", "b", "c", "d"), f.wantList("maxresults=4", 1, "a", "b", "c", "d"))
	}},
	{"list-prefix", func(f *conf) error {
		return all(f.fill("a", "ab", "b"), f.wantList("prefix="+url.QueryEscape(f.prefix+"a"), 1, "a", "ab"))
	}},
	{"list-delimiter", func(f *conf) error {
		return all(f.fill("a", "b/c", "b/d", "b0", "c/d"), f.wantList("delimiter=%2F", 1, "a", ">b/", "b0", ">c/"))
	}},
	{"list-delimiter-in-pages", func(f *conf) error {
		return all(f.fill("a", "b/c", "b/d", "b0", "c/d"), f.wantList("delimiter=%2F&maxresults=1", 4, "a", ">b/", "b0", ">c/"))
	}},
	{"list-from", func(f *conf) error {
		from := func(n string) string { return "startFrom=" + url.QueryEscape(f.prefix+n) }
		return all(f.fill("a", "b", "c"), f.wantList(from("b"), 1, "b", "c"), f.wantList(from("aa"), 1, "b", "c"), f.wantList(from("d"), 1))
	}},
	{"list-from-zero-results", func(f *conf) error { return f.list("maxresults=0").refused(400, "OutOfRangeQueryParameterValue") }},
	{"list-more-than-5000-results", func(f *conf) error { return f.list("maxresults=6000").is(200) }},
	{"list-bad-maxresults", func(f *conf) error { return f.list("maxresults=x").refused(400, "InvalidQueryParameterValue") }},
	{"list-in-byte-order", func(f *conf) error {
		return all(f.fill("～", "😀", "z", "é"), f.wantList("", 1, "z", "é", "～", "😀"))
	}},
	{"list-says-size-and-etag", func(f *conf) error {
		p := f.put("k", "12345")
		var l listing
		err := xml.Unmarshal([]byte(strings.TrimPrefix(f.list("").body, "\ufeff")), &l)
		if err != nil || len(l.Blobs.Entries) != 1 {
			return fmt.Errorf("%d entries: %w", len(l.Blobs.Entries), err)
		}
		props := l.Blobs.Entries[0].Properties
		return all(same("size", props.ContentLength, 5), same("ETag", props.Etag, strings.Trim(p.Header.Get("ETag"), `"`)))
	}},
	{"list-metadata-on-request", func(f *conf) error {
		f.put("k", "1", "x-ms-meta-abc", "<&>")
		plain, with := f.list(""), f.list("include=metadata")
		if strings.Contains(plain.body, "&lt;&amp;") || !strings.Contains(with.body, ">&lt;&amp;") {
			return fmt.Errorf("have %s", with.body)
		}
		return nil
	}},
	{"list-of-no-container", func(f *conf) error {
		return f.do("GET", f.endpoint+"/no-such-container?restype=container&comp=list", "").refused(404, "ContainerNotFound")
	}},
	{"names-with-slashes", kept("a", "a/", "a/b", "a//b", "/lead", "//", "x/y/")},
	{"names-with-signs", kept("a b", "a+b", "a%2Fb", "a%25", "~=&<>\"'", "a?b#c", "*:;,|", "é", "e\u0301", "😀", "A", "B", "a", "Ab")},
	{"name-that-xml-cannot-hold", kept("x\uffff", "y")},
}

// deletes is the body of a batch.
func (f *conf) deletes(names ...string) (body, contentType string) {
	const boundary = "batch_0123"
	var b strings.Builder
	for i, n := range names {
		fmt.Fprintf(&b, "--%s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: %d\r\n\r\n", boundary, i)
		u, err := url.Parse(f.at(n, ""))
		if err != nil {
			panic(err)
		}
		req := signedPart(f, u)
		fmt.Fprintf(&b, "DELETE %s HTTP/1.1\r\nx-ms-date: %s\r\nAuthorization: %s\r\nContent-Length: 0\r\n\r\n",
			u.EscapedPath(), req.Header.Get("x-ms-date"), req.Header.Get("Authorization"))
	}
	b.WriteString("--" + boundary + "--\r\n")
	return b.String(), "multipart/mixed; boundary=" + boundary
}

func (f *conf) batch(query string, names ...string) reply {
	body, kind := f.deletes(names...)
	return f.do("POST", f.endpoint+query, body, "Content-Type", kind)
}

var batchChecks = []check{
	{"batch-of-the-container", func(f *conf) error {
		err := f.fill("a", "b/c d+")
		r := f.batch("/"+f.container+"?restype=container&comp=batch", "a", "none", "b/c d+")
		return all(err, r.is(202), same("deleted", strings.Count(r.body, "HTTP/1.1 202"), 2), same("missing", strings.Count(r.body, "HTTP/1.1 404"), 1),
			same("codes", strings.Count(r.body, "<Code>BlobNotFound</Code>"), 1), f.wantList("", 1))
	}},
	{"batch-of-the-account", func(f *conf) error {
		err := f.fill("a")
		r := f.batch("/?comp=batch", "a")
		return all(err, r.is(202), same("deleted", strings.Count(r.body, "HTTP/1.1 202"), 1), f.wantList("", 1))
	}},
	{"batch-of-256", func(f *conf) error {
		r := f.batch("/"+f.container+"?restype=container&comp=batch", make([]string, 256)...)
		return all(r.is(202), same("missing", strings.Count(r.body, "HTTP/1.1 404"), 256))
	}},
	{"batch-of-257", func(f *conf) error {
		err := f.fill("")
		r := f.batch("/"+f.container+"?restype=container&comp=batch", make([]string, 257)...)
		return all(err, r.is(202), same("refused", strings.Count(r.body, "HTTP/1.1 400"), 1), same("ids", strings.Count(r.body, "Content-ID"), 0), f.wantList("", 1, ""))
	}},
	{"batch-with-a-part-signed-wrongly", func(f *conf) error {
		err := f.fill("a", "b")
		g := *f
		g.key = blockID("another")
		bad, kind := g.deletes("a")
		good, _ := f.deletes("b")
		body := strings.TrimSuffix(bad, "--batch_0123--\r\n") + strings.ReplaceAll(good, "Content-ID: 0", "Content-ID: 1")
		r := f.do("POST", f.endpoint+"/"+f.container+"?restype=container&comp=batch", body, "Content-Type", kind)
		return all(err, r.is(202), same("deleted", strings.Count(r.body, "HTTP/1.1 202"), 1), same("refused", strings.Count(r.body, "HTTP/1.1 403"), 1), f.wantList("", 1, "a"))
	}},
	{"batch-that-is-none", func(f *conf) error {
		return f.do("POST", f.endpoint+"/"+f.container+"?restype=container&comp=batch", "x", "Content-Type", "text/plain").is(400)
	}},
}
