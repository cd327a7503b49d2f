// Package fakeaz is Azure Blob Storage inside the process: what this project's tests of its Azure store talk to.
//
// With no options set it behaves as Microsoft documents the REST API of Blob Storage, version 2021-12-02 and later, of a
// general-purpose account without a hierarchical namespace; comments name the document ("Put Block List", "Authorize with
// Shared Key" and so on, all at learn.microsoft.com/rest/api/storageservices) where a fact is not plain. What goes wrong
// on a wire is asked for with a [fakehttp.Fault], steady traits with [Knobs]. Nothing deviates unless it was asked for.
//
// # What it has
//
// Put Blob (block blobs), Put Block, Put Block List, Get Block List, Get Blob, Get Blob Properties, Delete Blob, Undelete
// Blob, Snapshot Blob, Copy Blob and Copy Blob From URL (within the account, done at once), Blob Batch (deletes), List
// Blobs, and the creation, properties and deletion of containers. Shared Key, service and account SAS signed with the
// account's key, and bearer tokens. Versions and soft delete are [Knobs]. Everything else is answered with 501, and headers
// that it does not know but that would change what an operation means (leases, tags, customer keys, structured bodies)
// with 400, rather than ignored.
//
// # What it promises
//
//   - A blob becomes visible whole or not at all: a body that ends early, a wrong checksum or signature stores nothing.
//   - Conditions are checked and the blob is replaced under one lock, so of any number of racing If-None-Match writers
//     exactly one wins. No lock is held while a body is read or written.
//   - Stored bytes are never changed and never copied for a read. Slices given to [Server.PutBlob] are kept, so the caller
//     must not change them.
//   - Signatures are checked over the path and query exactly as they were sent.
//   - Every request is recorded in the order of its arrival. Op is the name in the REST API, such as "PutBlockList"; faults
//     name it in their Op.
//
// # Where it is not the service
//
// Names of metadata come from the wire in lower case, as net/http does not tell the case in which they were sent (the
// service keeps it); [PutOptions] can make others. Undelete with versioning never makes a version current, as the service.
package fakeaz
