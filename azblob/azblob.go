// Package azblob is a blob.Blob on Azure Blob Storage and on emulators that speak its protocol.
//
// New returns a Store over one container, and under one prefix of it if Options.Prefix is set:
//
//	store, err := azblob.New(ctx, "container", &azblob.Options{Account: "account"})
//
// # What it promises beyond package blob
//
// Versions are ETags without their quotes; each write makes a new one.
//
// A Get asks by range, since Azure has no reads by part: one request for an object up to Options.Segment, two for an empty one. A range
// from the end costs a Stat first.
//
// A Set below Options.Threshold is one Put Blob; from there on it is a Put Block for each part and one Put Block List, which carries
// metadata and condition. The ids of the blocks hold a random part for each Set, so that two writers of one key never commit each other's
// blocks. When one of them commits, the service discards the other's, whose own commit is then refused: that Set sends its blocks
// again, Options.Restarts times at most, and then fails with blob.ErrConflict.
//
// Azure cannot be told to discard the blocks of a Set that failed. They are invisible, are billed, and go by themselves a week after
// the last of them was sent ("Put Block", Azure Storage REST API), or when the key is written: there is nothing to abort, and Sweep
// has nothing to do.
//
// Delete takes the snapshots of a blob with it: Azure deletes no blob that has any otherwise ("Delete Blob").
//
// List passes over what comes before ListOptions.StartAfter page by page: Azure continues a listing only at its own markers, and does not say
// what its newer parameter startFrom means together with a prefix. Azure does not document the order of names outside of the Basic
// Multilingual Plane either; a listing that is not in byte order ends in blob.ErrUnsupported, and is never passed on as if it were.
//
// Accounts with a hierarchical namespace (Data Lake Storage) keep names as files in directories. They are not promised to work: a key beside keys
// below it is refused there, as blob.ErrUnsupported, and listings hold the directories.
//
// Restore undoes deletes as Options.Restore says: by Undelete Blob where the account keeps deleted blobs, or by a copy of the newest version.
//
// On an endpoint that is neither Azure's nor vouched for (Options.Conditions), conditions are blob.ErrUnsupported, and the first Set is
// followed by a Stat: a server that stores more than was sent makes it blob.ErrCorrupt, one that loses metadata is named in the log.
//
// # What is not there yet
//
// Set of a blob.Stream and SetOptions.SHA256 are blob.ErrUnsupported.
//
// # Environment
//
// The environment is read for credentials, by the Azure SDK, if Options has none, and for the proxy of the Store's own transport, as net/http
// does it (HTTPS_PROXY and its like).
package azblob

import (
	"context"
	"net/http"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// storeName is Capabilities().Store.
const storeName = "azure"

// Store is a blob.Blob on one container. It retries by itself: do not wrap it in another loop.
type Store struct {
	*transfer.Store
	transport *http.Transport // ours to close; nil if the caller brought one
}

var _ blob.Blob = (*Store)(nil)

// New opens the container. It checks opts, and may look for credentials as the Azure SDK does (environment, workload identity, managed identity,
// command line tools) if opts has none, but makes no request to the container: that a token cannot be had is an error of the first call.
// opts is copied; nil is the zero value. Errors match blob.ErrInvalidOption and name the field.
func New(_ context.Context, container string, opts *Options) (*Store, error) {
	o, err := complete(container, opts)
	if err != nil {
		return nil, openError(err)
	}
	engine, err := o.engine()
	if err != nil {
		return nil, openError(err)
	}
	st := &Store{}
	rt := o.Transport
	if rt == nil {
		st.transport = wire.NewTransport()
		rt = st.transport
	}
	r := &requests{keeps: o.Restore, secrets: o.secrets()}
	if r.client, err = o.connect(container, &doer{rt: rt, secrets: r.secrets}); err != nil {
		return nil, openError(scrub(err, r.secrets))
	}
	st.Store = transfer.New(r, o.traits(), engine)
	return st, nil
}

// Close implements blob.Blob.
func (s *Store) Close(ctx context.Context) error {
	err := s.Store.Close(ctx)
	if err == nil && s.transport != nil {
		s.transport.CloseIdleConnections()
	}
	return err
}

func openError(err error) error { return transfer.OpenError(storeName, err) }
