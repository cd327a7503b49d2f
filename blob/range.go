package blob

import (
	"fmt"
	"strconv"
)

type rangeKind uint8

const (
	rangeFrom rangeKind = iota // zero, so that the zero Range is From(0)
	rangeSpan
	rangeLast
)

// Range is a part of an object. The zero Range is the whole object.
type Range struct {
	kind   rangeKind
	off, n int64
}

// Span is the n bytes from offset off. If n is 0 the result is empty and costs
// one Stat. A negative number makes the call that uses it fail with ErrInvalidOption.
func Span(off, n int64) Range { return Range{kind: rangeSpan, off: off, n: n} }

// From is everything from offset off to the end; From(0) is the whole object.
func From(off int64) Range { return Range{kind: rangeFrom, off: off} }

// Last is the last n bytes.
func Last(n int64) Range { return Range{kind: rangeLast, n: n} }

// IsWhole reports whether r is the zero Range, the whole object.
func (r Range) IsWhole() bool { return r == Range{} }

// Start returns the offset where r begins. ok is false for Last, whose
// offset depends on the object's size.
func (r Range) Start() (off int64, ok bool) { return r.off, r.kind != rangeLast }

// Limit returns how many bytes r can have at most. ok is false for From and for
// the whole object, which have no limit.
func (r Range) Limit() (n int64, ok bool) { return r.n, r.kind != rangeFrom }

// Check returns an error that matches ErrInvalidOption if r was made from a
// negative number.
func (r Range) Check() error {
	if r.off < 0 || r.n < 0 {
		return fmt.Errorf("%w: range %v has a negative number", ErrInvalidOption, r)
	}
	return nil
}

// Resolve places r in an object of size bytes: the result is
// [off, off+n), clipped at the end. An offset beyond size is ErrInvalidRange.
func (r Range) Resolve(size int64) (off, n int64, err error) {
	if err := r.Check(); err != nil {
		return 0, 0, err
	}
	if r.kind == rangeLast {
		n = min(r.n, size)
		return size - n, n, nil
	}
	if r.off > size {
		return 0, 0, fmt.Errorf("%w: %v begins beyond the size %d", ErrInvalidRange, r, size)
	}
	n = size - r.off // subtract instead of adding: off+n may overflow
	if r.kind == rangeSpan {
		n = min(n, r.n)
	}
	return r.off, n, nil
}

// String returns the call that makes r, such as "Span(10, 5)".
func (r Range) String() string {
	off, n := strconv.FormatInt(r.off, 10), strconv.FormatInt(r.n, 10)
	switch {
	case r.IsWhole():
		return "whole"
	case r.kind == rangeSpan:
		return "Span(" + off + ", " + n + ")"
	case r.kind == rangeLast:
		return "Last(" + n + ")"
	default:
		return "From(" + off + ")"
	}
}
