package transfer

import (
	"context"
	"errors"
	"fmt"

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
	default:
		err = s.checkPart(src.Size())
	}
	if err != nil {
		return blob.Invalid(blob.OpSet, key, err)
	}
	return nil
}

// checkPart refuses an object that would go in parts larger than the service takes: Options.PartSize is too large, or the object is for
// the number of parts that there may be.
func (s *Store) checkPart(size int64) error {
	if size < s.o.Threshold || s.traits.MaxPart <= 0 {
		return nil
	}
	if part := min(size, s.traits.partSize(size, s.o.PartSize)); part > s.traits.MaxPart {
		return fmt.Errorf("%w: %d bytes in parts of %d, the store takes parts of at most %d", blob.ErrTooLarge, size, part, s.traits.MaxPart)
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
	sum, err := w.wholeSum(ctx)
	if err != nil {
		return done, notApplied(err)
	}
	err = w.s.do(ctx, w.onKey(size), func(ctx context.Context, a attempt) error {
		done, err = w.s.r.Put(ctx, PutRequest{
			Key: w.s.full(w.key), Body: a.w.body(w.src, 0, size), Size: size, Cond: w.o.If, Sum: sum, Meta: w.meta,
		})
		return err
	})
	return done, err
}
