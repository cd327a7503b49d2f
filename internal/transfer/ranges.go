package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/wholeblob/wholeblob/blob"
)

// GetRanges implements blob.Blob. Near ranges are read by one request: those whose gap is at most Options.Gap, as
// long as what they span is at most Options.Segment.
func (s *Store) GetRanges(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
	o, err := blob.CheckGetRanges(key, rs, opts)
	if err != nil {
		return nil, s.fail(blob.OpGetRanges, key, err)
	}
	if err := s.enter(ctx, blob.OpGetRanges, key); err != nil {
		return nil, err
	}
	defer s.gate.Leave()
	if len(rs) == 0 {
		return nil, nil
	}
	for restarts := 0; ; restarts++ {
		r := &ranges{s: s, key: key, rs: rs, o: o, objs: make([]blob.Object, len(rs))}
		err := r.run(ctx)
		switch {
		case err == nil:
			return r.objs, nil
		case !errors.Is(err, errVersion), errors.Is(err, blob.ErrPrecondition), errors.Is(err, blob.ErrChanged): // the last: it has started over itself
			return nil, s.fail(blob.OpGetRanges, key, err)
		case !o.If.IsZero():
			return nil, s.fail(blob.OpGetRanges, key, &blob.Error{Kind: blob.ErrPrecondition, Err: err})
		case restarts >= s.o.Restarts:
			return nil, s.fail(blob.OpGetRanges, key,
				&blob.Error{Kind: blob.ErrChanged, Err: fmt.Errorf("%w, %d times", err, restarts+1)})
		}
	}
}

// ranges is one try to read all ranges from one version.
type ranges struct {
	s    *Store
	key  string
	rs   []blob.Range
	o    blob.GetOptions
	objs []blob.Object // the results, each written by the group that reads it

	total int64     // of the object when spans were placed, -1: unknown
	info  blob.Info // of the version that is read, once a group has been
}

// span is where one of the ranges lies, or many that one request reads.
type span struct {
	off, n int64
	of     []int // indexes into rs, in the order of their offsets
}

// run reads one group of ranges, which tells the object's size and version, and then the others of that version. errVersion
// means that the object changed in between and the caller did not ask for a version.
func (r *ranges) run(ctx context.Context) error {
	var err error
	if r.total, err = r.checkSum(ctx); err != nil {
		return err
	}
	first, rest := r.firstGroup(r.total)
	if err := r.read(ctx, first, r.o, r.s.o.Concurrency); err != nil {
		return err
	}
	pinned := r.o
	if r.info.Version != "" {
		pinned.If = blob.IfVersion(r.info.Version)
	}
	r.total = r.info.Size
	spans, err := r.place(rest)
	if err != nil {
		return err
	}
	groups := r.merge(spans)
	g, gctx := errgroup.WithContext(ctx)
	atOnce := max(1, min(len(groups), r.s.o.Concurrency))
	g.SetLimit(atOnce)
	for _, group := range groups {
		g.Go(func() error { return r.again(r.read(gctx, group, pinned, r.s.o.Concurrency/atOnce)) })
	}
	return g.Wait()
}

// again turns the failure of a read that this call has pinned, not its caller, into errVersion.
func (r *ranges) again(err error) error {
	if r.o.If.IsZero() && (errors.Is(err, blob.ErrPrecondition) || errors.Is(err, blob.ErrNotFound)) {
		return errVersion
	}
	return err
}

// firstGroup picks what is read first: the ranges around the first one whose place and length are known, or
// else the first range alone. rest are the indexes of the others.
func (r *ranges) firstGroup(total int64) (first span, rest []int) {
	var spans []span
	for i, rg := range r.rs {
		off, n, ok := known(rg, total)
		if ok && n > 0 {
			spans = append(spans, span{off, n, []int{i}})
		}
	}
	if len(spans) == 0 {
		first = span{-1, 0, []int{0}}
	} else {
		first = r.merge(spans)[0]
	}
	taken := make([]bool, len(r.rs))
	for _, i := range first.of {
		taken[i] = true
	}
	for i := range r.rs {
		if !taken[i] {
			rest = append(rest, i)
		}
	}
	return first, rest
}

// known returns where rg lies as far as that is known with a total of -1, too.
func known(rg blob.Range, total int64) (off, n int64, ok bool) {
	if total >= 0 {
		off, n, err := rg.Resolve(total)
		return off, n, err == nil
	}
	off, hasStart := rg.Start()
	n, limited := rg.Limit()
	return off, n, hasStart && limited && off < 1<<62-n
}

// place resolves ranges in the object whose size is now known. Those without bytes need no request.
func (r *ranges) place(indexes []int) ([]span, error) {
	var spans []span
	for _, i := range indexes {
		off, n, err := r.rs[i].Resolve(r.info.Size)
		if err != nil {
			return nil, blob.Invalid(blob.OpGetRanges, r.key, err)
		}
		if n == 0 {
			r.objs[i] = blob.Object{Info: r.info, Offset: off, Data: []byte{}}
			continue
		}
		spans = append(spans, span{off, n, []int{i}})
	}
	return spans, nil
}

// merge sorts spans by offset and joins those that are near. INVARIANT: a joined one spans at most Segment bytes, and
// covers exactly the ranges it is of and the gaps between them.
func (r *ranges) merge(spans []span) []span {
	most := min(r.s.o.Segment, r.s.o.MaxGet) // gaps must not make of ranges that are allowed a read that is not
	slices.SortStableFunc(spans, func(a, b span) int {
		switch {
		case a.off < b.off:
			return -1
		case a.off > b.off:
			return 1
		}
		return 0
	})
	var out []span
	for _, sp := range spans {
		if len(out) > 0 {
			last := &out[len(out)-1]
			end := max(last.off+last.n, sp.off+sp.n)
			if sp.off-(last.off+last.n) <= r.s.o.Gap && end-last.off <= most {
				last.n = end - last.off
				last.of = append(last.of, sp.of...)
				continue
			}
		}
		out = append(out, sp)
	}
	return out
}

// scratch keeps the buffers into which groups are read.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// read reads a group and hands out its ranges. A range read alone is its own buffer; of several each gets a copy, so that a
// small result never pins the group's.
func (r *ranges) read(ctx context.Context, group span, o blob.GetOptions, inFlight int) error {
	if len(group.of) == 1 {
		i := group.of[0]
		if o.Range = r.rs[i]; group.off >= 0 { // its place is known: no need of a suffix range
			o.Range = blob.Span(group.off, group.n)
		}
		obj, err := r.s.get(ctx, blob.OpGetRanges, r.key, o, inFlight)
		if err != nil {
			return err
		}
		r.objs[i] = obj
		return r.same(obj.Info)
	}
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	if int64(cap(*buf)) < group.n {
		*buf = make([]byte, group.n)
	}
	o.Range, o.Dst = blob.Span(group.off, group.n), (*buf)[:group.n]
	obj, err := r.s.get(ctx, blob.OpGetRanges, r.key, o, inFlight)
	if err != nil {
		return err
	}
	if err := r.same(obj.Info); err != nil {
		return err
	}
	for _, i := range group.of {
		off, n, err := r.rs[i].Resolve(obj.Size)
		if err != nil {
			return blob.Invalid(blob.OpGetRanges, r.key, err)
		}
		at := min(off-group.off, int64(len(obj.Data))) // one that begins at the end of the object is empty
		r.objs[i] = blob.Object{Info: obj.Info, Offset: off, Data: slices.Clone(obj.Data[at : at+n])}
		if r.objs[i].Data == nil {
			r.objs[i].Data = []byte{}
		}
	}
	return nil
}

// same notes the first Info, and compares. An object of another size than that for which the ranges were placed has changed since; where the
// store has no versions to ask for, size and time stand in for them: the weaker guarantee.
func (r *ranges) same(info blob.Info) error {
	if r.total >= 0 && info.Size != r.total {
		return errVersion
	}
	if r.info.Key == "" { // the first group, before the others run beside each other
		r.info = info
		return nil
	}
	if r.info.Version == "" && (info.Size != r.info.Size || !info.ModTime.Equal(r.info.ModTime)) {
		return errVersion
	}
	return nil
}

// checkSum refuses ranges of more than MaxGet bytes together. Only ranges whose lengths do not say so
// by themselves cost a Stat; total is -1 without one.
func (r *ranges) checkSum(ctx context.Context) (total int64, err error) {
	limit := r.s.o.MaxGet
	sum, known := int64(0), true
	for _, rg := range r.rs {
		n, ok := rg.Limit()
		if !ok || n > limit-sum {
			known = false
			break
		}
		sum += n
	}
	if known || len(r.rs) == 1 { // a single range is checked where it is read
		return -1, nil
	}
	h, err := r.s.head(ctx, blob.OpGetRanges, r.key)
	if err != nil {
		return -1, err
	}
	sum = 0
	for _, rg := range r.rs {
		_, n, err := rg.Resolve(h.Size)
		if err == nil && n > limit-sum {
			err = fmt.Errorf("%w: the ranges have more than %d bytes together", blob.ErrTooLarge, limit)
		}
		if err != nil {
			return -1, blob.Invalid(blob.OpGetRanges, r.key, err)
		}
		sum += n
	}
	return h.Size, nil
}
