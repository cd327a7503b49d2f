package fakehttp

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Entry is one request in the log.
type Entry struct {
	Request
	// Time is the server's clock on arrival; Conn numbers the connection.
	Time time.Time
	Conn int
	// Status is that of the answer: 0 while it is not known, and for ever
	// when the connection was ended without one.
	Status int
	// BodyLen is the number of content bytes received, without framing.
	BodyLen int64
	// BodySHA256 is in hex, with Options.HashBodies.
	BodySHA256 string
	// Sent is the number of body bytes of the answer.
	Sent int64
	// Cut says that the connection was ended on purpose.
	Cut bool
	// Keys is the number of keys of a request that names several.
	Keys int
}

// Log is a sequence of requests in the order of arrival.
type Log []Entry

type logBook struct {
	mu struct {
		sync.Mutex
		entries []*Entry
	}
}

func (b *logBook) add(e *Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.entries = append(b.mu.entries, e)
}

// update stores the outcome of e, which readers may look at meanwhile.
func (b *logBook) update(e *Entry, outcome Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*e = outcome
}

// Log returns the requests since the start or the last ResetLog.
func (s *Server) Log() Log {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	out := make(Log, len(s.log.mu.entries))
	for i, e := range s.log.mu.entries {
		out[i] = *e
	}
	return out
}

// ResetLog forgets the requests so far.
func (s *Server) ResetLog() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.mu.entries = nil
}

// Only keeps the requests of the named operations.
func (l Log) Only(ops ...string) Log {
	return slices.DeleteFunc(slices.Clone(l), func(e Entry) bool { return !slices.Contains(ops, e.Op) })
}

// Count is the number of requests of the named operations; with no names, of
// all.
func (l Log) Count(ops ...string) int {
	if len(ops) == 0 {
		return len(l)
	}
	return len(l.Only(ops...))
}

// Sorted orders the requests by their text, for goldens of parallel work.
func (l Log) Sorted() Log {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b Entry) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// String is one line per request, each ended by a newline.
func (l Log) String() string {
	var b strings.Builder
	for _, e := range l {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// String is the request in one line, the same in every run: ids, dates, ETags
// and hosts are left out or named only.
//
//	GetObject k partNumber=1 -> 206
//	UploadPart k partNumber=2 8388608B -> 200
//	PutObject k 12B If-None-Match=* -> 412
//	ListObjectsV2 prefix=a/ token -> 200
//	GetObject k bytes=0-9 If-Match=etag -> 206 cut
//	DeleteObject k -> none
func (e Entry) String() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Key != "" {
		b.WriteString(" " + QuoteKey(e.Key))
	}
	for _, f := range e.details() {
		b.WriteString(" " + f)
	}
	switch {
	case e.Status != 0:
		fmt.Fprintf(&b, " -> %d", e.Status)
		if e.Cut {
			b.WriteString(" cut")
		}
	default:
		b.WriteString(" -> none")
	}
	return b.String()
}

// QuoteKey returns a key as the log shows it.
func QuoteKey(k string) string {
	if strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '"' }) {
		return fmt.Sprintf("%q", k)
	}
	return k
}

func (e *Entry) details() []string {
	var out []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(e.PartNumber != 0, "partNumber=%d", e.PartNumber)
	add(e.Range != "", "%s", e.Range)
	out = append(out, e.Notes...)
	add(e.Keys > 0, "%d keys", e.Keys)
	add(e.Content, "%dB", e.BodyLen)
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if v := e.Header.Get(name); v == "*" {
			out = append(out, name+"=*")
		} else {
			add(v != "", "%s=etag", name)
		}
	}
	for _, name := range []string{"If-Modified-Since", "If-Unmodified-Since"} {
		add(e.Header.Get(name) != "", "%s", name)
	}
	return out
}

// Request is what is known of a request when it arrives. It is read-only from then on. The protocol sets Op and the
// fields from Bucket on.
type Request struct {
	// Op is the name in the service's API, such as "PutObject".
	Op     string
	Method string
	// Host, RawPath and RawQuery are as they were sent.
	Host, RawPath, RawQuery string
	Query                   url.Values
	Header                  http.Header
	// Range is the Range header.
	Range string
	// ContentLength is the announced length of the body, -1 when unknown.
	ContentLength int64

	// Bucket is the bucket or container, Key the object's full name.
	Bucket, Key string
	// PartNumber is that of a part, from 1. Zero: none.
	PartNumber int
	// UploadID names an upload in parts.
	UploadID string
	// Notes are further words for the text form of the log; they must be the same in every run.
	Notes []string
	// Content is set if the body is content of an object: then the log tells its length.
	Content bool
}
