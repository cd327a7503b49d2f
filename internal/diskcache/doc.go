// Package diskcache is the disk tier of package cache: bytes of objects in files of one directory, found again after a restart.
//
// # What it promises
//
// A Tier answers with the bytes that were put, checked, or not at all. No method returns an error for a fault of the disk: a read that
// cannot be answered is a miss, a Put that cannot be written is skipped, and Stats counts both. A disk that is full, read-only or broken
// turns the tier off, with one line of the log; it looks again later and goes on. What Drop has forgotten stays forgotten, in this process
// and the next.
//
// It knows keys and versions, and nothing of a store: whether a version is the current one is its caller's business.
//
// # Ownership
//
// What is given to Put must never change afterwards; a Part with a Dst is filled there, and one without gets a slice of its own. The
// metadata that Lookup returns is read-only.
//
// # Concurrency
//
// All methods may be called at once. A hit takes the lock of one of 256 shards to look into the index, and that of the open files, and holds
// none while it reads. Put does no input or output: a bounded queue in bytes is written by two goroutines. Drop waits for an entry that
// is just being renamed, and for its names to be removed. Close writes what is queued.
//
// docs/disk-cache.md has the format and the argument why no stale or damaged bytes are ever served.
package diskcache
