// Package gcsblob is a blob.Blob on Google Cloud Storage.
//
// New returns a Store over one bucket, and under one prefix of it if Options.Prefix is set:
//
//	store, err := gcsblob.New(ctx, "bucket", nil)
//
// # What it promises beyond package blob
//
// Versions are generations: every write makes another one, so IfVersion also sees an overwrite by equal bytes.
//
// What is read is what is stored, byte for byte: an object with Content-Encoding gzip comes as gzip. Its length is compared with the one
// that the service stores, and a reply that was packed or unpacked on the way is undone or refused.
//
// A Get asks by range. It costs one request up to Options.Segment, n for an object of n segments, and two for an empty one.
//
// A Set below Options.Threshold is one request with metadata and content in it; from there on it is one resumable session
// of n+1 requests, whose chunks go one after another, the last one of which makes the object. Its condition is checked at the start and
// at the end. A Set that fails cancels its session in the background. Sessions cannot be listed, so those of a
// crashed process stay until the service drops them, a week after they began ("Resumable uploads"): Sweep
// finds nothing here. The URI of a session lets anybody upload to it; it never leaves the Store, whose
// errors and logs name a session by a digest.
//
// Objects are written with Cache-Control: no-store. Without it an object that anybody may read would be served from caches
// for up to an hour after it has changed ("Cache-Control", Cloud Storage).
//
// DeleteAll sends one request per key, Options.Concurrency at a time: the service's batch request holds 100 keys at most, bills,
// limits and refuses each of them by itself, and leaves all of them in doubt when its reply is lost.
//
// # What is not there yet
//
// Set of a blob.Stream and SetOptions.SHA256 are blob.ErrUnsupported. So are conditions on endpoints other than
// Google's, unless Options.Conditions vouches for them.
//
// # Environment
//
// Only credentials are looked for in the environment, as Google's libraries do it, and only for Google's own endpoints, and the proxy of
// the Store's own transport, as net/http does it (HTTPS_PROXY and its like).
// STORAGE_EMULATOR_HOST, which redirects programs that use Google's client, has no effect: a Store goes where its
// Options say.
package gcsblob

import (
	"context"
	"net/http"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
	rawstorage "google.golang.org/api/storage/v1"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// storeName is Capabilities().Store.
const storeName = "gcs"

// Store is a blob.Blob on one bucket. It retries by itself: do not wrap it in another loop.
type Store struct {
	*transfer.Store
	client    *storage.Client
	transport *http.Transport // ours to close; nil if the caller brought one
}

var _ blob.Blob = (*Store)(nil)

// New opens the bucket. It checks opts, and may look for credentials as Google's libraries do (environment, the file of the gcloud
// command, metadata server) if opts leaves them out, but makes no request to the bucket.
// opts is copied; nil is the zero value. Errors match blob.ErrInvalidOption and name the field.
func New(ctx context.Context, bucket string, opts *Options) (*Store, error) {
	o, err := complete(bucket, opts)
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
		st.transport.DisableCompression = false // it may unpack control replies: reads state the codings they accept, and then it does not
		rt = st.transport
	}
	r := &requests{root: o.root(), google: o.google(), bucket: bucket, keep: o.Restore}
	if err := r.connect(ctx, o, rt); err != nil {
		return nil, openError(err)
	}
	st.client = r.client
	st.Store = transfer.New(r, o.traits(), engine)
	return st, nil
}

// requests implements transfer.Requests: each method is one request.
type requests struct {
	root     string // of the endpoint, without a final slash
	google   bool   // the endpoint is Google's own
	bucket   string
	keep     Restore
	rt       http.RoundTripper // authenticated
	tokens   *tokens           // nil: anonymous
	client   *storage.Client   // for the control verbs of which it makes exactly one request
	raw      *rawstorage.Service
	sessions sessions
}

var _ transfer.Requests = (*requests)(nil)

// connect makes the clients. Both the SDK and the requests beside it go through one authenticated round tripper.
func (r *requests) connect(ctx context.Context, o *Options, base http.RoundTripper) error {
	id, err := o.identity(&doer{rt: base})
	if err != nil {
		return err
	}
	r.rt, r.tokens = id, id.tokens
	// A redirect would carry the token to another host.
	hc := &http.Client{Transport: id, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	// The endpoint is given even if it is the default: the SDK prefers it to its environment variable.
	endpoint := option.WithEndpoint(r.root + "/storage/v1/")
	r.raw, err = rawstorage.NewService(ctx, option.WithHTTPClient(hc), endpoint)
	if err != nil {
		return err
	}
	r.client, err = storage.NewClient(ctx, option.WithHTTPClient(hc), endpoint,
		option.WithoutAuthentication(), // not beside the client's own
		option.WithTelemetryDisabled(), storage.WithDisabledClientMetrics())
	if err != nil {
		return err
	}
	r.client.SetRetry(storage.WithPolicy(storage.RetryNever)) // the engine has the only loop
	return nil
}

// object is the SDK's handle of one key.
func (r *requests) object(key string) *storage.ObjectHandle {
	return r.client.Bucket(r.bucket).Object(key)
}

// Close implements blob.Blob.
func (s *Store) Close(ctx context.Context) error {
	if err := s.Store.Close(ctx); err != nil {
		return err
	}
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
	_ = s.client.Close() // it holds nothing of its own
	return nil
}

func openError(err error) error { return transfer.OpenError(storeName, err) }
