// Package kvlog is a small log-structured key-value store on a blob.Blob: an example of how a database embeds one.
//
//	db, err := kvlog.Open(ctx, store)
//	db.Put("k", []byte("v"))
//	err = db.Commit(ctx)
//
// # Objects
//
//	segments/EPOCH-RANDOM   records of one Commit or Compact; written once, under a name that nobody uses again
//	manifest                which segments there are, in order, with the length and checksum of each
//
// A segment counts from the moment in which a manifest names it. The manifest is the only object that is ever replaced, always on the condition
// that it is still the version this writer knows, so a Commit is atomic, and a writer that has been overtaken cannot undo what others did.
//
// # One writer
//
// Open takes the store over: it writes the manifest anew with the next epoch. Every older writer fails its next Commit with ErrFenced, however
// late it comes. Because of this the writer knows that a segment of its own or an earlier epoch which its manifest does not name is garbage.
//
// Reads ask nobody: a writer that was overtaken goes on reading what it knew, until a segment that it needs is collected. That is ErrFenced too.
//
// # Crashes
//
// A crash between segment and manifest leaves a segment that no manifest names: the Commit did not happen, and CollectGarbage removes the segment.
// A crash after the manifest leaves a Commit that happened. There is nothing in between, and nothing to repair.
package kvlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/wholeblob/wholeblob/blob"
)

// Errors of a DB.
var (
	ErrNotFound = errors.New("kvlog: no such key")
	ErrFenced   = errors.New("kvlog: another writer has taken over")
	ErrInDoubt  = errors.New("kvlog: the last commit may or may not have happened: open the store again")
)

// DB is an open store. It is safe for concurrent use.
type DB struct {
	store blob.Blob

	mu       sync.RWMutex
	manifest manifest
	version  string              // of the manifest, as the store has it
	index    map[string]location // of every live key in the segments
	pending  map[string][]byte   // since the last Commit; nil: deleted
	broken   error               // why nothing can be committed any more
}

// location is where a value lies.
type location struct {
	segment string
	off, n  int64
}

// Open reads the manifest, takes the store over from any other writer, and reads the segments. It costs one request to read the manifest, one to
// write it, one per segment, and a listing if there is no manifest yet.
func Open(ctx context.Context, store blob.Blob) (*DB, error) {
	db := &DB{store: store, index: make(map[string]location), pending: make(map[string][]byte)}
	for {
		err := db.load(ctx)
		if err != nil {
			return nil, err
		}
		next := db.manifest
		next.Epoch++
		err = db.replace(ctx, next)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrFenced) {
			return nil, err
		}
		db.broken = nil // another one opened it at the same time: overtake that one
	}
	buf := make([]byte, db.manifest.largest()) // for all segments: without it each Get allocates
	for _, s := range db.manifest.Segments {
		// The manifest says how long the segment is and what its checksum is: a segment that was cut or changed is an error here, never fewer
		// records.
		obj, err := db.store.Get(ctx, s.Name, &blob.GetOptions{Want: s.want(), Dst: buf})
		if err != nil {
			return nil, fmt.Errorf("kvlog: reading a segment: %w", db.gone(ctx, err))
		}
		if err := db.replay(s.Name, obj.Data); err != nil {
			return nil, err
		}
	}
	return db, nil
}

// Put sets key to a copy of value. It is lost in a crash until Commit has returned nil.
func (db *DB) Put(key string, value []byte) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.pending[key] = append([]byte{}, value...)
}

// Delete removes key, as Put sets it.
func (db *DB) Delete(key string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.pending[key] = nil
}

// Get returns a copy of the value of key, or ErrNotFound. A value that has been committed costs one request for exactly its bytes.
func (db *DB) Get(ctx context.Context, key string) ([]byte, error) {
	for {
		db.mu.RLock()
		value, here := db.pending[key]
		at, there := db.index[key]
		db.mu.RUnlock()
		switch {
		case here && value != nil:
			return slices.Clone(value), nil
		case here || !there:
			return nil, ErrNotFound
		}
		// Into memory of its own, so that the caller may change it: other Data can be shared with a cache.
		obj, err := db.store.Get(ctx, at.segment, &blob.GetOptions{Range: blob.Span(at.off, at.n), Dst: make([]byte, at.n)})
		switch {
		case err == nil && int64(len(obj.Data)) != at.n:
			return nil, fmt.Errorf("kvlog: segment %s is shorter than the index says", at.segment)
		case err == nil:
			return obj.Data, nil
		}
		db.mu.Lock()
		moved := db.index[key] != at // compacted, and perhaps collected, since the index was read
		if !moved {
			err = db.gone(ctx, err)
		}
		db.mu.Unlock()
		if !moved {
			return nil, fmt.Errorf("kvlog: reading a value: %w", err)
		}
	}
}

// Keys returns the live keys, sorted.
func (db *DB) Keys() []string {
	db.mu.RLock()
	defer db.mu.RUnlock()
	live := make(map[string]bool, len(db.index))
	for k := range db.index {
		live[k] = true
	}
	for k, v := range db.pending {
		if v == nil {
			delete(live, k)
		} else {
			live[k] = true
		}
	}
	return slices.Sorted(maps.Keys(live))
}

// Commit makes everything since the last Commit durable, all of it or nothing. It costs one request per 8 MiB and one for the manifest, none if
// there is nothing to commit. A key and value of more than 8 MiB are blob.ErrTooLarge.
//
// After another error than ErrFenced and ErrInDoubt nothing has been committed, what is pending stays so, and Commit may be called
// again. After those two the DB is of no more use for writing.
func (db *DB) Commit(ctx context.Context) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.broken != nil || len(db.pending) == 0 {
		return db.broken
	}
	written, err := db.write(ctx, db.pending)
	if err != nil {
		return err
	}
	next := db.manifest
	next.Segments = slices.Concat(next.Segments, written.segments)
	if err := db.replace(ctx, next); err != nil {
		return err
	}
	written.apply(db)
	clear(db.pending)
	return nil
}

// Compact writes the live records into as few segments as can be, in place of all. What is pending stays so.
func (db *DB) Compact(ctx context.Context) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.broken != nil || len(db.manifest.Segments) == 0 {
		return db.broken
	}
	live, err := db.readLive(ctx)
	if err != nil {
		return err
	}
	written, err := db.write(ctx, live)
	if err != nil {
		return err
	}
	next := db.manifest
	next.Segments = written.segments
	if err := db.replace(ctx, next); err != nil {
		return err
	}
	clear(db.index)
	written.apply(db)
	return nil
}

// readLive returns the live records. Those of one segment are read with one call, which merges what lies close together.
func (db *DB) readLive(ctx context.Context) (map[string][]byte, error) {
	bySegment := make(map[string][]string)
	for key, at := range db.index {
		bySegment[at.segment] = append(bySegment[at.segment], key)
	}
	live := make(map[string][]byte, len(db.index))
	for name, keys := range bySegment {
		ranges := make([]blob.Range, len(keys))
		for i, key := range keys {
			ranges[i] = blob.Span(db.index[key].off, db.index[key].n)
		}
		objs, err := db.store.GetRanges(ctx, name, ranges, &blob.GetOptions{SkipCache: true}) // read once, and then never again
		if err != nil {
			return nil, fmt.Errorf("kvlog: compacting: %w", db.gone(ctx, err))
		}
		for i, key := range keys {
			live[key] = objs[i].Data
			if live[key] == nil {
				live[key] = []byte{} // nil would delete it
			}
		}
	}
	return live, nil
}

// CollectGarbage deletes the segments that the manifest does not name, and returns how many: those of commits that did not happen, and those
// that were compacted. One listing, and one request per 1000 segments on a store that deletes in batches.
//
// No Commit of this DB is in progress meanwhile, and a commit of any older writer fails: what the manifest does not name, no manifest ever will. A
// newer writer may take over in the middle: it goes on from the segments that this manifest names, and its own have a later epoch.
func (db *DB) CollectGarbage(ctx context.Context) (int, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.broken != nil {
		return 0, db.broken
	}
	if err := db.stillOurs(ctx); err != nil { // a newer writer's segments are not in this manifest
		return 0, err
	}
	named := make(map[string]bool)
	for _, s := range db.manifest.Segments {
		named[s.Name] = true
	}
	var garbage []string
	for info, err := range db.store.List(ctx, segmentPrefix, nil) {
		if err != nil {
			return 0, fmt.Errorf("kvlog: looking for garbage: %w", err)
		}
		if e, ok := epochOf(info.Key); ok && e <= db.manifest.Epoch && !named[info.Key] {
			garbage = append(garbage, info.Key)
		}
	}
	if err := db.store.DeleteAll(ctx, garbage); err != nil {
		return 0, fmt.Errorf("kvlog: collecting garbage: %w", err) // names each key that is left; the next time gets them
	}
	return len(garbage), nil
}
