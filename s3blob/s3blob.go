// Package s3blob is a blob.Blob on Amazon S3 and on servers that speak its protocol.
//
// New returns a Store over one bucket, and under one prefix of it if Options.Prefix is set:
//
//	store, err := s3blob.New(ctx, "bucket", &s3blob.Options{Region: "eu-central-1"})
//
// # What it promises beyond package blob
//
// Versions are ETags without their quotes. Two writes of the same content can have the same ETag, so IfVersion
// does not see an overwrite by equal bytes.
//
// A Get asks for part 1 first (GetObject with partNumber), which costs one request for a small object and n for an object of n
// parts, and takes the total only from Content-Range. On servers that do not know parts, and with Options.ReadRanges, it
// asks by range instead; an empty object then costs two requests.
//
// A Set below Options.Threshold is one PutObject; from there on it is a multipart upload of n+2 requests. A Set that
// fails aborts its upload in the background; what could not be aborted by the time of Close is in its *blob.OwedError. An
// upload whose CompleteMultipartUpload has an unknown outcome is left alone. Sweep aborts those of a crashed process; a lifecycle
// rule that aborts incomplete uploads is good to have all the same.
//
// Restore removes delete markers, on buckets that Options.Restore says are versioned.
//
// On an endpoint that is neither Amazon's nor vouched for (Options.Conditions), the first Set is followed by a Stat: a server that stores
// more than was sent makes it blob.ErrCorrupt, one that loses metadata is named in the log.
//
// # What is not there yet
//
// Set of a blob.Stream and SetOptions.SHA256 are blob.ErrUnsupported. So are conditions on endpoints other than
// Amazon's, unless Options.Conditions vouches for them.
package s3blob

import (
	"context"
	"net/http"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// storeName is Capabilities().Store.
const storeName = "s3"

// Store is a blob.Blob on one bucket. It retries by itself: do not wrap it in another loop.
type Store struct {
	*transfer.Store
	transport *http.Transport // ours to close; nil if the caller brought one
}

var _ blob.Blob = (*Store)(nil)

// New opens the bucket. It checks opts, and may read credentials and a region as the AWS SDK does (environment, shared files,
// instance metadata) if opts leaves them out, but makes no request to the bucket.
// opts is copied; nil is the zero value. Errors match blob.ErrInvalidOption and name the field.
func New(ctx context.Context, bucket string, opts *Options) (*Store, error) {
	o, err := complete(bucket, opts)
	if err != nil {
		return nil, openError(err)
	}
	if err := o.chain(ctx); err != nil {
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
	st.Store = transfer.New(newRequests(o, bucket, rt), o.traits(), engine)
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
