package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// errStepDown ends a read whose mode the service does not serve: the read starts again one mode down.
var errStepDown = errors.New("the service does not serve this kind of read")

// errVersion ends a read that met another version than its first.
var errVersion = errors.New("another version than at the start of the read")

// Get implements blob.Blob.
func (s *Store) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	o, err := blob.CheckGet(key, opts)
	if err != nil {
		return blob.Object{}, s.fail(blob.OpGet, key, err)
	}
	if err := s.enter(ctx, blob.OpGet, key); err != nil {
		return blob.Object{}, err
	}
	defer s.gate.Leave()
	obj, err := s.get(ctx, blob.OpGet, key, o, s.o.Concurrency)
	if err != nil {
		return blob.Object{}, s.fail(blob.OpGet, key, err)
	}
	return obj, nil
}

// get reads one range with up to inFlight requests at a time, starting again after a change a bounded number of times.
func (s *Store) get(ctx context.Context, op, key string, o blob.GetOptions, inFlight int) (blob.Object, error) {
	if !s.traits.addressable(s.full(key)) {
		return blob.Object{}, &blob.Error{Kind: blob.ErrNotFound, Outcome: blob.NotApplied}
	}
	if s.traits.impossible(o.If) {
		if _, err := s.head(ctx, op, key); err != nil {
			return blob.Object{}, err
		}
		return blob.Object{}, impossible(o.If)
	}
	mode := readMode(s.mode.Load())
	if !o.Range.IsWhole() {
		mode = byRange // whatever becomes of it says nothing about parts
	}
	ahead := s.canReadAhead(o, mode)
	damaged := false
	for restarts := 0; ; {
		r := &read{s: s, op: op, key: key, o: o, mode: mode, inFlight: inFlight, ahead: ahead}
		obj, err := r.run(ctx)
		switch {
		case err == nil:
			return obj, nil
		case errors.Is(err, errDamaged) && !damaged:
			damaged = true // once more: it may have happened on the way
		case ahead && mayMend(err):
			ahead = false // once more with a first request, which tells what is wrong
		case errors.Is(err, errStepDown) && mode < plain:
			if mode == byPart {
				s.mode.Store(int32(byRange)) // remembered; plain is not: the fault may be the object's
			}
			mode++
		case errors.Is(err, errVersion) && !o.If.IsZero():
			return obj, &blob.Error{Kind: blob.ErrPrecondition, Outcome: blob.NotApplied, Err: err}
		case errors.Is(err, errVersion) && restarts >= s.o.Restarts:
			return obj, &blob.Error{Kind: blob.ErrChanged, Outcome: blob.NotApplied, Err: fmt.Errorf("%w, %d times", err, restarts+1)}
		case errors.Is(err, errVersion):
			restarts++
		default:
			return obj, err
		}
	}
}

// read is one try to read one range of one version.
type read struct {
	s        *Store
	op       string
	key      string
	o        blob.GetOptions
	mode     readMode
	inFlight int  // requests at a time, at most
	ahead    bool // all segments begin at once: see readAhead

	// Written by settle, before the workers start and before buf is touched; read-only afterwards.
	settled bool
	pin     pin   // the version that is read
	total   int64 // of the object, as the store states it
	lo, hi  int64 // wanted: [lo, hi)
	buf     []byte
	cur     segment // what the first request brings
	rest    []segment
	next    atomic.Int64    // index into rest of the next segment to read
	got     atomic.Int64    // bytes in place, all segments
	ctx     context.Context // of the whole read
	cancel  context.CancelCauseFunc
	workers sync.WaitGroup
}

func (r *read) run(ctx context.Context) (blob.Object, error) {
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	err := r.first(r.ctx)
	if err == nil {
		err = r.work(r.ctx)
	}
	if err != nil {
		r.cancel(err) // the first cause wins: a worker that failed before has ended r.ctx already
	}
	r.workers.Wait() // INVARIANT: nobody touches buf after this
	if err := cause(ctx, r.ctx); err != nil {
		return blob.Object{}, err
	}
	if got := r.got.Load(); got != r.hi-r.lo {
		return blob.Object{}, truncated("assembled %d bytes, want %d", got, r.hi-r.lo)
	}
	if err := r.verify(); err != nil {
		return blob.Object{}, err
	}
	return blob.Object{Info: r.s.info(r.key, r.pin.get(), r.total), Offset: r.lo, Data: r.buf}, nil
}

// first makes the first request, which tells the object's size, version and layout, starts the workers
// for the rest, and reads its own segment. After a failure in its body it goes on where the body ended.
func (r *read) first(ctx context.Context) error {
	if r.ahead {
		return r.readAhead()
	}
	size := r.s.o.Segment
	req, ok := planFirst(r.o.Range, r.mode, size, r.s.traits.SuffixReads)
	if !ok {
		return r.firstByHead(ctx)
	}
	req.Key = r.s.full(r.key)
	req.Version, _ = r.o.If.Version()
	var done int64
	bytes := size
	if r.mode == plain { // the whole object, however large: only its progress bounds an attempt then
		if bytes = -1; r.o.Want.HasSize {
			bytes = r.o.Want.Size
		}
	}
	return r.s.do(ctx, call{op: r.op, key: r.key, bytes: bytes, effect: retry.None}, func(ctx context.Context, a attempt) error {
		if r.settled {
			return r.readSegment(ctx, a, r.cur, &done)
		}
		rep, err := r.s.r.Read(ctx, req)
		if err != nil {
			return r.refused(ctx, a, req, err)
		}
		defer rep.close()
		a.w.moved() // the headers are there: the body is next
		lo, err := r.settle(ctx, a, req, rep)
		if err != nil {
			return err
		}
		r.startWorkers()
		return r.fill(a, rep, lo, r.cur, &done)
	})
}

// firstByHead settles the read by a Stat, and reads all segments by range.
func (r *read) firstByHead(ctx context.Context) error {
	head, err := r.s.head(ctx, r.op, r.key)
	if err != nil {
		return err
	}
	if v, ok := r.o.If.Version(); ok && v != head.Version {
		return errVersion
	}
	if err := r.resolve(head, head.Size); err != nil {
		return err
	}
	r.rest = planRest(r.lo, r.hi, r.lo, r.lo, r.total, r.s.o.Segment, 0)
	if r.mode == plain && r.hi > r.lo {
		r.rest = []segment{{off: r.lo, n: r.hi - r.lo}}
	}
	r.startWorkers()
	return nil
}

// refused handles an error reply to the first request.
func (r *read) refused(ctx context.Context, a attempt, req ReadRequest, err error) error {
	var e *blob.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case req.Part > 0 && partRefusal(e):
		return errStepDown // it knows no parts, or this object has none
	case errors.Is(err, blob.ErrInvalidRange):
		// Nothing lies at the offset: the object is empty, ends there, or ends before.
		a.w.sent(0)
		head, err := r.s.r.Head(ctx, req.Key)
		if err != nil {
			return err
		}
		if v, ok := r.o.If.Version(); ok && v != head.Version {
			return errVersion
		}
		if err := r.resolve(head, head.Size); err != nil {
			return err
		}
		if r.hi > r.lo {
			return errStepDown // it refused a range that exists
		}
		return nil
	}
	return err
}

// partRefusal reports whether a reply says that there are no parts to ask for, rather than that something else is wrong.
func partRefusal(e *blob.Error) bool {
	switch e.Kind {
	case blob.ErrUnsupported, blob.ErrInvalidRange:
		return true
	}
	return e.Kind == blob.ErrInvalidOption && e.Status/100 != 3 // not a redirect
}

// settle understands the first reply, and decides what is read from where. It returns the offset at which the
// reply's body begins.
func (r *read) settle(ctx context.Context, a attempt, req ReadRequest, rep *ReadReply) (int64, error) {
	p, err := place(req, rep)
	if err != nil {
		if req.Part > 0 || !rep.HasRange && (req.N > 0 || req.Suffix > 0) {
			return 0, errStepDown
		}
		return 0, badReply(err)
	}
	head := rep.Head
	if p.total < 0 && !r.ignored(req, rep, p) {
		if head, err = r.prove(ctx, a, req, rep, &p); err != nil {
			return 0, err
		}
	}
	if r.ignored(req, rep, p) { // a body without length shows only now how long it is
		return 0, errStepDown
	}
	if v, ok := r.o.If.Version(); ok && head.Version != "" && head.Version != v {
		return 0, errVersion // the store ignored the condition
	}
	if err := r.resolve(head, p.total); err != nil {
		return 0, err
	}
	size := r.s.o.Segment
	// What this body brings of what is wanted. A whole object in answer to a range is read through, since the
	// service would send it again for every further range.
	lo, hi := max(r.lo, p.lo), min(r.hi, p.hi)
	if req.Part > 0 && p.hi-p.lo > 2*size {
		hi = min(hi, p.lo+size) // one huge part: the rest goes by range
		r.s.mode.CompareAndSwap(int32(byPart), int32(byRange))
	}
	r.cur = segment{off: lo, n: max(hi-lo, 0)}
	parts := rep.Parts
	if hi != p.hi || outOfProportion(r.cur.n, size) {
		parts = 0 // by range: parts much smaller than a segment would each cost a request
	}
	r.rest = planRest(r.lo, r.hi, lo, lo+r.cur.n, r.total, rangeUnit(r.cur.n, size), parts)
	r.settled = true
	return p.lo, nil
}

// ignored reports whether the service ignores ranges, and sends more than the limits of this call are for.
func (r *read) ignored(req ReadRequest, rep *ReadReply, p placed) bool {
	return !rep.HasRange && req.Part == 0 && r.mode < plain && p.hi-p.lo > 2*r.s.o.Segment
}

// prove finds the total that a reply left out: what the caller's manifest says, or a Stat. Without any the
// length is unproven.
func (r *read) prove(ctx context.Context, a attempt, req ReadRequest, rep *ReadReply, p *placed) (Head, error) {
	head := rep.Head
	if r.o.Want.HasSize {
		p.total = r.o.Want.Size
	} else {
		a.w.sent(0)
		h, err := r.s.r.Head(ctx, req.Key)
		if err != nil {
			return head, err
		}
		a.w.moved()
		if !sameVersion(h, rep.Head) {
			return head, errVersion
		}
		p.total = h.Size
	}
	if p.total < 0 {
		return head, unproven()
	}
	switch {
	case p.hi < 0:
		p.hi = p.total // a body without length: it must bring exactly this
	case rep.HasRange && p.hi > p.total && r.o.Want.HasSize:
		return head, r.notWanted(r.o.Want.VerifySize(p.hi)) // it has at least these
	case rep.HasRange && p.hi > p.total:
		return head, truncated("the body has %d bytes, the object %d", p.hi, p.total)
	case !rep.HasRange && p.hi != p.total:
		return head, errStepDown // a part in the clothes of a whole object
	}
	return head, nil
}

// resolve places the wanted range in an object of total bytes and gets the memory for it.
func (r *read) resolve(head Head, total int64) error {
	if total < 0 {
		return unproven()
	}
	if err := r.o.Want.VerifySize(total); err != nil {
		return r.notWanted(err)
	}
	lo, n, err := r.o.Range.Resolve(total)
	hi := lo + n
	if err == nil && n > r.s.o.MaxGet {
		err = fmt.Errorf("%w: %d bytes asked for, at most %d", blob.ErrTooLarge, n, r.s.o.MaxGet)
	}
	if err != nil {
		return &blob.Error{Kind: blob.KindOf(err), Outcome: blob.NotApplied, Err: err}
	}
	r.total, r.lo, r.hi = total, lo, hi
	if !r.ahead {
		r.pin.set(head)
	}
	if r.o.Dst != nil && int64(len(r.o.Dst)) >= n {
		r.buf = r.o.Dst[:n:n]
	} else {
		r.buf = make([]byte, n)
	}
	return nil
}

// notWanted is the error of an object that is not what the caller's manifest says. It is the same object
// next time: Exhausted keeps the loop from asking again.
func (r *read) notWanted(err error) error {
	return &blob.Error{Kind: blob.KindOf(err), Outcome: blob.NotApplied, Exhausted: true, Err: err}
}

// startWorkers begins to read r.rest beside this goroutine, which has a request of its own in flight and takes part
// when that is done.
func (r *read) startWorkers() {
	ctx := r.ctx // not the first request's, which ends before the workers do
	for range min(len(r.rest), r.inFlight-1) {
		r.workers.Go(func() {
			if err := r.work(ctx); err != nil {
				r.cancel(err)
			}
		})
	}
}

// work reads segments until none is left, or another request's failure has ended ctx.
func (r *read) work(ctx context.Context) error {
	for ctx.Err() == nil {
		i := int(r.next.Add(1)) - 1
		if i >= len(r.rest) {
			break
		}
		if err := r.one(ctx, r.rest[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *read) one(ctx context.Context, seg segment) error {
	var done int64
	return r.s.do(ctx, call{op: r.op, key: r.key, bytes: seg.n, effect: retry.None}, func(ctx context.Context, a attempt) error {
		return r.readSegment(ctx, a, seg, &done)
	})
}

// readSegment reads what is missing of seg, done bytes being there already.
func (r *read) readSegment(ctx context.Context, a attempt, seg segment, done *int64) error {
	if *done == seg.n {
		return nil
	}
	req := ReadRequest{Key: r.s.full(r.key), Version: r.pin.get().Version, Off: seg.off + *done, N: seg.n - *done}
	switch {
	case r.mode == plain:
		req.Off, req.N = 0, -1
	case seg.part > 0 && *done == 0:
		req = ReadRequest{Key: req.Key, Version: req.Version, Part: seg.part, N: -1}
	}
	rep, err := r.s.r.Read(ctx, req)
	if err != nil {
		return segmentRefused(req, err)
	}
	defer rep.close()
	a.w.moved() // the headers are there: the body is next
	if r.ahead && rep.HasRange && rep.Total >= 0 && rep.Total != r.total {
		return r.notWanted(r.o.Want.VerifySize(rep.Total))
	}
	p, err := place(req, rep)
	if err == nil && !rep.HasRange && (req.N > 0 || req.Part > 0) {
		return errStepDown // it ignores ranges: one plain read instead of this again and again
	}
	if err != nil {
		if req.Part > 0 || !rep.HasRange {
			return errStepDown
		}
		return badReply(err)
	}
	if !r.pin.same(rep.Head) || p.total >= 0 && p.total != r.total {
		return errVersion
	}
	if want := seg.off + *done; p.lo > want || p.hi >= 0 && p.hi < seg.off+seg.n || req.Part > 0 && (p.lo != seg.off || p.hi != seg.off+seg.n) {
		return errStepDown // parts that are not where equal parts would lie
	}
	return r.fill(a, rep, p.lo, seg, done)
}

func segmentRefused(req ReadRequest, err error) error {
	var e *blob.Error
	switch {
	case req.Part > 0 && errors.As(err, &e) && partRefusal(e):
		return errStepDown // it counts parts, but does not serve them
	case errors.Is(err, blob.ErrPrecondition), errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrInvalidRange):
		return errVersion // the object was there, and as long, a moment ago
	}
	return err
}

func truncated(format string, args ...any) error {
	return &blob.Error{Kind: blob.ErrTruncated, Outcome: blob.NotApplied, Err: fmt.Errorf(format, args...)}
}

// unproven is the error of a read whose length nobody states. It will be the same next time: Exhausted keeps the loop from asking.
func unproven() error {
	return &blob.Error{Kind: blob.ErrTruncated, Outcome: blob.NotApplied, Exhausted: true, Err: errors.New("length unproven: the store states no size")}
}

func cut(cause error, format string, args ...any) error {
	if errors.Is(cause, io.EOF) {
		cause = io.ErrUnexpectedEOF
	}
	return truncated("%s: %w", fmt.Sprintf(format, args...), cause)
}

func badReply(err error) error {
	return &blob.Error{Kind: blob.KindOf(err), Outcome: blob.NotApplied, Err: err}
}
