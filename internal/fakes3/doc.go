// Package fakes3 is an S3 server inside the process: the store that this
// project's tests and the bench demo talk to.
//
// With no options set it behaves as Amazon S3 documents itself; facts that
// are not in the S3 API reference are named where they are used. What other
// servers do differently, and what goes wrong on a wire, is asked for with
// [Knobs] (a steady trait of the server) and [Fault] (something that happens
// to chosen requests). Nothing deviates unless it was asked for.
//
// # What it promises
//
//   - An object becomes visible whole or not at all: a body that ends early, a
//     wrong checksum, signature or payload hash stores nothing.
//   - Conditions are checked and the object is replaced under one lock, so of
//     any number of racing If-None-Match writers exactly one wins. No lock is
//     held while a body is read or written.
//   - Stored bytes are never changed and never copied for a read: a reader
//     beside an overwriting writer sees one version. Slices given to
//     [Server.PutObject] are kept, so the caller must not change them.
//   - A request body with a known length is read into one allocation.
//   - Every request is recorded in the order of its arrival ([Server.Log]),
//     unless Options.NoLog is set. The text form leaves out what differs
//     between runs, so it can be kept as a golden file.
//   - Signatures (AWS Signature Version 4, header form) are checked over the
//     path exactly as it was sent. Presigned URLs and chunk signatures
//     (STREAMING-AWS4-...) are not supported and are refused.
//
// Listening, connections, the log and faults are those of package fakehttp,
// which names the steps of a request and what a fault does at each. Faults
// see authentic requests only: one that fails the signature check is refused
// before and is not counted by Nth.
//
// Server.Client and Server.Transport reach the server whatever host a URL
// names, which is how virtual-hosted buckets are addressed.
package fakes3
