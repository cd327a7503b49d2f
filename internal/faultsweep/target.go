package faultsweep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
	"github.com/wholeblob/wholeblob/retry"
)

// Kind is what a request does.
type Kind int

// The kinds of requests. A service need not have all of them.
const (
	Other  Kind = iota
	Read        // content of an object
	Head        // what is said of an object
	List        // a page of objects
	Put         // stores a whole object
	Begin       // starts an upload
	Part        // sends a part of an upload, and commits nothing
	Ask         // asks what became of an upload
	Commit      // makes the object of an upload visible
	Abort       // discards an upload
	Delete      // one key, or many
	Revive      // brings something back that was deleted
)

// Service is a fake service with one bucket, which is empty.
type Service interface {
	// HTTP is the server underneath.
	HTTP() *fakehttp.Server
	// Put stores an object of parts, without a request.
	Put(key string, parts [][]byte, metadata map[string]string)
	// Remove deletes an object, without a request.
	Remove(key string)
	// Object returns the object of a key.
	Object(key string) (Object, bool)
	// Uploads returns the uploads in progress that a Store would have to abort.
	Uploads() []Upload
	// Kept describes what is kept of key beside the object, for Target.Restore: two descriptions are equal if nothing
	// was brought back or thrown away between them.
	Kept(key string) string
}

// Object is a stored object.
type Object struct {
	Data     []byte
	Version  string // as blob.Info has it
	Metadata map[string]string
}

// Upload is an upload in progress. Name is that of blob.OwedError, "" if only the store can know that.
type Upload struct{ Key, Name string }

// Setup says how a service is to be. The zero value is as its makers document it.
type Setup struct {
	InMemory   bool // pipes, not sockets
	Shape      fakehttp.Shape
	PageSize   int
	NoBatch    bool             // no batch of deletes; for Target.Batch
	Restore    bool             // it keeps what is deleted; for Target.Restore
	Forgets    bool             // it knows nothing of an upload that has been committed; for Target.Forgets
	HashBodies bool             // the log has the hashes of bodies
	Now        func() time.Time // nil: time.Now
}

// Config is how a Store is to be opened, with parts and segments of Target.PartSize bytes unless Segment says otherwise.
type Config struct {
	Transport  http.RoundTripper // nil: the Store's own
	Policy     retry.Policy
	Stall      time.Duration // 0: the default
	PartSize   int64         // 0: Target.PartSize
	Segment    int64         // 0: as PartSize
	Gap        int64         // 0: the default; -1: none
	Restarts   int           // 0: the default; -1: none
	ReadRanges bool          // reads begin with a range; for Target.PartReads
	Restore    bool          // for Target.Restore
	SweepAll   bool          // for Target.Sweep
}

// Target is a store to be swept.
type Target struct {
	// Store is the store's name in errors.
	Store string
	// PartSize is the size of parts and segments in bytes. 4 KiB is good, where the service takes such parts.
	PartSize int
	// Start starts a service.
	Start func(Setup) Service
	// Open opens a store on it.
	Open func(context.Context, Service, Config) (blob.Blob, error)
	// Kind says what a request does. It runs under a lock of the server: it must not call it.
	Kind func(*fakehttp.Request) Kind

	// Refusals are answers that no further attempt mends (blob.ErrPermission).
	Refusals []fakehttp.Reply
	// Throttles are answers that ask for fewer requests; nothing was done (blob.ErrThrottled).
	Throttles []fakehttp.Reply
	// Failures are answers that leave open whether something was done (blob.ErrUnavailable).
	Failures []fakehttp.Reply
	// Conflicts are answers that say that another operation was in flight; nothing was done.
	Conflicts []fakehttp.Reply

	// PartReads says that objects can be read by the parts they were written in. False: by ranges only.
	PartReads bool
	// Serial says that an upload's parts go one after the other, and that the session tells what became of a commit.
	Serial bool
	// Batch is how many keys one request deletes. Zero: there is no such request.
	Batch int
	// Restore says that what is deleted can be brought back. False: not.
	Restore bool
	// Forgets says that Setup.Forgets makes a difference.
	Forgets bool
	// BodyHashes says that Entry.BodySHA256 is that of the content which a Put or a Part carries.
	BodyHashes bool
	// Fallbacks are the operations of requests (fakehttp.Request.Op) whose refusal makes the store go another way.
	Fallbacks []string
	// Only is the one operation to sweep, by its name. Empty: all.
	Only string
	// LeaveUploads begins n uploads under the key "left", as another process would have, on a service with
	// Setup.Now. Nil: the store has no Sweep.
	LeaveUploads func(ctx context.Context, s Service, n int) error
	// Sweep calls the store's own.
	Sweep func(ctx context.Context, b blob.Blob, olderThan time.Duration) (blob.SweepResult, error)
	// NoAnswers are answers with a good status that do not say that a Commit is done, by name.
	NoAnswers map[string]fakehttp.Fault
	// Pages are pages of listings that are no good end, by name.
	Pages map[string]Odd
	// Over, if not nil, puts a decorator that may answer reads itself in front of what Open has opened, which it closes. Operations are done
	// through it, and afterwards, when nothing fails any more, what it says must be what the store says.
	Over func(ctx context.Context, st blob.Blob) (blob.Blob, error)
	// Brief fails requests in a few ways, each with another effect above the engine. False: in every way.
	Brief bool
	// Warm reads everything through Over before the operation begins. False: it knows nothing yet.
	Warm bool
	// Revalidates says that Over asks the store before each answer. False: it need not notice what others write.
	Revalidates bool
	// Shapes are servers, by name, on which an object that changes must not be mixed. Nil: only the one without a Shape.
	Shapes map[string]fakehttp.Shape
}

// Odd is a deviation of the first page of a listing of three, or of all, and what becomes of the listing.
type Odd struct {
	Page  func(*fakehttp.Page)
	Times int   // as of fakehttp.Fault
	Want  error // nil: all keys come
}

// content returns n bytes, the same for the same n.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	_, _ = r.Read(b)
	return b
}

func inParts(b []byte, size int) [][]byte { return slices.Collect(slices.Chunk(b, size)) }

// count returns how many requests of the kinds are in the log.
func (target *Target) count(log fakehttp.Log, kinds ...Kind) int {
	n := 0
	for i := range log {
		if slices.Contains(kinds, target.Kind(&log[i].Request)) {
			n++
		}
	}
	return n
}

// match hits requests of the kinds.
func (target *Target) match(kinds ...Kind) func(*fakehttp.Request) bool {
	return func(r *fakehttp.Request) bool { return slices.Contains(kinds, target.Kind(r)) }
}

func (k Kind) String() string {
	names := [...]string{"other", "read", "head", "list", "put", "begin", "part", "ask", "commit", "abort", "delete", "revive"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}
