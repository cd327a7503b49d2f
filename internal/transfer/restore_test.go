package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

func keeping(p personality) personality {
	p.traits.Restore = true
	return p
}

// kept makes versions: d3 is a deleted one of second 3, m4 a marker, v2 a version, l5 the current one.
func kept(names ...string) (vs []KeptVersion) {
	for _, name := range names {
		var at int64
		_, _ = fmt.Sscan(name[1:2], &at)
		vs = append(vs, KeptVersion{
			Key: "k", ID: name, ModTime: time.Unix(at, 0),
			Marker: name[0] == 'm', Deleted: name[0] == 'd', Latest: name[0] == 'l',
		})
	}
	return vs
}

// pages is a service's script of pages; the token of one is the index of the next.
func versionPages(pages ...[]KeptVersion) func(string) VersionPage {
	return func(token string) VersionPage {
		i := 0
		_, _ = fmt.Sscan(token, &i)
		p := VersionPage{Versions: pages[i]}
		if i+1 < len(pages) {
			p.Token = fmt.Sprint(i + 1)
		}
		return p
	}
}

// Where no marks are, the newest deleted version is made current: the latest, whatever the order of pages, of equal ones the first of its
// page and that of the later page.
func TestRestoreOfTheNewestDeletedVersion(t *testing.T) {
	for _, c := range []struct {
		pages [][]KeptVersion
		want  string
	}{
		{[][]KeptVersion{kept("d3", "d2", "d1")}, "d3"},
		{[][]KeptVersion{kept("d1"), kept("d2"), kept("d3")}, "d3"},
		{[][]KeptVersion{kept("d3", "d2"), kept("d1")}, "d3"},
		{[][]KeptVersion{kept("d2"), kept("d3"), kept("d1")}, "d3"},
		{[][]KeptVersion{nil, kept("d1"), nil}, "d1"},
		{[][]KeptVersion{kept("d3b", "d3a")}, "d3b"},
		{[][]KeptVersion{kept("d3b", "d3a"), kept("d3d", "d3c")}, "d3d"},
	} {
		s := serve(t, keeping(gcsLike()))
		s.versions = versionPages(c.pages...)
		st := open(t, s)
		for range 2 { // idempotent
			info, err := st.Restore(t.Context(), "k")
			if err != nil || info.Size != int64(len(c.want)) {
				t.Fatal(info, err)
			}
			wantBytes(t, s.object().data, []byte(c.want))
		}
		if s.requests("undelete") != 1 || s.requests("versions") != len(c.pages) || s.requests("head") != 3 {
			t.Errorf("%q", s.takeLog())
		}
	}
}

// A key that somebody makes exist meanwhile is restored: an undelete that is refused for it, and a list that shows it, lead to another look.
func TestRestoreMeetsOthers(t *testing.T) {
	for _, kind := range []error{blob.ErrExists, blob.ErrPrecondition} {
		s := serve(t, keeping(gcsLike()))
		s.versions = versionPages(kept("d1"))
		s.undelete = func(KeptVersion) error {
			s.store("k", []byte("theirs"), nil, Meta{})
			return refusal(kind)
		}
		if info, err := open(t, s).Restore(t.Context(), "k"); err != nil || info.Size != 6 {
			t.Error(kind, info, err)
		}
	}
	s := serve(t, keeping(gcsLike()))
	s.versions = func(string) VersionPage {
		s.put("k", []byte("theirs"))
		return VersionPage{Versions: kept("l5", "d1")}
	}
	if info, err := open(t, s).Restore(t.Context(), "k"); err != nil || info.Size != 6 || s.requests("undelete") != 0 {
		t.Error(info, err, s.takeLog())
	}
}

// Restore ends, whatever is said of the key.
func TestRestoreEnds(t *testing.T) {
	refused := func(kind error) func(KeptVersion) error {
		return func(KeptVersion) error {
			if kind == nil {
				return nil
			}
			return refusal(kind)
		}
	}
	for what, c := range map[string]struct {
		versions func(string) VersionPage
		undelete func(KeptVersion) error
		kind     error
		outcome  blob.Outcome
		most     int // requests
	}{
		"nothing is kept":           {versionPages(nil), nil, blob.ErrNotFound, blob.NotApplied, 2},
		"it exists and does not":    {versionPages(kept("d1")), refused(blob.ErrExists), blob.ErrConflict, blob.NotApplied, 9},
		"it is listed and not read": {versionPages(kept("l1")), nil, blob.ErrConflict, blob.NotApplied, 6},
		"undeletes without effect":  {versionPages(kept("d1")), refused(nil), blob.ErrConflict, blob.Unknown, 12},
		"marks that stay":           {versionPages(kept("m2", "v1")), refused(nil), blob.ErrConflict, blob.Unknown, 12},
		"marks that are not there":  {versionPages(kept("m2", "v1")), refused(blob.ErrNotFound), blob.ErrConflict, blob.Unknown, 12},
		"refused":                   {versionPages(kept("d1")), refused(blob.ErrPermission), blob.ErrPermission, blob.NotApplied, 3},
		"no reply":                  {versionPages(kept("d1")), func(KeptVersion) error { return lost() }, blob.ErrUnavailable, blob.Unknown, 5},
		"pages in a circle": {func(token string) VersionPage {
			return VersionPage{Versions: kept("d1"), Token: map[string]string{"": "a", "a": "b", "b": "c", "c": "b"}[token]}
		}, nil, blob.ErrCorrupt, blob.NotApplied, 12},
	} {
		s := serve(t, keeping(gcsLike()))
		s.versions, s.undelete = c.versions, c.undelete
		_, err := open(t, s).Restore(t.Context(), "k")
		wantKind(t, err, c.kind)
		wantOutcome(t, err, c.outcome)
		if n := len(s.takeLog()); n > c.most {
			t.Errorf("%s: %d requests, want at most %d", what, n, c.most)
		}
	}
}

// An undelete whose reply was lost, and that then meets its own work, has worked; if the key is gone again, nobody knows what it did.
func TestRestoreAfterALostReply(t *testing.T) {
	for _, stays := range []bool{true, false} {
		s := serve(t, keeping(gcsLike()))
		s.versions = versionPages(kept("d1"))
		s.undelete = func(v KeptVersion) error {
			if s.mu.count["undelete"] == 1 {
				if stays {
					s.store("k", []byte(v.ID), nil, Meta{})
				}
				return lost()
			}
			return refusal(blob.ErrPrecondition)
		}
		_, err := open(t, s).Restore(t.Context(), "k")
		if stays && err != nil {
			t.Error(err)
		} else if !stays {
			wantKind(t, err, blob.ErrConflict)
			wantOutcome(t, err, blob.Unknown)
		}
	}
}

// What fails after a delete has been taken back fails half-way.
func TestRestoreThatFailsHalfWay(t *testing.T) {
	for _, done := range []bool{true, false} {
		s := serve(t, keeping(gcsLike()))
		s.versions = versionPages(kept("d1"))
		s.before = func(_ context.Context, r request) error {
			if r.verb == "head" && (r.nth == 2 || !done) {
				return refusal(blob.ErrPermission)
			}
			return nil
		}
		_, err := open(t, s).Restore(t.Context(), "k")
		wantKind(t, err, blob.ErrPermission)
		wantOutcome(t, err, map[bool]blob.Outcome{true: blob.Unknown, false: blob.NotApplied}[done])
	}
}

// Where deletes are marked, the marks over the newest version are removed one by one, the newest first.
func TestRestoreRemovesMarks(t *testing.T) {
	s := serve(t, keeping(s3Like()))
	history := kept("m5", "m4", "v3", "m2", "v1")
	s.versions = func(token string) VersionPage {
		if token == "" {
			return VersionPage{Versions: history[:1], Token: "rest"}
		}
		return VersionPage{Versions: history[1:]}
	}
	var removed []string
	s.undelete = func(v KeptVersion) error {
		removed, history = append(removed, v.ID), history[1:]
		if !history[0].Marker {
			s.store("k", []byte(history[0].ID), nil, Meta{})
		}
		return nil
	}
	if _, err := open(t, s).Restore(t.Context(), "k"); err != nil || !slices.Equal(removed, []string{"m5", "m4"}) {
		t.Error(err, removed)
	}
	wantBytes(t, s.object().data, []byte("v3"))
}

// Marks over nothing are not removed, and a store that keeps nothing is ErrUnsupported for an absent key alone.
func TestNothingToRestore(t *testing.T) {
	s := serve(t, keeping(s3Like()))
	s.versions = versionPages(kept("m2"), kept("m1"))
	_, err := open(t, s).Restore(t.Context(), "k")
	wantKind(t, err, blob.ErrNotFound)
	wantOutcome(t, err, blob.NotApplied)
	for _, p := range personalities() {
		s := serve(t, p)
		st := open(t, s)
		_, err := st.Restore(t.Context(), "k")
		wantKind(t, err, blob.ErrUnsupported)
		s.put("k", nil)
		if _, err := st.Restore(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		wantLog(t, s, "head", "head")
	}
	s = serve(t, keeping(gcsLike()))
	s.before = func(_ context.Context, r request) error {
		if r.verb == "versions" {
			return refusal(blob.ErrPermission)
		}
		return nil
	}
	_, err = open(t, s).Restore(t.Context(), "k")
	if wantKind(t, err, blob.ErrPermission).Outcome != blob.NotApplied || errors.Is(err, blob.ErrNotFound) {
		t.Error(err)
	}
}
