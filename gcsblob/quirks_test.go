package gcsblob_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/internal/realserver/storetable"
)

const undocumented = storetable.Undocumented

// zeroCRC is the CRC32C of nothing.
const zeroCRC = `, "crc32c": "AAAAAA=="`

// googleQuestions are those in which the servers differ, or whose answer the store relies on.
func googleQuestions() []storetable.Question[*googleServer] {
	const (
		preconditions = `"Request preconditions"`
		resumable     = `"Perform resumable uploads"`
		validation    = `"Data validation and change detection"`
		transcoding   = `"Transcoding of gzip-compressed files"`
		listing       = `"Objects: list"`
		ranges        = `"HTTP status and error codes for JSON"`
		limits        = `"Quotas & limits"`
		softDelete    = `"Use soft-deleted objects"`
		versioned     = `"Use versioned objects"`
		deleting      = `"Objects: delete"`
	)
	exists := func(p *googleProbe) *googleProbe { p.must(p.insert("k", "old", "")); return p }
	var out []storetable.Question[*googleServer]
	for _, q := range []struct {
		text, documented, source string
		ask                      func(p *googleProbe) string
	}{
		{"version", undocumented, "", func(p *googleProbe) string { return p.version }},

		{"upload, ifGenerationMatch=0, object exists", "412", preconditions, func(p *googleProbe) string { return exists(p).insert("k", "new", "&ifGenerationMatch=0").String() }},
		{"upload, ifGenerationMatch wrong", "412", preconditions, func(p *googleProbe) string { return exists(p).insert("k", "new", "&ifGenerationMatch=7").String() }},
		{"upload, ifGenerationMatch, object absent", "412", preconditions, func(p *googleProbe) string { return p.insert("k", "new", "&ifGenerationMatch=7").String() }},
		{"start of a session, ifGenerationMatch=0, object exists", undocumented, "", func(p *googleProbe) string {
			return exists(p).begin("k", "", "&ifGenerationMatch=0").String()
		}},
		{"end of a session, ifGenerationMatch=0, object made meanwhile", "412", preconditions, func(p *googleProbe) string {
			session := p.must(p.begin("k", "", "&ifGenerationMatch=0")).Header.Get("Location")
			return exists(p).chunk(session, "new", "bytes 0-2/3").String()
		}},
		{"delete, ifGenerationMatch wrong", "412", preconditions, func(p *googleProbe) string {
			return exists(p).do("DELETE", p.at("k", "?ifGenerationMatch=7"), "").String()
		}},
		{"delete", "204", deleting, func(p *googleProbe) string { return exists(p).do("DELETE", p.at("k", ""), "").String() }},
		{"delete, object absent", "404", deleting, func(p *googleProbe) string { return p.do("DELETE", p.at("k", ""), "").String() }},
		{"read, ifGenerationMatch wrong", "412", preconditions, func(p *googleProbe) string {
			return exists(p).do("GET", p.at("k", "?alt=media&ifGenerationMatch=7"), "").String()
		}},
		{"metadata, ifGenerationNotMatch right", "304", preconditions, func(p *googleProbe) string {
			return p.do("GET", p.at("k", "?ifGenerationNotMatch="+p.must(p.insert("k", "old", "")).generation()), "").String()
		}},
		{"read of a generation that is gone", "404", versioned, func(p *googleProbe) string {
			gone := p.must(p.insert("k", "old", "")).generation()
			return exists(p).do("GET", p.at("k", "?alt=media&generation="+gone), "").String()
		}},
		{"copy, ifGenerationMatch=0, object exists", "412", preconditions, func(p *googleProbe) string {
			p.must(exists(p).insert("l", "source", ""))
			return p.do("POST", p.at("l", "/copyTo/b/"+p.bucket+"/o/"+p.key+"k?ifGenerationMatch=0"), "").String()
		}},

		{"read of a range past the end", "416", ranges, func(p *googleProbe) string {
			return exists(p).do("GET", p.at("k", "?alt=media"), "", "Range", "bytes=3-9").String()
		}},
		{"read of a range of an empty object", "416", ranges, func(p *googleProbe) string {
			p.must(p.insert("k", "", ""))
			return p.do("GET", p.at("k", "?alt=media"), "", "Range", "bytes=0-9").String()
		}},
		{"packed object, gzip not accepted", "unpacked", transcoding, func(p *googleProbe) string { return p.packed("") }},
		{"packed object, gzip not accepted, no-transform", "as it is stored", transcoding, func(p *googleProbe) string { return p.packed(`, "cacheControl": "no-transform"`) }},

		{"upload, wrong CRC32C", "400", validation, func(p *googleProbe) string { return p.related("k", zeroCRC, "new").String() }},
		{"session, wrong CRC32C", "400", validation, func(p *googleProbe) string {
			return p.chunk(p.session("k", zeroCRC[2:]), "new", "bytes 0-2/3").String()
		}},
		{"session, status after the first chunk", "308, bytes=0-262143", resumable, func(p *googleProbe) string {
			session := p.firstChunk()
			r := p.chunk(session, "", "bytes */*")
			return strings.TrimSuffix(r.String()+", "+r.Header.Get("Range"), ", ")
		}},
		{"session, a chunk behind a gap", "stores nothing", resumable, func(p *googleProbe) string {
			session := p.firstChunk()
			if r := p.chunk(session, "xyz", fmt.Sprintf("bytes %d-%d/%d", 2*chunk, 2*chunk+2, 2*chunk+3)); r.StatusCode/100 == 2 {
				return "makes an object"
			}
			return "stores nothing"
		}},
		{"session, canceled", "499", resumable, func(p *googleProbe) string { return p.do("DELETE", p.firstChunk(), "").String() }},
		{"session, canceled, goes on", "stores nothing", resumable, func(p *googleProbe) string {
			session := p.firstChunk()
			p.do("DELETE", session, "")
			if r := p.chunk(session, "xyz", fmt.Sprintf("bytes %d-%d/%d", chunk, chunk+2, chunk+3)); r.StatusCode/100 == 2 {
				return "makes an object"
			}
			return "stores nothing"
		}},
		{"session, status after its end", "200", resumable, func(p *googleProbe) string {
			session := p.session("k", "")
			p.must(p.chunk(session, "new", "bytes 0-2/3"))
			return p.chunk(session, "", "bytes */3").String()
		}},

		{"list, a delimiter of two characters", undocumented, "", func(p *googleProbe) string {
			p.must(p.insert("a--b", "", ""))
			p.must(p.insert("a-c", "", ""))
			got, _ := p.names("&delimiter=--")
			return "`" + strings.Join(got, " ") + "`"
		}},
		{"list, a prefix on two pages", "once", listing, func(p *googleProbe) string { return p.pagedPrefix() }},
		{"list, startOffset", "inclusive", listing, func(p *googleProbe) string {
			p.must(p.insert("a", "", ""))
			p.must(p.insert("b", "", ""))
			got, _ := p.names("&startOffset=" + p.key + "b")
			if slices.Equal(got, []string{"b"}) {
				return "inclusive"
			}
			return fmt.Sprintf("%q", got)
		}},
		{"list, order of U+FF5E and U+1F600", "that of UTF-8", listing, func(p *googleProbe) string {
			p.must(p.insert("\uff5e", "", ""))
			p.must(p.insert("\U0001f600", "", ""))
			if got, _ := p.names(""); slices.Equal(got, []string{"\uff5e", "\U0001f600"}) {
				return "that of UTF-8"
			}
			return "another"
		}},

		{"name of 1025 bytes", "400", limits, func(p *googleProbe) string { return p.insert(strings.Repeat("n", 1025-len(p.key)), "", "").String() }},
		{"metadata of more than 8 KiB", "400", limits, func(p *googleProbe) string {
			return p.related("k", `, "metadata": {"m": "`+strings.Repeat("v", 8193)+`"}`, "").String()
		}},
		{"list of what is soft-deleted", "lists it", softDelete, func(p *googleProbe) string {
			p.must(exists(p).do("DELETE", p.at("k", ""), ""))
			r := p.do("GET", p.root+"/storage/v1/b/"+p.bucket+"/o?softDeleted=true&prefix="+p.key, "")
			switch {
			case r.StatusCode != http.StatusOK:
				return r.String()
			case strings.Contains(r.body, "softDeleteTime"):
				return "lists it"
			}
			return "lists nothing"
		}},
		{"old generations of a deleted object, with versioning", "listed, with timeDeleted", versioned, func(p *googleProbe) string {
			q := *p.googleServer
			q.root, q.bucket = q.versionedRoot, q.versioned
			v := &googleProbe{p.T, &q, p.key}
			v.must(exists(v).do("DELETE", v.at("k", ""), ""))
			if r := v.do("GET", v.root+"/storage/v1/b/"+v.bucket+"/o?versions=true&prefix="+v.key, ""); strings.Contains(r.body, "timeDeleted") {
				return "listed, with timeDeleted"
			}
			return "not listed"
		}},
	} {
		out = append(out, storetable.Question[*googleServer]{Text: q.text, Documented: q.documented, Source: q.source, Ask: func(t *testing.T, server *googleServer, key string) string {
			return q.ask(&googleProbe{t, server, key})
		}})
	}
	return out
}

// firstChunk begins a session for the object "k" and sends its first chunk.
func (p *googleProbe) firstChunk() (session string) {
	p.Helper()
	session = p.session("k", "")
	if r := p.chunk(session, string(content(chunk)), fmt.Sprintf("bytes 0-%d/*", chunk-1)); r.StatusCode != http.StatusPermanentRedirect {
		p.Fatalf("first chunk: %s: %s", r, r.body)
	}
	return session
}

// packed stores an object in gzip and says what comes back to a client that does not accept it.
func (p *googleProbe) packed(metadata string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte("content"))
	if err := w.Close(); err != nil {
		p.Fatal(err)
	}
	if err != nil {
		p.Fatal(err)
	}
	p.must(p.related("k", `, "contentEncoding": "gzip"`+metadata, b.String()))
	switch r := p.do("GET", p.at("k", "?alt=media"), ""); r.body {
	case "content":
		return "unpacked"
	case b.String():
		return "as it is stored"
	default:
		return r.String() + ", something else"
	}
}

// pagedPrefix lists two prefixes on pages of one.
func (p *googleProbe) pagedPrefix() string {
	for _, name := range []string{"a/1", "b/1", "c", "d"} {
		p.must(p.insert(name, "", ""))
	}
	var all []string
	token := ""
	for range 6 {
		page, next := p.names("&delimiter=/&maxResults=1&pageToken=" + token)
		all = append(all, page...)
		if token = next; next == "" {
			slices.Sort(all)
			if slices.Equal(all, []string{"a/", "b/", "c", "d"}) {
				return "once"
			}
			return "`" + strings.Join(all, " ") + "`"
		}
	}
	return "does not end"
}
