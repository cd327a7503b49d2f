package transfer

import (
	"fmt"
	"math"

	"github.com/wholeblob/wholeblob/blob"
)

// readMode is how a read asks for bytes. When an answer cannot be understood, or the service refuses the
// question, the read goes one step down and starts again; on plain there is no further step.
type readMode int32

const (
	byPart  readMode = iota // the first request asks for part 1, which also tells the layout
	byRange                 // byte ranges
	plain                   // the whole object, for a service that ignores ranges
)

// segment is a piece of the object that one request reads: [off, off+n).
type segment struct {
	part   int // > 0: ask for this part, which is expected to lie there; 0: ask by range
	off, n int64
}

// planFirst returns the first request of a read of r. ok is false if the object's size must be
// known before anything can be asked for: nothing is wanted, or the last bytes of a store
// without suffix ranges.
func planFirst(r blob.Range, mode readMode, size int64, suffix bool) (req ReadRequest, ok bool) {
	limit, limited := r.Limit()
	off, hasStart := r.Start()
	switch {
	case limited && limit == 0:
		return req, false
	case !hasStart && (!suffix || mode == plain):
		return req, false
	case !hasStart:
		return ReadRequest{Suffix: min(limit, size)}, true
	case mode == plain:
		return ReadRequest{N: -1}, true
	case mode == byPart && r.IsWhole():
		return ReadRequest{Part: 1, N: -1}, true
	case limited:
		return ReadRequest{Off: off, N: upTo(off, min(limit, size))}, true
	default:
		return ReadRequest{Off: off, N: upTo(off, size)}, true
	}
}

// upTo returns n, or less so that the last of n bytes from off has an int64 for its offset. n is positive, off not negative.
func upTo(off, n int64) int64 {
	if n-1 > math.MaxInt64-off {
		return math.MaxInt64 - off + 1
	}
	return n
}

// placed says which bytes of the object a reply carries: [lo, hi) of total. total is -1 if the reply
// proves none, and then hi is -1 too if the body has no announced length.
type placed struct{ lo, hi, total int64 }

// place finds out what a reply carries. Its error matches ErrTruncated or ErrCorrupt and says that the
// reply contradicts the request or itself, or leaves out where its bytes lie.
func place(req ReadRequest, rep *ReadReply) (placed, error) {
	if !rep.HasRange {
		return placeWithoutRange(req, rep)
	}
	p := placed{rep.Off, rep.End, rep.Total}
	switch {
	case p.lo < 0 || p.hi <= p.lo || p.total >= 0 && p.hi > p.total:
		return p, fmt.Errorf("%w: impossible Content-Range [%d, %d) of %d", blob.ErrCorrupt, p.lo, p.hi, p.total)
	case rep.Length >= 0 && rep.Length != p.hi-p.lo:
		return p, fmt.Errorf("%w: Content-Range has %d bytes, the body %d", blob.ErrCorrupt, p.hi-p.lo, rep.Length)
	}
	lo, hi := wanted(req, p)
	switch {
	case p.lo != lo:
		return p, fmt.Errorf("%w: asked for bytes from %d, got bytes from %d", blob.ErrCorrupt, lo, p.lo)
	case p.hi < hi && p.total >= 0:
		return p, fmt.Errorf("%w: want bytes up to %d of %d, got up to %d", blob.ErrTruncated, hi, p.total, p.hi)
	case p.hi > hi:
		return p, fmt.Errorf("%w: asked for bytes up to %d of %d, got up to %d", blob.ErrCorrupt, hi, p.total, p.hi)
	}
	return p, nil
}

// wanted returns where the bytes that req asks for lie in the object of which a reply brings p. While its total is not
// known (bytes a-b/*) they may end before hi: the object may.
func wanted(req ReadRequest, p placed) (lo, hi int64) {
	total := p.total
	if total < 0 {
		total = math.MaxInt64
	}
	switch {
	case req.Part == 1:
		return 0, p.hi // a part ends where it ends
	case req.Part > 1:
		return p.lo, p.hi // its place is compared with the plan's by the caller
	case req.Suffix > 0 && p.total < 0:
		return max(p.lo, p.hi-req.Suffix), p.hi
	case req.Suffix > 0:
		return max(0, total-req.Suffix), total
	case req.N > 0:
		return req.Off, req.Off + min(req.N, total-req.Off)
	}
	return 0, total
}

// placeWithoutRange places a reply without Content-Range. A 206 may lie anywhere. A 200 is the whole object
// by HTTP's rules (RFC 9110, 15.3.1), but as the answer to a question for a part or a range it may as well come
// from a service that forgot the header, so its length proves nothing.
func placeWithoutRange(req ReadRequest, rep *ReadReply) (placed, error) {
	if rep.Partial {
		return placed{}, fmt.Errorf("%w: length unproven: a partial reply without Content-Range", blob.ErrTruncated)
	}
	if rep.Length < 0 && (req.Off > 0 || req.Suffix > 0) {
		// If this is not the whole object but the range, nothing would tell before bytes lie in the wrong place.
		return placed{}, fmt.Errorf("%w: a reply without Content-Range and length", blob.ErrTruncated)
	}
	p := placed{0, rep.Length, rep.Length}
	if asked := req.Part > 0 || req.Suffix > 0 || req.N > 0; asked {
		p.total = -1
	}
	return p, nil
}

// planRest covers what is still missing of [lo, hi) once [gotLo, gotHi) is on its way, each byte exactly
// once. If the object has parts > 1 parts of gotHi bytes each, the last one excepted, and the read began
// with part 1, the rest goes by part; otherwise by ranges of unit bytes.
func planRest(lo, hi, gotLo, gotHi, total, unit int64, parts int) []segment {
	var segs []segment
	if first := gotHi; parts > 1 && lo == 0 && gotLo == 0 && hi == total && first > 0 &&
		ceilDiv(total, first) == int64(parts) {
		for i := 1; i < parts; i++ {
			off := int64(i) * first
			segs = append(segs, segment{part: i + 1, off: off, n: min(first, total-off)})
		}
		return segs
	}
	for _, gap := range [2][2]int64{{lo, gotLo}, {gotHi, hi}} {
		for off := gap[0]; off < gap[1]; off += unit {
			segs = append(segs, segment{off: off, n: min(unit, gap[1]-off)})
		}
	}
	return segs
}

// rangeUnit returns the size of range requests after a first reply of first bytes: the same size, so that ranges
// fall on the borders of parts even where the store does not tell how many there are, unless it is
// out of proportion to the segment size.
func rangeUnit(first, size int64) int64 {
	if outOfProportion(first, size) {
		return size
	}
	return max(first, 1)
}

// outOfProportion reports whether a first part of first bytes says nothing about how to read the rest: an object of 10,000 parts of a byte
// is not worth 10,000 requests.
func outOfProportion(first, size int64) bool { return first < size/8 || first > 2*size }
