// Package transfer is the engine of the cloud stores: it turns one call of blob.Blob into a plan, the plan
// into requests, runs each request through retry.Do, and puts the answers together again, checked.
//
// A cloud store implements Requests, where one call is one attempt of one billed request, and
// says in Traits what its service can do. Everything that loops, retries, runs in
// parallel, waits, compares, or cleans up is here, once.
//
// # Invariants
//
//   - A read returns bytes only after the lengths of all segments add up to a total that the
//     store itself stated, and every segment came from the same version.
//   - The absence of a header is never taken for a value. No parts count does not mean one part, no
//     Content-Range does not mean offset 0, no Content-Length does not mean that what came was all.
//   - A write commits after every byte of the source was accepted by the store, and never otherwise. Where the last bytes are the
//     commit, all others were accepted before.
//   - A sum that the store states of a whole object is compared whenever the whole was read, and one is sent where the store compares it.
//   - No goroutine started by a call outlives it, but for the abort of an upload, which the Store owns and
//     its Close waits for.
//
// # How the three clouds differ
//
// Requests and Traits are shaped by this table. Sources: the Amazon S3 API Reference, the Cloud Storage
// JSON API and "Resumable uploads", the Azure Blob Storage REST API.
//
// Of a resumable session (serial.go): bytes go where it ends, it may keep less than it was sent, it can be asked what it holds, and it
// commits once. So a lost reply is made good by asking, for conditional writes too, where parts in any order leave an unknown outcome.
//
//	                    S3                          GCS                           Azure
//	version             ETag (may repeat for        generation, a number          ETag
//	                    equal content)
//	pinned read         If-Match                    generation parameter          If-Match
//	read by part        partNumber, with the        no                            no
//	                    count in a header
//	suffix range        yes                         yes                           no: a Stat first
//	empty object, range 416                         416                           416
//	large write         multipart upload, parts     one resumable session,        staged blocks, any order,
//	                    in any order, parallel      chunks in order               parallel
//	begin               one request, gives an id    one request, gives a URL      no request: ids are ours
//	part size           5 MiB to 5 GiB but for the  multiples of 256 KiB but      up to 4000 MiB
//	                    last; some services want    for the last
//	                    all but the last equal
//	parts at most       10,000                      no limit                      50,000
//	commit              one request with the list   the last chunk                one request with the list
//	metadata            at begin                    at begin                      at commit
//	condition           at commit                   at begin, for the commit      at commit
//	checksum of all     no                          CRC-32C, with the last chunk  no
//	  stated in reads   no                          CRC-32C                       no
//	after a lost reply  send the part again         ask for the offset            send the block again
//	  of the commit     nobody can tell             ask: done, or go on           nobody can tell
//	abort               one request                 one request                   none: blocks expire in a week
//	find open uploads   a listing                   none: sessions expire         none: they expire
//	key exists, refused 412; 409 while in flight    412; 429 while in flight      409 BlobAlreadyExists; 412
//	list order          UTF-8 bytes                 UTF-8 bytes                   not documented for all of Unicode
//	list start          exclusive start-after       inclusive start offset        opaque marker only, or start-from
//	delete, key absent  204                         404                           404
//	batch delete        1000 keys, errors by key    100 requests in one body      256 requests in one body
//	deletes leave       a marker over the versions  the version, marked deleted   the version, marked deleted
//	restore             remove the delete marker    soft delete, or copy an old   undelete, or promote an
//	                    that is the newest version  generation                    old version
package transfer
