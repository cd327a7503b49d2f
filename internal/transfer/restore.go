package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// Restore implements blob.Blob. On a service that marks deletes it removes the marks that lie over the newest version, which makes
// that one the current again, whatever was written and deleted before. On one without marks it makes the newest of the deleted
// versions current.
func (s *Store) Restore(ctx context.Context, key string) (blob.Info, error) {
	if err := blob.CheckName(blob.OpRestore, key); err != nil {
		return blob.Info{}, s.fail(blob.OpRestore, key, err)
	}
	if err := s.enter(ctx, blob.OpRestore, key); err != nil {
		return blob.Info{}, err
	}
	defer s.gate.Leave()
	h, err := s.restore(ctx, key)
	if err != nil {
		return blob.Info{}, s.fail(blob.OpRestore, key, err)
	}
	return s.info(key, h, h.Size), nil
}

// restoreTurns bounds how many marks Restore removes from a key, which others may be deleting at the same time.
const restoreTurns = 1000

// restore ends when the key exists. Each turn takes back one delete, the newest, and looks again: services list versions and
// marks apart, so that of those with the same time only the newest is known for certain. A Set or Delete by somebody else in
// between is met by the next turn, and so is an undelete that is refused because the key exists.
func (s *Store) restore(ctx context.Context, key string) (h Head, err error) {
	removed := false // a mark, or something was undeleted: what fails from here on fails half-way
	defer func() {
		if err != nil && removed {
			err = inDoubt(err)
		}
	}()
	idle := 0             // turns that found the key restored, and then it was not, or that took back what the turn before had
	var taken KeptVersion // in the turn before
	for turn := 0; turn < restoreTurns && idle <= s.o.Restarts; turn++ {
		h, err := s.head(ctx, blob.OpRestore, key)
		if err == nil || !errors.Is(err, blob.ErrNotFound) {
			return h, notApplied(err) // a Stat applies nothing
		}
		if !s.traits.Restore {
			return h, blob.Invalid(blob.OpRestore, key, fmt.Errorf("%w: the store keeps no deleted objects", blob.ErrUnsupported))
		}
		deleted, err := s.newestDelete(ctx, key)
		if errors.Is(err, errRestored) {
			idle++
			continue
		}
		if err != nil {
			return h, notApplied(err)
		}
		if removed && deleted.ID == taken.ID && deleted.ModTime.Equal(taken.ModTime) {
			idle++
		}
		err = s.undelete(ctx, key, deleted)
		if errors.Is(err, blob.ErrExists) || errors.Is(err, blob.ErrPrecondition) {
			removed = removed || unknown(err)
			idle++
			continue
		}
		if err != nil {
			return h, err
		}
		removed, taken = true, deleted
	}
	return Head{}, &blob.Error{Kind: blob.ErrConflict, Outcome: blob.NotApplied, Exhausted: true,
		Err: errors.New("the key is written and deleted by others all the time, or undeletes have no effect")}
}

// errRestored means that a key which was absent has a version again.
var errRestored = errors.New("the key has been restored or written meanwhile")

// newestDelete returns the newest mark of a delete of key, or on a service without marks the newest deleted version. It is ErrNotFound
// if the service keeps no version of key: removing marks would restore nothing.
func (s *Store) newestDelete(ctx context.Context, key string) (KeptVersion, error) {
	var mark, version *KeptVersion
	var moves circle
	for token := ""; ; {
		var page VersionPage
		err := s.do(ctx, call{op: blob.OpRestore, key: key, effect: retry.None}, func(ctx context.Context, _ attempt) (err error) {
			page, err = s.r.DeletedVersions(ctx, s.full(key), token)
			return err
		})
		if err != nil {
			return KeptVersion{}, err
		}
		inPage := newestDeleted(page.Versions)
		if inPage != nil && (version == nil || !inPage.ModTime.Before(version.ModTime)) {
			version = inPage
		}
		for i, v := range page.Versions {
			switch {
			case v.Deleted:
			case v.Marker && mark == nil:
				mark = &page.Versions[i]
			case !v.Marker && mark != nil:
				return *mark, nil
			case !v.Marker: // it is the newest itself, and was absent a moment ago: somebody has restored it
				return KeptVersion{}, errRestored
			}
		}
		if page.Token == "" {
			break
		}
		if err := moves.next(page.Token); err != nil {
			return KeptVersion{}, err
		}
		token = page.Token
	}
	if version == nil {
		return KeptVersion{}, &blob.Error{Kind: blob.ErrNotFound, Outcome: blob.NotApplied}
	}
	return *version, nil
}

// newestDeleted returns the deleted version with the latest time, the first of several, or nil.
func newestDeleted(versions []KeptVersion) (newest *KeptVersion) {
	for i, v := range versions {
		if v.Deleted && (newest == nil || v.ModTime.After(newest.ModTime)) {
			newest = &versions[i]
		}
	}
	return newest
}

// undelete takes back one delete. Removing a mark twice is the same as once, for it is named by its id, and a version is made current only
// where there is none.
func (s *Store) undelete(ctx context.Context, key string, v KeptVersion) error {
	err := s.do(ctx, call{op: blob.OpRestore, key: key, effect: retry.AtLeastOnce}, func(ctx context.Context, _ attempt) error {
		return s.r.Undelete(ctx, v)
	})
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	return err
}
