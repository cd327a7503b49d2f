package gcsblob

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/retry"
)

// Trust says who vouches for an ability of the endpoint.
type Trust string

// The values of Options.Conditions.
const (
	TrustAuto Trust = ""      // Google's endpoints honour conditions; of others nobody knows
	TrustYes  Trust = "trust" // this endpoint does
)

// Restore says by what the bucket keeps deleted objects.
type Restore string

// The values of Options.Restore.
const (
	RestoreOff        Restore = ""            // it keeps none
	RestoreSoftDelete Restore = "soft-delete" // a soft delete policy, as new buckets have it
	RestoreVersions   Restore = "versions"    // Object Versioning
)

// Options configure a Store. nil and the zero value are the defaults: Google Cloud Storage, with the credentials
// that Google's libraries find.
type Options struct {
	// Prefix of all keys in the bucket; blob.CheckPrefix says which are valid. "": the whole bucket.
	Prefix string
	// Endpoint is the URL of a server that speaks the JSON and XML protocols of Cloud Storage. "": https://storage.googleapis.com.
	// STORAGE_EMULATOR_HOST is not read.
	Endpoint string

	// CredentialsFile is the path of a credentials file (a service account, or what the gcloud command writes). It is read
	// again when the service refuses a token.
	CredentialsFile string
	// CredentialsJSON is the content of such a file.
	CredentialsJSON []byte
	// TokenSource provides access tokens. It is asked once per token, not once per request, and must return in
	// time: its method knows no context.
	TokenSource oauth2.TokenSource
	// Anonymous sends no credentials, for public buckets.
	//
	// At most one of these four is set. None: as Google's libraries find them for Google's endpoints, and no credentials for others.
	// Credentials are not sent in clear: with an http:// endpoint that is not a loopback address they are an error.
	Anonymous bool
	// QuotaProject is the project that is billed for requests. "": that of the credentials, if they name one.
	QuotaProject string

	// Conditions says whether the endpoint honours generation conditions on every write and delete. TrustAuto: only
	// Google's does; on others conditional operations are blob.ErrUnsupported.
	Conditions Trust

	// Restore says by what the bucket keeps deleted objects, so that deletes can be undone. The Store does not ask the bucket. RestoreOff:
	// Restore of an absent key is blob.ErrUnsupported.
	Restore Restore

	// PartSize is the size in bytes of all chunks of an upload but the last, rounded up to a multiple of 256 KiB. 0: 8 MiB.
	PartSize int64
	// Threshold is the size in bytes from which a Set goes in chunks. 0: PartSize.
	Threshold int64
	// Segment is the size in bytes of a range request of a large Get. 0: 8 MiB.
	Segment int64
	// Gap is how many bytes may lie between two ranges of a GetRanges for one request to read both and throw those
	// away; together they span at most Segment. 0: 64 KiB. -1: only ranges that touch or overlap.
	Gap int64
	// Concurrency is how many requests one operation has in flight, at most. 0: 8. A Set has one.
	Concurrency int
	// InFlight is how many requests all operations of the Store have in flight, at most. 0: 128.
	InFlight int
	// Stall is how long a body may stand still, sent or received, before the attempt is ended and another begins. 0: 20 s.
	// retry.NoLimit: for ever. The wait for a reply is bounded by Retry.Attempt.
	Stall time.Duration
	// Restarts is how often a read starts over when its object changes under it. 0: 3. -1: never.
	Restarts int
	// MaxGet bounds the bytes of one Get or GetRanges. 0: blob.DefaultMaxGet.
	MaxGet int64

	// Retry is the policy for each request. The zero Policy is the default of package retry.
	Retry retry.Policy
	// Transport sends the requests, but for those that fetch tokens. nil: one of the Store's own. It must not retry.
	Transport http.RoundTripper
	// Logger gets a line when clean-up fails. nil: none.
	Logger *slog.Logger
}

// String describes o without its secrets.
func (o Options) String() string {
	return fmt.Sprintf("gcsblob.Options{Prefix:%q Endpoint:%q CredentialsFile:%q CredentialsJSON:%s TokenSource:%t Anonymous:%t}",
		o.Prefix, param.Redact(o.Endpoint), o.CredentialsFile, param.Hide(o.CredentialsJSON), o.TokenSource != nil, o.Anonymous)
}

// Format implements fmt.Formatter, so that no verb prints secrets. (Inside a struct, in a field that is not exported, package fmt
// does not ask: do not keep Options there.)
func (o Options) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, o.String()) }

// MarshalText implements encoding.TextMarshaler without secrets.
func (o Options) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// LogValue implements slog.LogValuer without secrets.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// complete returns a checked copy of opts. What the engine has defaults for is left to it.
func complete(bucket string, opts *Options) (*Options, error) {
	o := new(Options)
	if opts != nil {
		*o = *opts
	}
	o.CredentialsJSON = bytes.Clone(o.CredentialsJSON)
	o.Endpoint = strings.TrimSuffix(o.Endpoint, "/")
	if err := o.check(bucket); err != nil {
		return nil, err
	}
	return o, nil
}

// bucketChars are those of "Bucket naming guidelines", Cloud Storage. Names with dots have up to 222 characters.
const bucketChars = "abcdefghijklmnopqrstuvwxyz0123456789.-_"

func (o *Options) check(bucket string) error {
	if bucket == "" {
		return invalid("the bucket is empty")
	}
	if strings.Trim(bucket, bucketChars) != "" || strings.Trim(bucket, ".") == "" || len(bucket) > 222 {
		return invalid("bucket %q: want lower-case letters, digits, '.', '-' and '_'", bucket)
	}
	if _, err := o.engine(); err != nil {
		return err
	}
	switch {
	case o.Conditions != TrustAuto && o.Conditions != TrustYes:
		return invalid("Conditions is %q: want %q or %q", o.Conditions, TrustAuto, TrustYes)
	case o.Restore != RestoreOff && o.Restore != RestoreSoftDelete && o.Restore != RestoreVersions:
		return invalid("Restore is %q: want %q, %q or %q", o.Restore, RestoreOff, RestoreSoftDelete, RestoreVersions)
	case strings.ContainsFunc(o.QuotaProject, func(r rune) bool { return r <= ' ' || r > '~' }):
		return invalid("QuotaProject is %q: it has characters that no project has", o.QuotaProject)
	}
	return o.checkAccess()
}

// checkAccess checks where the Store goes, and as whom.
func (o *Options) checkAccess() error {
	if o.Endpoint != "" {
		if _, err := param.ParseEndpoint(o.Endpoint); err != nil {
			return fmt.Errorf("field Endpoint: %w", err)
		}
	}
	var given []string
	for _, c := range []struct {
		name string
		set  bool
	}{
		{"CredentialsFile", o.CredentialsFile != ""},
		{"CredentialsJSON", len(o.CredentialsJSON) > 0},
		{"TokenSource", o.TokenSource != nil},
		{"Anonymous", o.Anonymous},
	} {
		if c.set {
			given = append(given, c.name)
		}
	}
	switch {
	case len(given) > 1:
		return invalid("%s exclude each other", strings.Join(given, " and "))
	case len(given) == 1 && !o.Anonymous && o.inClear():
		return invalid("%s with an http:// Endpoint: a token would be sent in clear", given[0])
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", blob.ErrInvalidOption, fmt.Sprintf(format, args...))
}

const googleEndpoint = "https://storage.googleapis.com"

func (o *Options) root() string { return cmp.Or(o.Endpoint, googleEndpoint) }

// google reports whether the endpoint is Google's own, over TLS.
func (o *Options) google() bool {
	u, err := url.Parse(o.root())
	if err != nil || u.Scheme != "https" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host == "googleapis.com" || strings.HasSuffix(host, ".googleapis.com")
}

// inClear reports whether what is sent can be read on the way.
func (o *Options) inClear() bool {
	u, err := url.Parse(o.root())
	if err != nil || u.Scheme == "https" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && !ip.IsLoopback()
}

// engine returns the options of the engine, complete and checked.
func (o *Options) engine() (transfer.Options, error) {
	e := transfer.Options{
		Prefix: o.Prefix, Policy: o.Retry,
		PartSize: o.PartSize, Threshold: o.Threshold, Segment: o.Segment, Gap: o.Gap,
		Concurrency: o.Concurrency, InFlight: o.InFlight, Stall: o.Stall, Restarts: o.Restarts, MaxGet: o.MaxGet,
		Logger: o.Logger,
	}
	err := e.Complete(maxPart, maxObject)
	return e, err
}
