package transfer

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// Defaults of Options.
const (
	DefaultPartSize    = 8 << 20
	DefaultGap         = 64 << 10
	DefaultConcurrency = 8
	DefaultInFlight    = 128
	DefaultRestarts    = 3
	DefaultStall       = 20 * time.Second
)

// Options configure the engine. Complete has checked those of a store; New has defaults for InFlight, Stall and Policy.
type Options struct {
	Prefix      string // of all keys, with its final slash, or ""
	Policy      retry.Policy
	PartSize    int64         // bytes of a part of an upload, at least
	Threshold   int64         // bytes from which a Set goes in parts; one beyond Traits.MaxPut counts as that and one more
	Segment     int64         // bytes of a range request
	Gap         int64         // bytes between two ranges that one request may read too
	Concurrency int           // requests in flight of one operation, at most
	InFlight    int           // requests in flight of all operations together, at most
	Restarts    int           // how often a read starts over when its object changes
	Stall       time.Duration // how long a body may stand still; retry.NoLimit: for ever
	MaxGet      int64         // bytes of a Get or GetRanges, at most
	ReadRanges  bool          // reads begin with a range, not with part 1
	SweepAll    bool          // Sweep may run without a Prefix
	Logger      *slog.Logger
}

// Complete takes o as a caller of a store has written it, where 0 is the default and -1 is none, fills in the defaults and checks it. maxPart
// and maxPut bound the bytes of a part and of an object in one request. Errors match blob.ErrInvalidOption and name the field as the store's
// Options do.
func (o *Options) Complete(maxPart, maxPut int64) error {
	o.PartSize = cmp.Or(o.PartSize, DefaultPartSize)
	o.Threshold = cmp.Or(o.Threshold, min(o.PartSize, maxPut))
	o.Segment = cmp.Or(o.Segment, DefaultPartSize)
	o.Gap = cmp.Or(o.Gap, DefaultGap)
	o.Concurrency = cmp.Or(o.Concurrency, DefaultConcurrency)
	o.InFlight = cmp.Or(o.InFlight, DefaultInFlight)
	o.Stall = cmp.Or(o.Stall, DefaultStall)
	o.Restarts = cmp.Or(o.Restarts, DefaultRestarts)
	o.MaxGet = cmp.Or(o.MaxGet, blob.DefaultMaxGet)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, n := range []struct {
		name     string
		value    int64
		min, max int64
	}{
		{"PartSize", o.PartSize, 1, maxPart},
		{"Threshold", o.Threshold, 1, maxPut},
		{"Segment", o.Segment, 1, maxPart},
		{"Gap", o.Gap, -1, maxPart},
		{"Concurrency", int64(o.Concurrency), 1, 1 << 16},
		{"InFlight", int64(o.InFlight), 1, 1 << 16},
		{"Stall", int64(o.Stall), int64(retry.NoLimit), math.MaxInt64},
		{"Restarts", int64(o.Restarts), -1, 1 << 16},
		{"MaxGet", o.MaxGet, 1, 1 << 62},
	} {
		if n.value < n.min || n.value > n.max {
			return fmt.Errorf("%w: %s is %d: want %d to %d", blob.ErrInvalidOption, n.name, n.value, n.min, n.max)
		}
	}
	o.Restarts, o.Gap = max(o.Restarts, 0), max(o.Gap, 0)
	var e *blob.Error
	if err := o.Policy.Check(); errors.As(err, &e) {
		return e.Err // the field and the fault; OpenError puts the rest around it once
	}
	var err error
	o.Prefix, err = blob.CheckPrefix(o.Prefix)
	return err
}

// OpenError returns err, of whatever kept a store from being opened, as its *blob.Error.
func OpenError(store string, err error) error {
	kind := blob.KindOf(err)
	if kind == nil {
		kind, err = blob.ErrInvalidOption, fmt.Errorf("%w: %w", blob.ErrInvalidOption, err)
	}
	return &blob.Error{Op: blob.OpOpen, Store: store, Kind: kind, Outcome: blob.NotApplied, Err: err}
}
