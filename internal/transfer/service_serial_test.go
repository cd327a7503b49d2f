package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/wholeblob/wholeblob/blob"
)

// A resumable session, as Cloud Storage has it ("Resumable uploads"): it takes bytes only where it ends, may keep less than
// it was sent, also of a request that fails, and is committed by the byte that makes it complete, or by a question after that.

// commitLast is a Commit: the last chunk.
func (s *service) commitLast(ctx context.Context, up Upload, r CommitRequest) (done Written, err error) {
	u, err := s.enterUpload(up)
	if err != nil {
		return done, err
	}
	defer s.leaveUpload(u)
	if p := r.Last; p.Off+p.Size != r.Size || p.Total != r.Size || p.Size == 0 && r.Size > 0 || r.Parts != nil {
		s.t.Errorf("the last chunk of %d bytes is %+v", r.Size, p)
	}
	_, err = s.chunk(ctx, request{verb: "commit", key: up.Key, what: r.Cond.String()}, u, r.Last, func() error {
		u.last = &r
		switch {
		case int64(len(u.data)) < r.Size:
			return &blob.Error{Kind: blob.ErrUnavailable, Outcome: blob.NotApplied}
		case s.slow:
			return lost()
		case u.version == "":
			u.version, err = s.accept(up.Key, u.data, nil, r.Cond, r.Sum, u.begin.Meta)
		}
		done.Version = u.version
		return err
	})
	return done, err
}

// chunk takes what comes of a chunk, or as much as the script lets it keep, and returns what the session holds.
func (s *service) chunk(ctx context.Context, req request, u *pending, p PartRequest, then func() error) (received int64, err error) {
	s.mu.Lock()
	req.nth = s.mu.count[req.verb] + 1 // for the script
	s.mu.Unlock()
	req.part, req.off, req.what = p.Number, p.Off, fmt.Sprintf("%d: %d+%d of %d %s", p.Number, p.Off, p.Size, p.Total, req.what)
	n := p.Size
	if s.cut != nil {
		n = min(n, s.cut(req))
	}
	data, failed := s.receiveSome(p.Body, p.Size, n)
	err = s.serve(ctx, req, func() error {
		if int64(len(u.data)) != p.Off && u.version == "" {
			s.t.Errorf("a chunk at byte %d of a session that holds %d", p.Off, len(u.data))
			return refusal(blob.ErrInvalidOption)
		}
		keep := len(data)
		if m := int(s.p.traits.PartMultiple); m > 0 && s.keep == nil && int64(len(u.data)+keep) < p.Total {
			keep -= keep % m
		}
		if s.keep != nil {
			keep = min(keep, s.keep(req, keep))
		}
		if u.version == "" {
			u.data = append(u.data, data[:keep]...)
		}
		received = int64(len(u.data))
		if failed != nil {
			return failed
		}
		return then()
	})
	if err == nil && s.received != nil {
		received = s.received(received)
	}
	return received, err
}

// receiveSome reads the first n bytes of a body of size. Its error is that of the store in front of the service.
func (s *service) receiveSome(b Body, size, n int64) ([]byte, error) {
	if n < size { // the connection is cut before the body has been handed over whole
		data, err := io.ReadAll(io.LimitReader(b(), n))
		if err == nil {
			err = &blob.Error{Kind: blob.ErrUnavailable, Outcome: blob.NotApplied}
		}
		return data, err
	}
	data, err := io.ReadAll(b())
	var src *blob.SourceError
	switch {
	case errors.As(err, &src):
		return data, &blob.Error{Kind: blob.KindOf(src), Outcome: blob.NotApplied, Err: src}
	case int64(len(data)) != size:
		s.t.Errorf("a body of %d bytes, announced %d", len(data), size)
	}
	return data, err
}
