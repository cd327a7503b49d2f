package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

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
		done.Version, err = s.accept(r.Key, data, nil, r.Cond, r.Sum, r.Meta)
		return err
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
func (s *service) Part(ctx context.Context, up Upload, p PartRequest) (part Part, err error) {
	u, err := s.enterUpload(up)
	if err != nil {
		return part, err
	}
	defer s.leaveUpload(u)
	if s.p.traits.SerialParts {
		if end := p.Off + p.Size; p.Size%max(1, s.p.traits.PartMultiple) != 0 || p.Size == 0 || end >= p.Total {
			s.t.Errorf("chunk %+v is empty, not of a size that is allowed, or the last", p)
		}
		part.Received, err = s.chunk(ctx, request{verb: "part", key: up.Key}, u, p, func() error { return nil })
		return part, err
	}
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

func (s *service) enterUpload(up Upload) (*pending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.mu.uploads[up.ID]
	switch {
	case u == nil:
		s.t.Errorf("a part of an upload that is not open")
		return nil, refusal(blob.ErrNotFound)
	case u.inFlight > 0 && s.p.traits.SerialParts:
		s.t.Errorf("a chunk while another is in flight")
	}
	u.inFlight++
	return u, nil
}

func (s *service) leaveUpload(u *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.inFlight--
}

// Commit implements Requests.
func (s *service) Commit(ctx context.Context, up Upload, r CommitRequest) (done Written, err error) {
	if s.p.traits.SerialParts {
		return s.commitLast(ctx, up, r)
	}
	req := request{verb: "commit", key: up.Key, what: fmt.Sprintf("%d %v", len(r.Parts), r.Cond)}
	err = s.serve(ctx, req, func() error {
		u := s.mu.uploads[up.ID]
		if u == nil {
			return refusal(blob.ErrNotFound)
		}
		data, sizes := s.assemble(u, r.Parts)
		meta := u.begin.Meta
		if s.p.freeBegin {
			meta = r.Meta
		}
		done.Version, err = s.accept(up.Key, data, sizes, r.Cond, r.Sum, meta)
		if err == nil {
			delete(s.mu.uploads, up.ID)
		}
		return err
	})
	return done, err
}

// accept makes an object of what a write brings. The lock is held.
func (s *service) accept(key string, data []byte, sizes []int, cond blob.Condition, sum Sum, meta Meta) (string, error) {
	if sum.Has != s.p.traits.Sums {
		s.t.Errorf("a write with the sum %+v", sum)
	}
	if err := s.admit(key, cond); err != nil {
		return "", err
	}
	if sum.Has && sum.CRC32C != crc32.Checksum(data, castagnoli) {
		return "", refusal(blob.ErrCorrupt)
	}
	return s.store(key, data, sizes, meta), nil
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
func (s *service) Progress(ctx context.Context, up Upload, total int64) (p Progress, err error) {
	err = s.serve(ctx, request{verb: "progress", key: up.Key, what: fmt.Sprint("of ", total)}, func() error {
		u := s.mu.uploads[up.ID]
		if u == nil {
			return refusal(blob.ErrNotFound)
		}
		p.Received = int64(len(u.data))
		if p.Received == total && u.last != nil && u.version == "" && !s.slow {
			u.version, err = s.accept(up.Key, u.data, nil, u.begin.Cond, u.last.Sum, u.begin.Meta)
		}
		p.Done, p.Written.Version = u.version != "", u.version
		return err
	})
	if err == nil && s.progress != nil {
		s.progress(&p)
	}
	return p, err
}

// Abort implements Requests.
func (s *service) Abort(ctx context.Context, up Upload) error {
	if !s.p.traits.Abort {
		s.t.Error("this service knows no abort")
	}
	return s.serve(ctx, request{verb: "abort", key: up.Key, what: up.ID}, func() error {
		u := s.mu.uploads[up.ID]
		if u == nil {
			return refusal(blob.ErrNotFound)
		}
		if u.inFlight > 0 {
			s.t.Errorf("abort with %d parts in flight", u.inFlight)
		}
		if u.version != "" {
			s.t.Error("abort of an upload that has been committed")
		}
		delete(s.mu.uploads, up.ID)
		return nil
	})
}

func (s *service) openUploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, u := range s.mu.uploads {
		if u.version == "" {
			n++
		}
	}
	return n
}

// Uploads implements Requests: the script's, or one page of what is open.
func (s *service) Uploads(ctx context.Context, prefix, token string) (page UploadPage, err error) {
	if !s.p.traits.Uploads {
		s.t.Error("this service lists no uploads")
	}
	err = s.serve(ctx, request{verb: "uploads", what: strings.TrimSpace(prefix + " " + token)}, func() error {
		for _, id := range slices.Sorted(maps.Keys(s.mu.uploads)) {
			page.Uploads = append(page.Uploads, Upload{Key: s.mu.uploads[id].key, ID: id, Started: time.Unix(1, 0)})
		}
		return nil
	})
	if err == nil && s.uploads != nil {
		page = s.uploads(token)
	}
	return page, err
}
