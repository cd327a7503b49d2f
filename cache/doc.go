// Package cache keeps what is read of a Blob in memory and on a local disk, as a Blob in front of it.
//
// # What it promises
//
// A Cache answers exactly as its inner store would, sooner. It answers with bytes or not at all: whatever the store would refuse (a missing key, a
// condition, a range, a size or checksum that the caller knows better) is answered by the store itself. A fault of the
// cache is a miss and never an error of a read.
//
// Only complete answers are kept, looked at once more: the right key, offset and length, a version, and a checksum where one is known. Absence is never
// kept, nor is any other error.
//
// # Coherence
//
// Writes of this Cache: once a Set, Delete, DeleteAll or Restore has returned, whether it succeeded, was refused or failed with an
// unknown outcome, no read that begins afterwards is answered from what was cached, or asked for, before. A fetch under way while
// a write begins or ends is given to those who waited for it already, and kept by nobody. Reads beside a write of the same key go straight to the store.
//
// A write of unknown outcome may yet be applied, after a read has cached the state before it. Only revalidation finds
// that out.
//
// Writes of others: by default keys are taken to be written once, and what is cached is served until it is evicted. Programs that overwrite
// keys which others cache choose Options.Revalidate: Always asks the store before each read (one Stat, and no payload while it is unchanged), a duration
// asks when the answer is older than that, to which the time of one request is to be added. Durations are of the monotonic clock, which may stand still
// while the machine sleeps; entries found on disk are of unknown age, and due. In any case an answer of the store with another version drops what is
// cached of the key, and so does one that there is no such object, or that it is not of the cached version: also those to a Set, a Delete, and reads
// that go past the cache, but not those to a List.
//
// # What is kept
//
// Whole objects up to Options.MaxFill that were read whole or, unless NoWriteThrough is set, written by Set from Bytes; and aligned
// blocks of Options.Block bytes of what is read by range. A read by range of cold data is widened to the blocks it touches, neighbours in one request of at
// most 8 MiB. From and Last have no place before the size is known: the first of them goes to the store as it is, leaves what blocks it
// happens to cover, and the next is widened. GetRanges of an object of which nothing is known begins with one request, and
// goes on with the rest, at once and pinned to that version.
//
// The memory tier is W-TinyLFU by bytes, which scans do not wash out. It keeps nothing above an eighth of its capacity.
//
// A store need not say with a Set all that a Get says. What it did not say (on S3 the ModTime) is asked for by the first
// read, with a Stat; the bytes need not be sent back. The disk tier remembers the answer as long as the process runs, and the memory tier until it evicts the object.
//
// # Sharing
//
// Data is shared with the cache and other callers, and read-only, unless it lies in the caller's Dst. A small result may be a part
// of a block, or of a whole object read before, which stays in memory as long as the result does.
//
// However many callers miss the same thing, one request is sent. It does not depend on the context of any of them: a
// caller that gives up fails alone, and the last one to leave cancels the request. The bytes of all requests in flight are bounded by Options.FillBytes;
// beyond, reads go straight to the store.
//
// # The disk tier
//
// Options.Dir is the directory of a disk tier, which belongs to one Cache at a time and survives a restart; docs/disk-cache.md has its format. Ranges are read
// from disk as they are, into the caller's buffer if there is one; those of one call that lie beside each other in a file, by one system call. What
// fills a whole block of a buffer of its own, or is a whole object, goes to memory. Of a block that is read in small ranges, or into callers' buffers, the
// whole is read and goes to memory once those reads have cost as much as that: at the fourth of 4 KiB in a block of 128 KiB, never at the first.
//
// A whole read fetches only the blocks that no tier has, as long as each request beyond the first saves 1 MiB of what is there.
//
// # Not built yet
//
// Bytes of fills are a limit of each Cache, and not part of a budget that is shared with others. When Want has no size, the bytes of a whole
// object that is fetched for the first time are counted once they have come. A hit in memory on a whole object that is read often costs
// 1.0 to 1.3 times a bare look-up in the underlying map, and a range of it about 1.7 times; others cost about half as much again, and so does
// GetRanges, which does not have the short way of Get.
package cache
