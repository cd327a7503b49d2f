// Package fileblob keeps objects as files in a directory: durable, atomic, and safe for any number of
// processes on one machine at once.
//
// # Durability
//
// Set writes a temporary file in a hidden directory below the root (the same file system, never
// TMPDIR), checks its length, calls fsync and close, renames it over the object's name, and calls fsync on
// the directory, and on the directories above one that may not be durable yet. A step that fails fails the Set with its error;
// before the rename nothing has changed and the temporary file is removed, after it the outcome is Unknown.
// Deletes are durable in the same way, also that of a key which is already gone. Options.NoSync turns every fsync off.
//
// # Conditions
//
// Every Set, Delete and Restore decides its condition and changes the name while it holds one of 64 locks, chosen by a
// hash of the key: flock(2) on a file in the hidden directory between processes, a channel between the goroutines of one
// Store. Reads take no lock: a file never changes once it has its name, so whoever has opened it reads one version. Waiting for a
// goroutine is first come, first served; waiting for another process is a poll every 0.1 to 10 ms; both end with the context. On a
// network file system conditions hold as far as its flock and rename do.
//
// # Layout
//
// docs/file-format.md describes files and names. Keys are escaped so that each valid key has a place of its own on every file
// system, also where case is folded. No symbolic link below the root is followed. A file that fileblob did not write is no
// key. One that it wrote and that has been damaged is ErrTruncated or ErrCorrupt, never ErrNotFound; a
// List that meets one whose header is damaged ends with ErrCorrupt and its key, and an unconditional Set or Delete of the key removes it.
//
// A directory on another file system mounted below the root is refused by rename (EXDEV); mount at the root.
//
// # Listing
//
// A List opens each file for its size and version. It holds at most about 1 MiB of names at a time: a larger directory is read several
// times, so listing one directory of n names looks at about n*n/5000.
//
// Not built yet: SetOptions.SHA256 is ErrUnsupported, and no checksum of the payload is kept.
//
// The package works on Linux and macOS; elsewhere New is ErrUnsupported.
package fileblob

import (
	"context"
	"sync"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/gate"
)

const (
	storeName = "file"

	// DefaultTempAge is the default of Options.TempAge.
	DefaultTempAge = time.Hour
)

// Options are the options of New. nil is the zero value.
type Options struct {
	// Create makes the root directory and those above it if they are missing, and a store in it if
	// there is none. Without it New of anything but an existing store is ErrNoContainer: a directory that is empty because its volume is not
	// mounted must not pass for a store without objects.
	Create bool
	// NoSync calls no fsync: what was written may be lost when the machine stops. For tests.
	NoSync bool
	// Restore moves deleted objects to a hidden directory, the newest of each key, where Restore finds them. All who use
	// a root must agree on it. Nothing there expires: remove files from it at will.
	Restore bool
	// MaxGet is the most bytes that one Get or GetRanges returns. Zero: blob.DefaultMaxGet.
	MaxGet int64
	// MaxObject is the largest object in bytes that Set accepts. Zero: no limit.
	MaxObject int64
	// TempAge is how long a temporary file must not have been written to before New takes it for the leftover of a crash
	// and removes it. One that a living process still holds is never removed. Zero: DefaultTempAge.
	TempAge time.Duration
	// Now is the clock of Info.ModTime and of TempAge. nil: time.Now.
	Now func() time.Time
}

// Store is a Blob in a directory. Make it with New.
type Store struct {
	opts Options
	gate gate.Gate

	root  directory
	temp  directory
	trash directory

	listBudget int // bytes of names that one listing holds

	locks   locks
	durable durableDirs
	headers sync.Pool // *[maxHeader]byte

	owed struct { // temporary files that could not be removed
		sync.Mutex
		names []string
	}
	closed struct {
		sync.Mutex
		done bool
	}
}

var _ blob.Blob = (*Store)(nil)

// Capabilities implements blob.Blob. BatchDelete is true because DeleteAll syncs each directory once.
func (s *Store) Capabilities() blob.Capabilities {
	return blob.Capabilities{
		Store:       storeName,
		Conditions:  true,
		Restore:     s.opts.Restore,
		BatchDelete: true,
		MaxObject:   s.opts.MaxObject,
	}
}

// Close implements blob.Blob. What it may owe are temporary files of failed Sets that could not be removed.
func (s *Store) Close(ctx context.Context) error {
	if err := s.gate.Shut(ctx); err != nil {
		return &blob.OwedError{Files: s.owing(), Err: err}
	}
	s.closed.Lock() // Close may be called by several goroutines
	defer s.closed.Unlock()
	if s.closed.done {
		return nil
	}
	if err := s.removeOwed(); err != nil {
		return &blob.OwedError{Files: s.owing(), Err: err}
	}
	s.closed.done = true
	s.release()
	return nil
}

// release closes what the store holds open. Nothing was written through it, so no error of it means loss.
func (s *Store) release() {
	s.durable.close()
	s.locks.close()
	for _, d := range []directory{s.trash, s.temp, s.root} {
		if d != nil {
			_ = d.Close()
		}
	}
}

func (s *Store) owing() []string {
	s.owed.Lock()
	defer s.owed.Unlock()
	var paths []string
	for _, name := range s.owed.names {
		paths = append(paths, hiddenDir+"/"+tempDir+"/"+name)
	}
	return paths
}

// removeOwed tries once more to remove each leftover.
func (s *Store) removeOwed() (last error) {
	s.owed.Lock()
	defer s.owed.Unlock()
	var left []string
	for _, name := range s.owed.names {
		if err := s.temp.Remove(name); err != nil && !isAbsent(err) {
			left, last = append(left, name), err
		}
	}
	s.owed.names = left
	return last
}

// discard removes a temporary file, now or at Close.
func (s *Store) discard(name string) {
	if err := s.temp.Remove(name); err != nil && !isAbsent(err) {
		s.owed.Lock()
		defer s.owed.Unlock()
		s.owed.names = append(s.owed.names, name)
	}
}
