package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/wholeblob/wholeblob/blob"
)

func describe(r ReadRequest) string {
	what := "all"
	switch {
	case r.Part > 0:
		what = fmt.Sprintf("part %d", r.Part)
	case r.Suffix > 0:
		what = fmt.Sprintf("last %d", r.Suffix)
	case r.N > 0:
		what = fmt.Sprintf("%d+%d", r.Off, r.N)
	}
	if r.Version != "" {
		what += " of " + r.Version
	}
	return what
}

// Read implements Requests.
func (s *service) Read(ctx context.Context, r ReadRequest) (*ReadReply, error) {
	req := request{verb: "read", key: r.Key, read: r, what: describe(r)}
	s.arrive(&req)
	var rep *ReadReply
	err := s.run(ctx, req, func() (err error) {
		rep, err = s.read(r)
		return err
	})
	if err != nil {
		s.leave()
		return nil, err
	}
	if s.edit != nil {
		s.edit(r, rep)
	}
	s.mu.Lock()
	s.mu.bodies++
	s.mu.Unlock()
	rep.Body = &body{s: s, ctx: ctx, r: rep.Body, stuck: s.stuck != nil && s.stuck(r)}
	return rep, nil
}

func (s *service) read(r ReadRequest) (*ReadReply, error) {
	o := s.mu.objects[r.Key]
	switch {
	case o == nil:
		return nil, refusal(blob.ErrNotFound)
	case r.Version != "" && r.Version != o.version && !s.ignoreVersion:
		return nil, refusal(blob.ErrPrecondition)
	case r.Part > 0 && !s.p.traits.PartReads, r.Suffix > 0 && !s.p.traits.SuffixReads:
		s.t.Errorf("this service has no such read: %+v", r)
	}
	size := int64(len(o.data))
	lo, hi, whole := int64(0), size, true
	rep := &ReadReply{Total: size, Head: s.headOf(o)}
	rep.Size = -1
	switch {
	case r.Part > 0:
		lo, hi = o.part(r.Part)
		rep.Parts, whole = len(o.parts), size == 0
		if lo < 0 {
			return nil, refusal(blob.ErrInvalidRange)
		}
	case r.Suffix > 0:
		lo, whole = max(0, size-r.Suffix), false
	case r.N > 0:
		lo, hi, whole = r.Off, min(size, r.Off+r.N), false
	}
	if !whole && lo >= hi {
		return nil, refusal(blob.ErrInvalidRange)
	}
	rep.Length = hi - lo
	if !whole {
		rep.Partial, rep.HasRange, rep.Off, rep.End = true, true, lo, hi
	}
	rep.Body = io.NopCloser(bytes.NewReader(o.data[lo:hi]))
	return rep, nil
}

// part returns where a part lies; lo is -1 if there is none.
func (o *stored) part(n int) (lo, hi int64) {
	if n == 1 && o.parts == nil {
		return 0, int64(len(o.data))
	}
	if n > len(o.parts) {
		return -1, -1
	}
	for _, size := range o.parts[:n] {
		lo, hi = hi, hi+int64(size)
	}
	return lo, hi
}

func (s *service) headOf(o *stored) Head {
	h := Head{
		Size: int64(len(o.data)), Version: o.version, ModTime: o.mod,
		ContentType: o.meta.ContentType, Metadata: o.meta.Metadata,
	}
	if s.noVersions {
		h.Version = ""
	}
	if s.p.traits.Sums {
		h.CRC32C, h.HasCRC32C = crc32.Checksum(o.data, castagnoli), true
	}
	return h
}

// Head implements Requests.
func (s *service) Head(ctx context.Context, key string) (h Head, err error) {
	err = s.serve(ctx, request{verb: "head", key: key}, func() error {
		o := s.mu.objects[key]
		if o == nil {
			return refusal(blob.ErrNotFound)
		}
		h = s.headOf(o)
		if s.head != nil {
			s.head(&h)
		}
		return nil
	})
	return h, err
}

// body counts itself among the open ones, ends with its request's context, and must not be used after Close.
type body struct {
	s      *service
	ctx    context.Context
	r      io.ReadCloser
	stuck  bool // brings a few bytes, tells the test, and then nothing
	begun  bool
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.closed {
		b.s.t.Error("a body was read after its Close")
	}
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.stuck && b.begun {
		b.s.reached <- struct{}{}
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	if b.stuck {
		b.begun = true
		p = p[:min(len(p), 3)]
	}
	return b.r.Read(p)
}

func (b *body) Close() error {
	if !b.closed {
		b.closed = true
		b.s.mu.Lock()
		b.s.mu.bodies--
		b.s.mu.Unlock()
		b.s.leave()
	}
	return nil
}

// replace puts another reader in the place of a reply's body.
func (r *ReadReply) replace(f func(io.Reader) io.Reader) { r.Body = io.NopCloser(f(r.Body)) }

// cutAfter ends a body with an error after n bytes.
func cutAfter(n int64) func(io.Reader) io.Reader {
	return func(r io.Reader) io.Reader {
		return io.MultiReader(io.LimitReader(r, n), failingReader{errors.New("connection reset")})
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }
