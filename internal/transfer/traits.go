package transfer

import "github.com/wholeblob/wholeblob/blob"

// Traits says what a service can do, so that the engine need not know which one it is.
type Traits struct {
	Store string // name in errors and Capabilities

	MinPart      int64 // bytes of every part but the last, at least
	MaxPart      int64 // bytes of a part, at most; 0: any number
	MaxParts     int   // parts of an object, at most
	PartMultiple int64 // part sizes but the last are multiples of it; 0: any
	MaxPut       int64 // bytes of an object in one request, at most; 0: any number
	MaxObject    int64 // bytes of an object, at most

	SerialParts bool // parts go in order, one at a time, and the last one commits
	Abort       bool // an upload can be discarded; else its parts expire by themselves, and nothing is owed for a Set that failed
	Uploads     bool // open uploads can be listed; else Sweep finds none
	Sums        bool // a write carries the CRC-32C of the whole object, and the service refuses bytes that do not have it

	PartReads   bool // Read can ask for a part
	SuffixReads bool // Read can ask for the last bytes
	Ordered     bool // List is in byte order
	StartAfter  bool // List honours StartAfter

	SetConditions    bool // IfAbsent and IfVersion on writes, single and in parts
	DeleteConditions bool // IfVersion on Delete

	BatchDelete int  // keys of a DeleteBatch, at most; 0: there is none
	Restore     bool // deleted objects are kept

	// Batchable reports whether a DeleteBatch can name key; the others are deleted one by one. nil: every key.
	Batchable func(key string) bool

	// Verify is set for an endpoint that nobody vouches for: the first Set is followed by a Stat, which shows whether
	// the service keeps bytes and metadata as they were sent.
	Verify bool

	// ValidVersion reports whether a version can be one of the service's at all. One that cannot matches no object, and is never
	// sent. nil: every version.
	ValidVersion func(version string) bool

	// Addressable reports whether the service can hold key at all. One it cannot is not found, without a
	// request. nil: every key.
	Addressable func(key string) bool
}

// impossible reports whether cond asks for a version that no object can have.
func (t Traits) impossible(cond blob.Condition) bool {
	v, ok := cond.Version()
	return ok && t.ValidVersion != nil && !t.ValidVersion(v)
}

// sweeps reports whether uploads that somebody left can be found and discarded.
func (t Traits) sweeps() bool { return t.Uploads && t.Abort }

func (t Traits) addressable(key string) bool { return t.Addressable == nil || t.Addressable(key) }

// partSize returns the size of all parts but the last for an object of size bytes, at least want.
func (t Traits) partSize(size, want int64) int64 {
	p := max(want, t.MinPart)
	if t.MaxParts > 0 {
		p = max(p, ceilDiv(size, int64(t.MaxParts)))
	}
	if t.PartMultiple > 0 {
		p = ceilDiv(p, t.PartMultiple) * t.PartMultiple
	}
	return p
}

func ceilDiv(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}

func (t Traits) capabilities() blob.Capabilities {
	return blob.Capabilities{
		Store:        t.Store,
		Conditions:   t.SetConditions && t.DeleteConditions,
		Restore:      t.Restore,
		BatchDelete:  t.BatchDelete > 0,
		SelfRetrying: true,
		MaxObject:    t.MaxObject,
	}
}
