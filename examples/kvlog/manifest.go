package kvlog

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

const (
	manifestKey   = "manifest"
	segmentPrefix = "segments/"
	// maxSegment keeps a segment far below the most that a Get returns, or what is acknowledged could never be read back.
	maxSegment = 8 << 20
)

// manifest is the state of the store.
type manifest struct {
	Epoch    uint64    `json:"epoch"` // of the writer that wrote it
	Write    string    `json:"write"` // random: no two manifests are equal, so a writer knows its own
	Segments []segment `json:"segments"`
}

// largest returns the bytes of the largest segment. What is larger than a segment can be is left to the Get of it, which knows the truth.
func (m manifest) largest() (n int64) {
	for _, s := range m.Segments {
		n = max(n, min(s.Size, maxSegment))
	}
	return n
}

// segment is what the manifest knows of a segment: enough to notice any damage.
type segment struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	CRC32C uint32 `json:"crc32c"`
}

func (s segment) want() blob.Want {
	return blob.Want{Size: s.Size, HasSize: true, CRC32C: s.CRC32C, HasCRC32C: true}
}

// load reads the manifest as it is now. A store without one is new, unless there are segments: those are written after a manifest only, so it has
// been lost, and to begin anew would make garbage of them.
func (db *DB) load(ctx context.Context) error {
	obj, err := db.store.Get(ctx, manifestKey, &blob.GetOptions{SkipCache: true})
	if errors.Is(err, blob.ErrNotFound) {
		for info, listErr := range db.store.List(ctx, segmentPrefix, nil) {
			if listErr != nil {
				return fmt.Errorf("kvlog: looking for segments: %w", listErr)
			}
			obj, err = db.store.Get(ctx, manifestKey, &blob.GetOptions{SkipCache: true}) // unless another writer has begun meanwhile
			if errors.Is(err, blob.ErrNotFound) {
				return fmt.Errorf("kvlog: there is no manifest, but segment %s: %w", info.Key, err)
			}
			break
		}
	}
	switch {
	case errors.Is(err, blob.ErrNotFound):
		db.manifest, db.version = manifest{}, ""
		return nil
	case err != nil:
		return fmt.Errorf("kvlog: reading the manifest: %w", err)
	}
	var m manifest
	if err := json.Unmarshal(obj.Data, &m); err != nil {
		return fmt.Errorf("kvlog: the manifest is damaged: %w", err)
	}
	if m.Epoch == 0 || m.Write == "" {
		return errors.New("kvlog: the object manifest is another program's") // ours to read, but not to replace
	}
	db.manifest, db.version = m, obj.Version
	return nil
}

// tries is how often a manifest whose fate is unknown is looked for, and written again.
const tries = 5

// replace makes next the manifest, if the one that is stored is still the one this writer knows.
//
// The store may report that it does not know whether the write has happened, or that it may happen yet. Writing the same bytes again, on the same
// condition, is harmless: at most one of the writes finds the old version. So it is repeated until the manifest that is stored is either ours or
// somebody else's.
func (db *DB) replace(ctx context.Context, next manifest) error {
	next.Write = rand.Text()
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	cond := blob.IfAbsent()
	if db.version != "" {
		cond = blob.IfVersion(db.version)
	}
	var first error
	for range tries {
		info, err := db.store.Set(ctx, manifestKey, blob.Bytes(data), &blob.SetOptions{If: cond, ContentType: "application/json"})
		switch {
		case err == nil:
			db.manifest, db.version = next, info.Version
			return nil
		case first == nil && blob.OutcomeOf(err) == blob.NotApplied && refused(err):
			db.broken = ErrFenced
			return db.broken
		case first == nil && blob.OutcomeOf(err) == blob.NotApplied:
			return fmt.Errorf("kvlog: writing the manifest: %w", err)
		}
		if first == nil {
			first = err
		}
		obj, err := db.store.Get(ctx, manifestKey, &blob.GetOptions{SkipCache: true})
		switch {
		case err == nil && bytes.Equal(obj.Data, data):
			db.manifest, db.version = next, obj.Version
			return nil
		case err == nil && obj.Version != db.version:
			// Somebody else's, but it may have come after ours: then they know of the commit, and this writer is as fenced as without it.
			db.broken = fmt.Errorf("%w: %w", ErrFenced, ErrInDoubt)
			return db.broken
		}
	}
	db.broken = fmt.Errorf("%w: %w", ErrInDoubt, first)
	return db.broken
}

// refused reports whether a write failed because the manifest is another one by now.
func refused(err error) bool {
	return errors.Is(err, blob.ErrPrecondition) || errors.Is(err, blob.ErrExists)
}

// stillOurs fails unless the stored manifest is the one this writer wrote last.
func (db *DB) stillOurs(ctx context.Context) error {
	_, err := db.store.Get(ctx, manifestKey, &blob.GetOptions{If: blob.IfVersion(db.version), SkipCache: true})
	if errors.Is(err, blob.ErrPrecondition) {
		db.broken = ErrFenced
		return db.broken
	}
	if err != nil {
		return fmt.Errorf("kvlog: reading the manifest: %w", err)
	}
	return nil
}

// gone returns ErrFenced if err says that a segment is missing because a newer writer has compacted the store, and else err. The caller holds mu.
func (db *DB) gone(ctx context.Context, err error) error {
	if errors.Is(err, blob.ErrNotFound) && errors.Is(db.stillOurs(ctx), ErrFenced) {
		return db.broken
	}
	return err
}

// written are segments that no manifest names yet.
type written struct {
	segments []segment
	found    []map[string]found // by segment
}

func (w written) apply(db *DB) {
	for i, s := range w.segments {
		db.apply(s.Name, w.found[i])
	}
}

// write stores records in segments of at most maxSegment each. If it fails, those that were stored are garbage.
func (db *DB) write(ctx context.Context, records map[string][]byte) (written, error) {
	var w written
	batches, err := encode(records)
	if err != nil {
		return w, err
	}
	for _, b := range batches {
		s, err := db.writeSegment(ctx, b.data)
		if err != nil {
			return w, err
		}
		w.segments, w.found = append(w.segments, s), append(w.found, b.found)
	}
	return w, nil
}

// writeSegment stores data under a name of its own. If it fails, whatever has become of it is garbage: nobody will name it.
func (db *DB) writeSegment(ctx context.Context, data []byte) (segment, error) {
	s := segment{
		Name: fmt.Sprintf("%s%016d-%s", segmentPrefix, db.manifest.Epoch, rand.Text()),
		Size: int64(len(data)), CRC32C: crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)),
	}
	if _, err := db.store.Set(ctx, s.Name, blob.Bytes(data), nil); err != nil {
		return segment{}, fmt.Errorf("kvlog: writing a segment: %w", err)
	}
	return s, nil
}

// epochOf returns the epoch of the writer of a segment.
func epochOf(name string) (uint64, bool) {
	number, _, ok := strings.Cut(strings.TrimPrefix(name, segmentPrefix), "-")
	epoch, err := strconv.ParseUint(number, 10, 64)
	return epoch, ok && err == nil
}
