// Package fakegcs is a Google Cloud Storage server inside the process: the
// JSON API v1, and reads of objects by the XML API.
//
// With no options set it behaves as Google documents the service; the
// documents are named where a rule comes from, and what is known only from
// watching the service is marked so. What goes wrong on a wire or deviates is
// asked for with [Knobs] (a steady trait of the server) and [fakehttp.Fault]
// (something that happens to chosen requests). Nothing deviates unless it was
// asked for.
//
// # What it promises
//
//   - An object becomes visible whole or not at all: a body that ends early or
//     a wrong checksum stores nothing, and a session shows nothing before it
//     is finished.
//   - Conditions are decided and the effect is made under one lock, so of any
//     number of racing ifGenerationMatch=0 writers exactly one wins, on one
//     request and on sessions alike. No lock is held while a body is read or
//     written.
//   - Stored bytes are never changed and never copied for a read: a reader
//     beside an overwriting writer sees one generation. Slices given to
//     [Server.PutObject] are kept, so the caller must not change them.
//   - Every request is recorded in the order of its arrival, unless
//     Options.NoLog is set; the text form is the same in every run.
//
// # Operations
//
// Requests are named in the log and in faults:
//
//	objects.get objects.media objects.insert objects.list objects.delete
//	objects.restore objects.rewrite objects.copy objects.patch objects.update
//	uploads.start uploads.put uploads.query uploads.cancel
//	xml.get xml.head batch
//	buckets.get buckets.insert buckets.patch buckets.delete
//
// objects.media is objects.get with alt=media. uploads.query has a
// Content-Range of "bytes */...", which may also be the end of an upload. The
// calls within a batch are not recorded one by one, and faults do not see them.
// The key of an upload is known on arrival if the query has it in name; one that
// is only in the metadata is in the log, but faults cannot choose it.
//
// # Not here
//
// Access control lists, holds, retention, encryption keys, compose, folders,
// matchGlob, notifications, writes by the XML API, virtual-hosted buckets, and
// the limit of one write a second per object: script a 429 for that.
package fakegcs
