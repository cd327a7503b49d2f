package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/wholeblob/wholeblob/blob"
)

// receive reads the body of a request, as far as its source goes.
func (s *service) receive(b Body, size int64) ([]byte, error) {
	data, err := io.ReadAll(b())
	var src *blob.SourceError
	switch {
	case errors.As(err, &src):
		return nil, &blob.Error{Kind: blob.KindOf(src), Outcome: blob.NotApplied, Err: src}
	case err != nil:
		return nil, lost()
	case int64(len(data)) != size:
		s.t.Errorf("a body of %d bytes, announced %d", len(data), size)
	}
	return data, nil
}

// Put implements Requests.
func (s *service) Put(ctx context.Context, r PutRequest) (done Written, err error) {
	data, err := s.receive(r.Body, r.Size)
	if err != nil {
		s.arrive(&request{verb: "put", key: r.Key, what: "of a failing source"})
		s.leave()
		return done, err
	}
	req := request{verb: "put", key: r.Key, what: fmt.Sprintf("%d %v", r.Size, r.Cond)}
	err = s.serve(ctx, req, func() error {
		if err := s.admit(r.Key, r.Cond); err != nil {
			return err
		}
		done.Version = s.store(r.Key, data, nil, r.Meta)
		return nil
	})
	return done, err
}

// Begin implements Requests.
func (s *service) Begin(ctx context.Context, r BeginRequest) (up Upload, err error) {
	effect := func() error {
		if s.p.conditionAtBegin {
			if err := s.admit(r.Key, r.Cond); err != nil {
				return err
			}
		}
		s.mu.serial++
		up = Upload{Key: r.Key, ID: fmt.Sprintf("u%d", s.mu.serial)}
		s.mu.uploads[up.ID] = &pending{key: r.Key, begin: r, parts: map[int][]byte{}}
		return nil
	}
	if s.p.freeBegin {
		s.mu.Lock()
		defer s.mu.Unlock()
		return up, effect()
	}
	err = s.serve(ctx, request{verb: "begin", key: r.Key, what: fmt.Sprint(r.Size)}, effect)
	return up, err
}

// Part implements Requests.
func (s *service) Part(ctx context.Context, up Upload, p PartRequest) (Part, error) {
	s.mu.Lock()
	u := s.mu.uploads[up.ID]
	if u == nil {
		s.mu.Unlock()
		s.t.Errorf("part %d of an upload that is not open", p.Number)
		return Part{}, refusal(blob.ErrNotFound)
	}
	if s.p.traits.SerialParts && (u.inFlight > 0 || p.Number > len(u.parts)+1) {
		s.t.Errorf("part %d while %d parts are there and %d in flight", p.Number, len(u.parts), u.inFlight)
	}
	u.inFlight++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		u.inFlight--
		s.mu.Unlock()
	}()
	data, err := s.receive(p.Body, p.Size)
	req := request{verb: "part", key: up.Key, part: p.Number, what: fmt.Sprintf("%d: %d+%d of %d", p.Number, p.Off, p.Size, p.Total)}
	err = s.serve(ctx, req, func() error {
		if err == nil {
			u.parts[p.Number] = data
		}
		return err
	})
	if err != nil {
		return Part{}, err
	}
	if s.tag != nil {
		return Part{Tag: s.tag(p)}, nil
	}
	return Part{Tag: fmt.Sprintf("tag%d", p.Number)}, nil
}

// Commit implements Requests.
func (s *service) Commit(ctx context.Context, up Upload, r CommitRequest) (done Written, err error) {
	req := request{verb: "commit", key: up.Key, what: fmt.Sprintf("%d %v", len(r.Parts), r.Cond)}
	err = s.serve(ctx, req, func() error {
		u := s.mu.uploads[up.ID]
		if u == nil {
			return refusal(blob.ErrNotFound)
		}
		if !s.p.conditionAtBegin {
			if err := s.admit(up.Key, r.Cond); err != nil {
				return err
			}
		}
		data, sizes := s.assemble(u, r.Parts)
		meta := u.begin.Meta
		if s.p.freeBegin {
			meta = r.Meta
		}
		done.Version = s.store(up.Key, data, sizes, meta)
		delete(s.mu.uploads, up.ID)
		return nil
	})
	return done, err
}

func (s *service) assemble(u *pending, parts []Part) (data []byte, sizes []int) {
	var all [][]byte
	for i, p := range parts {
		b, ok := u.parts[p.Number]
		if !ok || p.Number != i+1 || p.Tag != fmt.Sprintf("tag%d", p.Number) {
			s.t.Errorf("part %d of the commit is %+v", i+1, p)
		}
		last := i == len(parts)-1
		if m := s.p.traits.PartMultiple; !last && (len(b) != len(u.parts[1]) || m > 0 && int64(len(b))%m != 0) {
			s.t.Errorf("part %d has %d bytes, the first %d", i+1, len(b), len(u.parts[1]))
		}
		all, sizes = append(all, b), append(sizes, len(b))
	}
	return bytes.Join(all, nil), sizes
}

// Progress implements Requests.
func (s *service) Progress(context.Context, Upload, int64) (Progress, error) {
	s.t.Error("nothing asks for the progress of an upload yet")
	return Progress{}, refusal(blob.ErrUnsupported)
}

// Abort implements Requests.
func (s *service) Abort(ctx context.Context, up Upload) error {
	return s.serve(ctx, request{verb: "abort", key: up.Key, what: up.ID}, func() error {
		u := s.mu.uploads[up.ID]
		if u == nil {
			return refusal(blob.ErrNotFound)
		}
		if u.inFlight > 0 {
			s.t.Errorf("abort with %d parts in flight", u.inFlight)
		}
		delete(s.mu.uploads, up.ID)
		return nil
	})
}

func (s *service) openUploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.uploads)
}

// Uploads implements Requests.
func (s *service) Uploads(context.Context, string, string) (UploadPage, error) {
	return UploadPage{}, refusal(blob.ErrUnsupported)
}
