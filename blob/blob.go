// Package blob defines the blob layer a database embeds: the Blob interface,
// the types its methods exchange, its errors, and the rules for keys, ranges,
// conditions and metadata that every store keeps.
//
// The package depends on the standard library only. Stores (memblob, fileblob,
// s3blob) and decorators (retry) implement Blob; a program holds a Blob and
// does not know which. Package blob/blobtest checks an implementation
// against every sentence of the contract below.
//
// # Words
//
// Sizes and offsets are in bytes and ranges are half-open. "Before any I/O"
// means that the call looked at its arguments only: the store saw no request
// and no file was touched. "Whole" is never inferred: the absence of
// information (a missing header, a connection that closed politely) is not
// taken for information.
package blob

import (
	"context"
	"iter"
	"time"
)

// DefaultMaxGet is the default of every store's MaxGet option: the most bytes
// that one Get or GetRanges returns, 1 GiB.
const DefaultMaxGet = 1 << 30

// Blob is a flat map from keys to immutable byte strings with a version each.
//
// Every method may be called by any number of goroutines at once, honours ctx,
// and returns a *Error (or, for DeleteAll, a *DeleteError of them; for Close, a
// *OwedError) whose sentinel errors.Is finds. A call whose ctx is already done
// does no I/O and returns an error that matches ctx.Err(). No method returns
// while it, or anything it started, may still touch its Source or Dst.
//
// Slices: the caller owns what it passes in, again after the call returned;
// no store keeps a reference. Object.Data and Info.Metadata are read-only for
// everyone, since a cache may share them; a Data in the caller's own Dst is the
// caller's. On an error the content of Dst is undefined.
//
// Consistency: conditional operations and keys written once are linearizable.
// Unconditional Set, Delete and DeleteAll are applied at least once when
// something retries them, so a slow attempt may land after a later write
// of the same key; AtMostOnce forbids the second attempt.
type Blob interface {
	// Get returns exactly the bytes asked for, all of one version, or an
	// error. The length is checked against the store's own statement of the
	// object's total size on every path, and a checksum whenever one is
	// known that covers exactly the bytes read.
	//
	// Ranges: an offset equal to the size gives empty Data, a greater offset
	// ErrInvalidRange. A range that goes past the end is clipped, and
	// Info.Size says what the total is. Last(0) is empty; Last of more than
	// the size is the whole object.
	//
	// Errors: ErrNotFound for a missing key. With opts.If a version mismatch
	// is ErrPrecondition, also when the object changes while it is read.
	// Without it the read starts over a bounded number of times, then fails
	// with ErrChanged. ErrTooLarge, before any allocation, when the bytes
	// asked for exceed the store's MaxGet. ErrTruncated when the bytes that
	// came are fewer than the store announced, or when the store announced
	// nothing and no other statement of the size could be had.
	//
	// Cost: one request for an object of at most one segment, n for an
	// object of n parts; empty ranges cost one Stat. A cancel leaves nothing behind.
	Get(ctx context.Context, key string, opts *GetOptions) (Object, error)

	// GetRanges returns the given ranges of one version of the object, in
	// the order of rs; ranges may overlap and repeat. opts.Range and opts.Dst
	// must be unset (ErrInvalidOption). No ranges: no I/O, no objects. One
	// range that Get would refuse fails the whole call. MaxGet bounds the
	// sum of all lengths. Everything else is as for Get.
	GetRanges(ctx context.Context, key string, rs []Range, opts *GetOptions) ([]Object, error)

	// Set stores the source's bytes under key, atomically: at any time
	// readers see the old state or the whole new object, never a part. A nil
	// error means the object is visible to every reader and durable in the
	// store. The returned Info has Key, Size and Version.
	//
	// Conditions mean the same whether the object goes in one request or in
	// ten thousand parts. IfAbsent on a key that exists is ErrExists;
	// IfVersion that does not match is ErrPrecondition, on a missing key too.
	// A store that cannot honour a condition returns ErrUnsupported before any
	// I/O on the key; it never drops the condition.
	//
	// Errors before any I/O: ErrInvalidKey; ErrInvalidOption for a zero or
	// spent Source, bad metadata or a bad condition; ErrTooLarge above
	// Capabilities().MaxObject. A source that yields more or fewer bytes than
	// it declared is ErrSourceLength; one that fails or panics is an error
	// that wraps its own. In all these cases nothing became visible.
	//
	// Every error carries an Outcome: NotApplied is certain; Unknown means
	// the write may have happened or may yet. A conditional Set never
	// reports ErrExists or ErrPrecondition because of its own earlier attempt.
	//
	// Cost: one request below the store's multipart threshold, n+2 for n
	// parts. A cancel leaves the old state, and parts already sent are
	// cleaned up in the background at the latest by Close.
	Set(ctx context.Context, key string, src Source, opts *SetOptions) (Info, error)

	// Stat returns what the store knows about key without its bytes: Key,
	// Size, Version, ModTime, Metadata and ContentType. ErrNotFound for a
	// missing key. One request.
	Stat(ctx context.Context, key string) (Info, error)

	// List yields every key that begins with prefix (a plain string prefix,
	// not a folder: "bar" matches "bar-baz/1"), in ascending byte order,
	// starting after opts.StartAfter. With opts.Delimiter, the keys that
	// contain the delimiter after the prefix are folded into one Info each
	// that has IsPrefix set and Key up to and including the delimiter; keys
	// and prefixes alike are yielded only if they are themselves greater
	// than StartAfter.
	//
	// Each yielded Info has Key, Size, Version and ModTime (a prefix: Key).
	// Keys the rules of CheckKey would refuse are yielded as they are stored. A key
	// written or deleted while the listing runs may appear or not; no key
	// appears twice.
	//
	// Each range over the sequence lists anew. An error is yielded once, as
	// the last element, with a zero Info; a listing that ends early ends in
	// an error, never in a clean end. Breaking out of the loop stops further
	// requests. ErrUnsupported when the store does not list in byte order and
	// sorting would need more than 1 MiB. One request per 1000 keys.
	List(ctx context.Context, prefix string, opts *ListOptions) iter.Seq2[Info, error]

	// Delete removes key. A key that does not exist is no error, with
	// IfVersion too; a version mismatch is ErrPrecondition and IfAbsent is
	// ErrInvalidOption. One request, and a Stat when a condition is refused.
	Delete(ctx context.Context, key string, opts *DeleteOptions) error

	// DeleteAll removes keys, with the store's batch call where it has one.
	// Each key is deleted independently; a missing key counts as deleted. If any
	// key failed, the error is a *DeleteError that names every key which
	// failed or was not tried (these with Outcome NotApplied). An empty key
	// among them is ErrInvalidKey before any I/O. No keys: nil. One request
	// per 1000 keys, or one per key without a batch call.
	DeleteAll(ctx context.Context, keys []string) error

	// Restore undoes the newest delete of key and returns the Info of the
	// object that is there now. It is idempotent: an existing key is left as
	// it is. nil if and only if the key exists afterwards. For an absent key:
	// ErrUnsupported on a store that keeps nothing, ErrNotFound on one that
	// keeps deleted objects but not this one.
	Restore(ctx context.Context, key string) (Info, error)

	// Capabilities says what the store can do. No I/O, same answer always.
	Capabilities() Capabilities

	// Close refuses new work with ErrClosed, waits for calls in flight
	// (a List being ranged over is one) and finishes the clean-up the store
	// owes. If ctx ends first it returns a *OwedError with what is left, and
	// Close may be called again to go on. After a nil Close, Close is nil.
	Close(ctx context.Context) error
}

// Info describes one object, or in a List with a delimiter one common prefix.
type Info struct {
	Key  string
	Size int64 // total bytes of the object, never of the range read

	// Version names this content of Key. It is opaque, never empty for an
	// object of a store that has versions, and comparable only for one key of
	// one store: a generation on GCS, an ETag on S3 and Azure (on S3 equal
	// content may give an equal ETag), fresh and random per write on memblob and fileblob.
	Version string

	ModTime     time.Time         // by the store's clock
	Metadata    map[string]string // the caller's own entries; read-only
	ContentType string

	CRC32C    uint32 // Castagnoli, of the whole object
	HasCRC32C bool   // whether CRC32C is known

	IsPrefix bool // List with a delimiter: Key is a common prefix, not an object
}

// Object is the result of a read: Data is the object's bytes
// [Offset, Offset+len(Data)).
type Object struct {
	Info
	Offset int64
	Data   []byte // read-only, unless it lies in the caller's own Dst
}

// Capabilities says what a store can do.
type Capabilities struct {
	Store        string // short name as used in errors: "memory", "file", "s3"
	Conditions   bool   // Set and Delete honour conditions
	Restore      bool   // deleted objects are kept, so Restore can find them
	BatchDelete  bool   // DeleteAll costs one request for many keys
	SelfRetrying bool   // the store retries by itself: do not wrap it in another loop
	MaxObject    int64  // largest object in bytes; 0: no limit of its own
}
