package transfer

import (
	"context"
	"io"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// Requests is what a cloud store implements: each method is one attempt of one billed
// request. It does not loop, retry, start goroutines, or call SDK helpers that do.
//
// Keys are full keys, with the store's prefix. Methods are safe for concurrent use, end soon after their ctx
// does, and have let go of a request body when they return.
//
// A failure is a *blob.Error with Kind, Outcome, Status, Code, RequestID, RetryAfter and Err as
// far as they are known; Op, Store and Key are filled in by the engine. An Outcome of NotApplied is a claim: a
// refusal by the service, no connection, or fewer body bytes handed over than announced.
type Requests interface {
	// Read begins to read an object. The body must be closed.
	Read(ctx context.Context, r ReadRequest) (*ReadReply, error)
	// Head returns the object's Info with all stored metadata.
	Head(ctx context.Context, key string) (Head, error)
	// Put stores a whole object in one request.
	Put(ctx context.Context, r PutRequest) (Written, error)

	// Begin starts an upload in parts. A service without such a request makes up an id.
	Begin(ctx context.Context, r BeginRequest) (Upload, error)
	// Part sends one part. Of a serial upload it is never the last one.
	Part(ctx context.Context, up Upload, p PartRequest) (Part, error)
	// Commit makes the object of the parts visible. Of a serial upload it sends the last one; if the service keeps only some of it, the
	// error is ErrUnavailable and NotApplied, and the engine asks for the Progress.
	Commit(ctx context.Context, up Upload, r CommitRequest) (Written, error)
	// Progress asks what a serial upload of total bytes has received; for Traits.SerialParts. ErrNotFound: there is no such upload
	// any more. It may commit an upload that has received all bytes, and ErrPrecondition then says that the condition is not met.
	Progress(ctx context.Context, up Upload, total int64) (Progress, error)
	// Abort discards an upload; for Traits.Abort. An upload that is not there is no error.
	Abort(ctx context.Context, up Upload) error
	// Uploads lists one page of open uploads; for Traits.Uploads.
	Uploads(ctx context.Context, prefix, token string) (UploadPage, error)

	// List returns one page of a listing.
	List(ctx context.Context, r ListRequest) (ListPage, error)
	// Delete removes a key. ErrNotFound or nil if it is not there, as the service has it.
	Delete(ctx context.Context, key string, cond blob.Condition) error
	// DeleteBatch removes up to Traits.BatchDelete keys. errs has one entry per key, nil for deleted; if err is
	// not nil nothing is known of the keys but its Outcome.
	DeleteBatch(ctx context.Context, keys []string) (errs []error, err error)
	// DeletedVersions lists one page of what is kept of key, newest first; for Traits.Restore. Pages with markers are newest first too;
	// others may come in any order, and of two versions with one ModTime that of the later page is the newer.
	DeletedVersions(ctx context.Context, key, token string) (VersionPage, error)
	// Undelete makes a kept version the current one again, or removes a marker. ErrExists and ErrPrecondition: the key exists, as somebody
	// has restored or written it meanwhile.
	Undelete(ctx context.Context, v KeptVersion) error
}

// ReadRequest says what to read. Exactly one of Part, Suffix and the range Off, N counts, in this order; all
// zero with N < 0 is the whole object without a range.
type ReadRequest struct {
	Key     string
	Version string // read this version or fail with ErrPrecondition; "": whatever is there
	Part    int    // > 0: this part of a multipart object, for Traits.PartReads
	Suffix  int64  // > 0: the last bytes, for Traits.SuffixReads
	Off     int64
	N       int64 // > 0: bytes from Off; < 0: no range at all
}

// ReadReply is what the service said before the body. -1 and zero values mean that it
// did not say.
type ReadReply struct {
	Body io.ReadCloser

	// Partial is set for an answer that says it is a part of the object (206).
	Partial bool
	// Length is the announced length of the body, or -1.
	Length int64
	// HasRange is set if the reply states where its bytes lie: [Off, End) of Total, -1 if it
	// hides the total.
	HasRange        bool
	Off, End, Total int64
	// Checked is set if the body verifies a checksum of itself, and fails in place of its end.
	Checked bool
	// Parts is the number of parts of the object, or 0.
	Parts int

	Head
}

// close lets go of the connection. What the body has not delivered by now is no longer of interest, nor is its error.
func (r *ReadReply) close() { _ = r.Body.Close() }

// Head is what the service says about an object beside its bytes. Size may be -1.
type Head struct {
	Size        int64
	Version     string
	ModTime     time.Time
	ContentType string
	Metadata    map[string]string // as stored, ours among them
	CRC32C      uint32            // Castagnoli of the whole stored object, as the service states it, if HasCRC32C
	HasCRC32C   bool
}

// Meta is what is stored beside the bytes.
type Meta struct {
	ContentType string
	Metadata    map[string]string // with ours among them
}

// Body makes readers of the bytes of one request. Each attempt opens it anew; a reader is used by one
// attempt, which may rewind it.
type Body func() io.ReadSeeker

// PutRequest is a whole object.
type PutRequest struct {
	Key  string
	Body Body
	Size int64
	Cond blob.Condition
	Sum  Sum
	Meta
}

// Sum is the CRC-32C (Castagnoli) of the whole object, for a service that compares it with what it received; for Traits.Sums.
type Sum struct {
	CRC32C uint32
	Has    bool
}

// BeginRequest starts an upload.
type BeginRequest struct {
	Key  string
	Size int64          // of the whole object
	Cond blob.Condition // for a service that takes conditions here
	Meta                // for a service that takes metadata here
}

// Upload names an upload in progress.
type Upload struct {
	Key, ID string
	Started time.Time // as the service lists it; zero from Begin
}

// PartRequest is one part: Size bytes at offset Off of an object of Total. Parts of a serial upload are numbered too, but
// a service goes by Off.
type PartRequest struct {
	Number    int // from 1
	Off, Size int64
	Total     int64
	Body      Body
}

// Part is a part the service has accepted.
type Part struct {
	Number int
	Size   int64
	Tag    string // what Commit must show for it
	Sum    string // a checksum of it that Commit must show too, or ""

	// Received is how many bytes from the start of the object a serial upload holds after this part: the service may keep
	// less of a part than it was sent. For Traits.SerialParts, which has no use for Tag and Sum.
	Received int64
}

// Progress is how far a serial upload has come. Done is set if it has been committed, by this request's answer or long before.
type Progress struct {
	Received int64
	Done     bool
	Written  Written
}

// CommitRequest makes an object of parts, in order.
type CommitRequest struct {
	Parts []Part
	Last  PartRequest // the last part of a serial upload: sending it is the commit
	Size  int64
	Cond  blob.Condition
	Sum   Sum
	Meta  // for a service that takes metadata here
}

// Written is a successful write. Version is "" if the reply did not say.
type Written struct{ Version string }

// ListRequest asks for one page.
type ListRequest struct {
	Prefix, Delimiter string
	StartAfter        string // with the first page; for Traits.StartAfter
	Token             string // of the page before; "" for the first
}

// ListPage is one page of a listing, in the service's order.
type ListPage struct {
	Infos []blob.Info // keys and, with IsPrefix, common prefixes; Key is the full key
	More  bool        // the service said that the listing goes on
	Token string      // where it goes on
}

// UploadPage is one page of open uploads; Token is "" on the last.
type UploadPage struct {
	Uploads []Upload
	Token   string
}

// KeptVersion is an object version, or the mark of a delete, that the service keeps.
type KeptVersion struct {
	Key, ID string
	Marker  bool // stands for a delete
	Deleted bool // kept although deleted, on a service that has no markers
	Latest  bool
	ModTime time.Time // where there are no markers: a later one is a newer version
}

// VersionPage is one page of kept versions; Token is "" on the last.
type VersionPage struct {
	Versions []KeptVersion
	Token    string
}
