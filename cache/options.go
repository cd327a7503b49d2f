package cache

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache"
)

// The defaults of Options.
const (
	DefaultMemory    = 256 << 20
	DefaultBlock     = 128 << 10
	DefaultFillBytes = 64 << 20
)

// Always is the Revalidate that asks the store before every read from the cache.
const Always time.Duration = -1

// minBlock is the granularity of Block: what the disk tier checks at a time.
const minBlock = 4 << 10

// maxSize is no limit at all, and leaves room above it for sums of sizes.
const maxSize = 1 << 60

// Options are the options of New. nil is the zero value. Sizes above 1 EiB are taken for 1 EiB, which limits nothing: the largest int64 is a way to
// say "as much as there is".
type Options struct {
	// Memory is the capacity of the memory tier in bytes, keys and bookkeeping included, but for a table of 128 KiB. Beside it comes
	// what is being put in: who brings it makes room before his call ends. 0: DefaultMemory. Negative: no memory tier.
	Memory int64

	// Dir is the directory of the disk tier, which belongs to this Cache alone. "": no disk tier.
	Dir string
	// Disk is the capacity of the disk tier in bytes. It must be positive if Dir is set, and 0 otherwise.
	Disk int64

	// Block is the unit in bytes in which ranged reads are fetched and kept, a multiple of 4 KiB. If it is more than MaxFill, FillBytes or what
	// the tiers take, ranges are not kept at all. 0: DefaultBlock.
	Block int64

	// MaxFill is the largest object, or range, in bytes that a read or a Set leaves in the cache: what is larger goes straight
	// through. 0: the most that a tier takes, which is an eighth of its capacity, and on disk less than 64 MiB. A MaxFill above that is
	// lowered to it.
	MaxFill int64

	// FillBytes bounds the bytes of all fills in flight. A read that finds them used up goes straight to the
	// store, and fills nothing. 0: DefaultFillBytes.
	FillBytes int64

	// MaxGet is the MaxGet of the inner store: the most bytes that the cache returns for one call. 0: blob.DefaultMaxGet. If it is
	// more than the inner store's, a hit may return what a miss refuses.
	MaxGet int64

	// Revalidate says when the store is asked whether a cached object is still the current one. 0: never, for keys that are
	// written once, or by this Cache alone. Always: before every read, at the cost of a Stat. Otherwise: when it was last known to be
	// current longer ago than that; only the memory tier remembers when that was, and without it every read asks.
	Revalidate time.Duration

	// NoWriteThrough keeps what Set writes out of the cache until it is read.
	NoWriteThrough bool

	// Off makes every call reach the inner store. Nothing is kept and no directory is opened; reads are counted, as Stats.Bypassed.
	Off bool

	// Logger gets one line when the disk tier is turned off or on again, or gives up all its entries, and one with the stack when the
	// inner store panics in a request of the cache. nil: nothing is logged.
	Logger *slog.Logger
}

// Check returns what New has against o, but for what only the directory can tell: ErrInvalidOption, or nil. It does no I/O.
func (o *Options) Check() error {
	_, err := settle(o)
	return err
}

// settle returns a copy of o with its defaults filled in.
func settle(o *Options) (Options, error) {
	var s Options
	if o != nil {
		s = *o
	}
	if s.Block%minBlock != 0 {
		return s, fmt.Errorf("%w: Block is %d, no multiple of %d", blob.ErrInvalidOption, s.Block, minBlock)
	}
	for _, f := range []struct {
		name string
		size *int64
	}{{"Memory", &s.Memory}, {"Disk", &s.Disk}, {"Block", &s.Block}, {"MaxFill", &s.MaxFill}, {"FillBytes", &s.FillBytes}, {"MaxGet", &s.MaxGet}} {
		if *f.size < 0 && f.name != "Memory" {
			return s, fmt.Errorf("%w: %s is negative: %d", blob.ErrInvalidOption, f.name, *f.size)
		}
		*f.size = min(*f.size, maxSize)
	}
	switch {
	case s.Dir != "" && s.Disk == 0:
		return s, fmt.Errorf("%w: Dir without Disk, its capacity", blob.ErrInvalidOption)
	case s.Dir != "" && s.Disk < diskcache.MinSize:
		return s, fmt.Errorf("%w: Disk is %d, less than %d", blob.ErrInvalidOption, s.Disk, diskcache.MinSize)
	case s.Dir == "" && s.Disk != 0:
		return s, fmt.Errorf("%w: Disk without Dir", blob.ErrInvalidOption)
	case s.Revalidate < 0 && s.Revalidate != Always:
		return s, fmt.Errorf("%w: Revalidate is negative: %v", blob.ErrInvalidOption, s.Revalidate)
	}
	if s.Memory == 0 {
		s.Memory = DefaultMemory
	}
	s.Memory = max(s.Memory, 0)
	setDefault(&s.Block, DefaultBlock)
	setDefault(&s.FillBytes, DefaultFillBytes)
	setDefault(&s.MaxGet, blob.DefaultMaxGet)
	largest := max(s.Memory/8, min(s.Disk/8, diskcache.LargestEntry))
	setDefault(&s.MaxFill, largest)
	s.MaxFill = min(s.MaxFill, largest)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

func setDefault(p *int64, d int64) {
	if *p == 0 {
		*p = d
	}
}
