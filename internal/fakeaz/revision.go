package fakeaz

import (
	"fmt"
	"net/http"
	"time"
)

// block is one block, committed or not. Immutable; the id is as it was sent, in base64.
type block struct {
	id    string
	data  []byte
	added time.Time
}

// revision is a blob as one write left it. Immutable once it is in the container.
type revision struct {
	name     string
	version  string // x-ms-version-id; empty without versioning
	snapshot string // the id, when this is a snapshot
	etag     string // quoted
	data     rope
	size     int64
	blocks   []*block // nil for a blob of one Put Blob
	header   http.Header
	meta     map[string]string // names as they were given
	md5      []byte            // nil when nobody has told or computed it
	tier     string
	created  time.Time
	modTime  time.Time
	copyID   string
}

// past is a revision that is no longer (or never was) the blob itself: a previous version, a snapshot, or a soft-deleted
// one of either.
type past struct {
	*revision
	deleted time.Time // zero: not deleted
}

// stampFormat is that of version and snapshot ids: seven digits, so they sort as text.
const stampFormat = "2006-01-02T15:04:05.0000000Z"

// stamp makes a time that no other call has made, in ticks of 100 ns. Version and snapshot ids are such times.
func (s *Server) stamp() string {
	now := s.now().UnixNano() / 100
	for {
		last := s.ticks.Load()
		next := max(now, last+1)
		if s.ticks.CompareAndSwap(last, next) {
			return time.Unix(0, next*100).UTC().Format(stampFormat)
		}
	}
}

// newETag makes an ETag that no other write has: on Azure it changes with every write, equal bytes or not.
func (s *Server) newETag() string { return fmt.Sprintf(`"0x8D%013X"`, s.writes.Add(1)) }

// second is a time as the headers tell it.
func second(t time.Time) time.Time { return t.Truncate(time.Second) }

func httpDate(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
