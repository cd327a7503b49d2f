package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// Set implements blob.Blob.
func (s *Store) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	o, err := blob.CheckSet(key, src, opts)
	if err == nil {
		err = s.checkSet(key, src, o)
	}
	if err != nil {
		return blob.Info{}, s.fail(blob.OpSet, key, err)
	}
	if err := s.enter(ctx, blob.OpSet, key); err != nil {
		return blob.Info{}, err
	}
	defer s.gate.Leave()
	if s.traits.impossible(o.If) {
		return blob.Info{}, s.fail(blob.OpSet, key, impossible(o.If))
	}
	stamp := blob.Stamp{Token: blob.NewToken()}
	w := &write{
		s: s, key: key, src: src, o: o,
		meta: Meta{ContentType: o.ContentType, Metadata: stamp.Seal(o.Metadata)},
	}
	var done Written
	if src.Size() < s.o.Threshold {
		done, err = w.single(ctx)
	} else {
		done, err = w.multipart(ctx)
	}
	switch {
	case err == nil && done.Version == "":
		done, err = s.confirm(ctx, key, stamp.Token, src.Size())
	case err == nil && s.traits.Verify && !s.proved.Load():
		err = s.verify(ctx, key, stamp.Token, done.Version, src.Size())
	}
	if err != nil {
		return blob.Info{}, s.fail(blob.OpSet, key, err)
	}
	return blob.Info{Key: key, Size: src.Size(), Version: done.Version}, nil
}

// confirm looks for a write that was acknowledged without the version it made. Anyone can answer 200: only the
// write's own token, found on the object, shows that the service did.
func (s *Store) confirm(ctx context.Context, key, token string, size int64) (Written, error) {
	h, err := s.head(ctx, blob.OpSet, key)
	if err != nil {
		return Written{}, &blob.Error{Kind: blob.ErrUnavailable, Err: fmt.Errorf("a write was acknowledged without a version, and cannot be confirmed: %w", err)}
	}
	if _, stamp := blob.Unseal(h.Metadata); stamp.Token != token || h.Size != size {
		return Written{}, &blob.Error{Kind: blob.ErrUnavailable, Err: errors.New("a write was acknowledged without a version, and the object that is there is another")}
	}
	return Written{Version: h.Version}, nil
}

// verify looks at the first object that was set on an endpoint nobody vouches for. Some servers store the framing in which an SDK
// sends checksums as data, and some proxies drop metadata: the one is an error, since every object would be damaged, the
// other a warning.
func (s *Store) verify(ctx context.Context, key, token, version string, size int64) error {
	h, err := s.head(ctx, blob.OpSet, key)
	if err != nil {
		return nil //nolint:nilerr // the write itself succeeded; the next one is looked at instead
	}
	_, stamp := blob.Unseal(h.Metadata)
	switch {
	case stamp.Token != "" && stamp.Token != token, h.Version != "" && h.Version != version:
		return nil // somebody else's by now
	case h.Size != size:
		return &blob.Error{Kind: blob.ErrCorrupt, Err: fmt.Errorf("the store keeps %d bytes of an object of %d: it stores more than the content", h.Size, size)}
	case stamp.Token == "":
		s.o.Logger.Warn("the store loses metadata", "store", s.traits.Store, "key", key)
	}
	s.proved.Store(true)
	return nil
}

// checkSet refuses what the service or this engine cannot do, before any I/O.
func (s *Store) checkSet(key string, src blob.Source, o blob.SetOptions) error {
	var err error
	switch {
	case src.ReaderAt() == nil:
		err = fmt.Errorf("%w: a Stream source on this store", blob.ErrUnsupported)
	case o.SHA256:
		err = fmt.Errorf("%w: SetOptions.SHA256 on this store", blob.ErrUnsupported)
	case !o.If.IsZero() && !s.traits.SetConditions:
		err = fmt.Errorf("%w: %v: nobody vouches that this endpoint honours conditions", blob.ErrUnsupported, o.If)
	case s.traits.MaxObject > 0 && src.Size() > s.traits.MaxObject:
		err = fmt.Errorf("%w: %d bytes, the store holds at most %d", blob.ErrTooLarge, src.Size(), s.traits.MaxObject)
	}
	if err != nil {
		return blob.Invalid(blob.OpSet, key, err)
	}
	return nil
}

// write is one Set of a source that can be read again.
type write struct {
	s    *Store
	key  string
	src  blob.Source
	o    blob.SetOptions
	meta Meta
}

// onKey describes a request that can change what is stored under the key.
func (w *write) onKey(bytes int64) call {
	return call{op: blob.OpSet, key: w.key, bytes: bytes, effect: retry.Mutation(w.o.If, w.o.AtMostOnce)}
}

func (w *write) single(ctx context.Context) (done Written, err error) {
	size := w.src.Size()
	err = w.s.do(ctx, w.onKey(size), func(ctx context.Context, a attempt) error {
		done, err = w.s.r.Put(ctx, PutRequest{
			Key: w.s.full(w.key), Body: a.w.body(w.src, 0, size), Size: size, Cond: w.o.If, Meta: w.meta,
		})
		return err
	})
	return done, err
}

// multipart sends the source in parts. A commit that met another operation in flight has used up its upload, and so has
// one whose upload somebody aborted: the whole is sent again, a bounded number of times ("CompleteMultipartUpload", Amazon S3
// API Reference, on 409; "Put Block List" of Azure, whose blocks another writer's commit discards).
func (w *write) multipart(ctx context.Context) (Written, error) {
	most := min(w.s.o.Restarts, w.s.o.Policy.Attempts-1)
	doubt := false // a commit before may have happened, or may yet
	for restarts := 0; ; restarts++ {
		done, err := w.upload(ctx)
		if err != nil && doubt {
			err = inDoubt(err)
		}
		again := blob.OutcomeOf(err) == blob.NotApplied || retry.Mutation(w.o.If, w.o.AtMostOnce) == retry.AtLeastOnce
		if !errors.Is(err, errSpent) || !again || restarts >= most || ctx.Err() != nil {
			return done, err
		}
		doubt = doubt || unknown(err)
	}
}

// upload is one try. INVARIANT: Commit is reached only after every byte of the source has been
// accepted as part of a part, and an upload that did not reach it is aborted, after its last part has ended.
func (w *write) upload(ctx context.Context) (Written, error) {
	up, err := w.begin(ctx)
	if err != nil {
		return Written{}, err
	}
	w.s.clean.begun(up)
	parts, err := w.parts(ctx, up)
	if err == nil {
		err = barrier(parts, w.src.Size())
	}
	if err != nil {
		w.s.clean.abort(ctx, up)
		return Written{}, notApplied(err)
	}
	done, err := w.commit(ctx, up, parts)
	switch {
	case err == nil:
		w.s.clean.ended(up)
	case blob.OutcomeOf(err) == blob.NotApplied:
		w.s.clean.abort(ctx, up)
	default:
		w.s.clean.doubt(up) // no abort while the commit may still land
	}
	return done, err
}

// begin may be repeated after a lost reply: the upload nobody knows holds no bytes, and nothing is visible of it.
func (w *write) begin(ctx context.Context) (up Upload, err error) {
	err = w.s.do(ctx, call{op: blob.OpSet, key: w.key, effect: retry.None}, func(ctx context.Context, _ attempt) error {
		up, err = w.s.r.Begin(ctx, BeginRequest{Key: w.s.full(w.key), Size: w.src.Size(), Cond: w.o.If, Meta: w.meta})
		if unknown(err) {
			w.s.o.Logger.Warn("an upload may have begun whose id was lost: only a sweep finds it", "key", w.key, "error", err)
		}
		return err
	})
	return up, notApplied(err)
}

// parts sends all parts, Concurrency at a time, and returns when none is in flight any more.
func (w *write) parts(outer context.Context, up Upload) ([]Part, error) {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	total := w.src.Size()
	size := w.s.traits.partSize(total, w.s.o.PartSize)
	parts := make([]Part, max(1, ceilDiv(total, size)))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range w.s.inFlight(len(parts)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(parts) {
					return
				}
				off := int64(i) * size
				p, err := w.part(ctx, up, PartRequest{Number: i + 1, Off: off, Size: min(size, total-off), Total: total})
				if err != nil {
					cancel(err) // the first cause wins
					return
				}
				parts[i] = p
			}
		})
	}
	workers.Wait()
	return parts, cause(outer, ctx)
}

func (w *write) part(ctx context.Context, up Upload, req PartRequest) (p Part, err error) {
	err = w.s.do(ctx, call{op: blob.OpSet, key: w.key, bytes: req.Size, effect: retry.None}, func(ctx context.Context, a attempt) error {
		req.Body = a.w.body(w.src, req.Off, req.Size)
		p, err = w.s.r.Part(ctx, up, req)
		return spent(a, err, blob.ErrNotFound)
	})
	p.Number, p.Size = req.Number, req.Size
	return p, err
}

// barrier checks, before the commit, that the parts are all there and hold all bytes.
func barrier(parts []Part, size int64) error {
	sum := int64(0)
	for i, p := range parts {
		if p.Number != i+1 || p.Tag == "" {
			return badReply(fmt.Errorf("%w: part %d of %d was not accepted", blob.ErrCorrupt, i+1, len(parts)))
		}
		sum += p.Size
	}
	if sum != size {
		return badReply(fmt.Errorf("%w: the parts hold %d bytes, the source %d", blob.ErrCorrupt, sum, size))
	}
	return nil
}

func (w *write) commit(ctx context.Context, up Upload, parts []Part) (done Written, err error) {
	err = w.s.do(ctx, w.onKey(0), func(ctx context.Context, a attempt) error {
		done, err = w.s.r.Commit(ctx, up, CommitRequest{Parts: parts, Size: w.src.Size(), Cond: w.o.If, Meta: w.meta})
		return spent(a, err, blob.ErrNotFound, blob.ErrConflict)
	})
	return done, err
}

// errSpent says that no further attempt with the same upload can succeed, but one with a new upload may.
var errSpent = errors.New("the upload is used up")

// spent ends the attempts of a request if its error is of one of kinds, which tell that the upload is used up. That counts as a
// conflict.
func spent(a attempt, err error, kinds ...error) error {
	e, ok := err.(*blob.Error) //nolint:errorlint // Requests return it unwrapped
	if !ok || !slices.Contains(kinds, e.Kind) {
		return err
	}
	a.Final()
	c := *e
	c.Kind, c.Err = blob.ErrConflict, errSpent
	if e.Err != nil {
		c.Err = fmt.Errorf("%w: %w", errSpent, e.Err)
	}
	return &c
}

// notApplied marks an error of a request that cannot make the object visible.
func notApplied(err error) error { return withOutcome(err, blob.NotApplied) }

// inDoubt marks the error of an operation of which an earlier request may have had, or has had, an effect.
func inDoubt(err error) error { return withOutcome(err, blob.Unknown) }

func withOutcome(err error, o blob.Outcome) error {
	if err == nil {
		return nil
	}
	e, ok := err.(*blob.Error) //nolint:errorlint // only the outermost carries the outcome
	if !ok {
		e = &blob.Error{Err: err}
		if !isContext(err) {
			e.Kind = blob.KindOf(err)
		}
	}
	c := *e
	c.Outcome = o
	return &c
}
