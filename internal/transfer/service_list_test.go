package transfer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

// List implements Requests. As on the real services, common prefixes come apart from the keys of their page, and a page
// is cut where the merged order is.
func (s *service) List(ctx context.Context, r ListRequest) (page ListPage, err error) {
	req := request{verb: "list", key: r.Prefix, what: strings.TrimSpace(fmt.Sprintf("%s after %q token %q", r.Prefix, r.StartAfter, r.Token))}
	if r.StartAfter != "" && !s.p.traits.StartAfter {
		s.t.Error("this service knows no StartAfter")
	}
	err = s.serve(ctx, req, func() error {
		if s.list == nil {
			page = s.page(r)
		}
		return nil
	})
	if err == nil && s.list != nil {
		return s.list(s.requests("list"), r)
	}
	return page, err
}

func (s *service) page(r ListRequest) ListPage {
	var all []blob.Info
	for _, key := range slices.Sorted(maps.Keys(s.mu.objects)) {
		rest, ok := strings.CutPrefix(key, r.Prefix)
		if !ok || key <= r.StartAfter {
			continue
		}
		o := s.mu.objects[key]
		info := blob.Info{Key: key, Size: int64(len(o.data)), Version: o.version, ModTime: o.mod}
		if before, _, found := strings.Cut(rest, r.Delimiter); r.Delimiter != "" && found {
			info = blob.Info{Key: r.Prefix + before + r.Delimiter, IsPrefix: true}
			if len(all) > 0 && all[len(all)-1].Key == info.Key {
				continue
			}
		}
		all = append(all, info)
	}
	from, _ := strconv.Atoi(r.Token)
	to := min(len(all), from+s.pageSize)
	page := ListPage{}
	for _, prefixes := range []bool{false, true} {
		for _, info := range all[from:to] {
			if info.IsPrefix == prefixes {
				page.Infos = append(page.Infos, info)
			}
		}
	}
	if to < len(all) {
		page.More, page.Token = true, strconv.Itoa(to)
	}
	return page
}

// Delete implements Requests.
func (s *service) Delete(ctx context.Context, key string, c blob.Condition) error {
	return s.serve(ctx, request{verb: "delete", key: key, what: strings.TrimSpace(key + " " + c.String())}, func() error {
		v, pinned := c.Version()
		switch o := s.mu.objects[key]; {
		case o == nil:
			return s.p.deleteAbsent
		case pinned && o.version != v:
			return refusal(blob.ErrPrecondition)
		}
		delete(s.mu.objects, key)
		return nil
	})
}

// DeleteBatch implements Requests.
func (s *service) DeleteBatch(ctx context.Context, keys []string) (errs []error, err error) {
	if len(keys) > s.p.traits.BatchDelete {
		s.t.Errorf("a batch of %d keys", len(keys))
	}
	req := request{verb: "batch", what: strings.Join(keys, " ")}
	errs = make([]error, len(keys))
	err = s.serve(ctx, req, func() error {
		if s.batch == nil {
			for _, k := range keys {
				delete(s.mu.objects, k)
			}
		}
		return nil
	})
	if err == nil && s.batch != nil {
		return s.batch(s.requests("batch"), slices.Clone(keys))
	}
	return errs, err
}

// DeletedVersions implements Requests: the script's.
func (s *service) DeletedVersions(ctx context.Context, key, token string) (page VersionPage, err error) {
	err = s.serve(ctx, request{verb: "versions", key: key, what: strings.TrimSpace(key + " " + token)}, func() error { return nil })
	if err == nil && s.versions != nil {
		page = s.versions(token)
	}
	return page, err
}

// Undelete implements Requests: it makes an object of the name of the version.
func (s *service) Undelete(ctx context.Context, v KeptVersion) error {
	return s.serve(ctx, request{verb: "undelete", key: v.Key, what: v.ID}, func() error {
		if s.undelete != nil {
			return s.undelete(v)
		}
		s.store(v.Key, []byte(v.ID), nil, Meta{})
		return nil
	})
}
