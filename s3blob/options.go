package s3blob

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
	"github.com/wholeblob/wholeblob/retry"
)

// Trust says who vouches for an ability of the endpoint.
type Trust string

// The values of Options.Conditions.
const (
	TrustAuto Trust = ""      // Amazon's endpoints honour conditions; of others nobody knows
	TrustYes  Trust = "trust" // this endpoint does
)

// Switch turns something on or off, or leaves it to what the endpoint is.
type Switch string

// The values of Options.Checksums.
const (
	Auto Switch = ""
	On   Switch = "on"
	Off  Switch = "off"
)

// Options configure a Store. nil and the zero value are the defaults: Amazon S3, with the region and the credentials
// that the AWS SDK finds.
type Options struct {
	// Prefix of all keys in the bucket; blob.CheckPrefix says which are valid. "": the whole bucket.
	Prefix string
	// Region of the bucket. "": as the SDK finds it; with an Endpoint, us-east-1 if it finds none.
	Region string
	// Endpoint is the URL of a server that speaks the S3 protocol. "": Amazon S3.
	Endpoint string
	// PathStyle puts the bucket into the path instead of the host name.
	PathStyle bool

	// AccessKey, SecretKey and SessionToken are static credentials. "": Credentials.
	AccessKey    string
	SecretKey    string
	SessionToken string
	// Credentials provides credentials. nil: as the SDK finds them.
	Credentials aws.CredentialsProvider

	// Conditions says whether the endpoint honours If-Match and If-None-Match on every kind of write. TrustAuto: only Amazon's
	// does; on others conditional operations are blob.ErrUnsupported.
	Conditions Trust
	// Checksums makes the SDK send checksums of its own with each upload and check those of replies. Auto: on Amazon S3 over TLS only;
	// some other servers refuse them, and some store the framing they come in as data.
	Checksums Switch
	// UnsignedPayload leaves the SHA-256 of bodies out of the signature over plain HTTP. Over TLS it has no
	// effect worth having.
	UnsignedPayload bool

	// Restore says that the bucket is versioned, so that deletes can be undone. The Store does not ask the bucket: on one that is not
	// versioned Restore of an absent key is then blob.ErrNotFound instead of blob.ErrUnsupported.
	Restore bool
	// AllowWholeBucket lets Sweep run with an empty Prefix, over the uploads of all who use the bucket.
	AllowWholeBucket bool

	// PartSize is the size in bytes of all parts of an upload but the last; it grows for objects of more than 10,000 parts.
	// 0: 8 MiB. At least 5 MiB on Amazon S3; smaller values are for servers that take them.
	PartSize int64
	// Threshold is the size in bytes from which a Set goes in parts. 0: PartSize.
	Threshold int64
	// Segment is the size in bytes of a range request of a large Get. 0: 8 MiB.
	Segment int64
	// Gap is how many bytes may lie between two ranges of a GetRanges for one request to read both and throw those
	// away; together they span at most Segment. 0: 64 KiB. -1: only ranges that touch or overlap.
	Gap int64
	// ReadRanges makes reads begin with a range instead of with part 1.
	ReadRanges bool
	// Concurrency is how many requests one operation has in flight, at most. 0: 8.
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
	// Transport sends the requests. nil: one of the Store's own. It must not retry.
	Transport http.RoundTripper
	// Logger gets a line when clean-up fails. nil: none.
	Logger *slog.Logger
}

// String describes o without its secrets.
func (o Options) String() string {
	return fmt.Sprintf("s3blob.Options{Prefix:%q Region:%q Endpoint:%q PathStyle:%t AccessKey:%s SecretKey:%s SessionToken:%s}",
		o.Prefix, o.Region, param.Redact(o.Endpoint), o.PathStyle, param.Hide(o.AccessKey), param.Hide(o.SecretKey), param.Hide(o.SessionToken))
}

// Format implements fmt.Formatter, so that no verb prints secrets. (Inside a struct, in a field that is not exported, package fmt
// does not ask: do not keep Options there.)
func (o Options) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, o.String()) }

// MarshalText implements encoding.TextMarshaler without secrets.
func (o Options) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// LogValue implements slog.LogValuer without secrets.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// Limits of Amazon S3 ("Amazon S3 multipart upload limits", User Guide). An object may have 50 TB there; other
// servers end sooner, by refusing.
const (
	maxPart   = 5 << 30
	maxParts  = 10_000
	maxPut    = 5 << 30
	maxObject = 50 * 1000 * 1000 * 1000 * 1000
	maxKey    = 1024
	maxBatch  = 1000
)

// complete returns a checked copy of opts. What the engine has defaults for is left to it, what the SDK finds to chain.
func complete(bucket string, opts *Options) (*Options, error) {
	o := new(Options)
	if opts != nil {
		*o = *opts
	}
	o.Endpoint = strings.TrimSuffix(o.Endpoint, "/")
	if err := o.check(bucket); err != nil {
		return nil, err
	}
	return o, nil
}

// bucketChars are those of "Bucket naming rules", Amazon S3 User Guide, and those of before 2018.
const bucketChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

func (o *Options) check(bucket string) error {
	if bucket == "" {
		return invalid("the bucket is empty")
	}
	if strings.Trim(bucket, bucketChars) != "" || strings.Trim(bucket, ".") == "" || len(bucket) > 255 {
		return invalid("bucket %q: want letters, digits, '.', '-' and '_'", bucket)
	}
	if _, err := o.engine(); err != nil {
		return err
	}
	if o.Endpoint != "" {
		if _, err := param.ParseEndpoint(o.Endpoint); err != nil {
			return fmt.Errorf("field Endpoint: %w", err)
		}
	}
	switch {
	case o.Conditions != TrustAuto && o.Conditions != TrustYes:
		return invalid("Conditions is %q: want %q or %q", o.Conditions, TrustAuto, TrustYes)
	case o.Checksums != Auto && o.Checksums != On && o.Checksums != Off:
		return invalid("Checksums is %q: want %q, %q or %q", o.Checksums, Auto, On, Off)
	case (o.AccessKey == "") != (o.SecretKey == ""):
		return invalid("AccessKey and SecretKey must be set together")
	case o.SessionToken != "" && o.AccessKey == "":
		return invalid("SessionToken without AccessKey")
	case o.AccessKey != "" && o.Credentials != nil:
		return invalid("AccessKey and Credentials exclude each other")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", blob.ErrInvalidOption, fmt.Sprintf(format, args...))
}

// chain fills in what the SDK finds by itself: credentials and region.
func (o *Options) chain(ctx context.Context) error {
	if o.AccessKey != "" {
		o.Credentials = credentials.NewStaticCredentialsProvider(o.AccessKey, o.SecretKey, o.SessionToken)
	}
	if o.Credentials == nil || o.Region == "" && o.Endpoint == "" {
		cfg, err := awsconfig.LoadDefaultConfig(ctx)
		if err != nil {
			return err
		}
		if o.Credentials == nil {
			o.Credentials = cfg.Credentials
		}
		o.Region = cmp.Or(o.Region, cfg.Region)
	}
	if o.Region == "" && o.Endpoint != "" {
		o.Region = "us-east-1"
	}
	if o.Region == "" {
		return invalid("the region is neither set nor found")
	}
	return nil
}

// amazon reports whether the endpoint is Amazon's own.
func (o *Options) amazon() bool {
	if o.Endpoint == "" {
		return true
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn")
}

func (o *Options) checksums() bool {
	return o.Checksums == On || o.Checksums == Auto && o.amazon() && !strings.HasPrefix(o.Endpoint, "http://")
}

func (o *Options) traits() transfer.Traits {
	trust := o.Conditions == TrustYes || o.amazon()
	t := transfer.Traits{
		Store:            storeName,
		MaxPart:          maxPart,
		MaxParts:         maxParts,
		MaxPut:           maxPut,
		MaxObject:        maxObject,
		PartReads:        true,
		SuffixReads:      true,
		Ordered:          true,
		StartAfter:       true,
		Verify:           !trust,
		SetConditions:    trust,
		DeleteConditions: trust,
		BatchDelete:      maxBatch,
		Restore:          o.Restore,
		Abort:            true,
		Uploads:          true,
		Addressable:      addressable,
		ValidVersion:     wire.EntityTag,
		Batchable:        inXML,
	}
	if o.amazon() {
		t.MinPart = 5 << 20
	}
	return t
}

// addressable refuses what S3 cannot hold ("Object key naming guidelines", User Guide), and what clients, proxies
// and servers on the way are known to fold into another key: a read of "a/../b" must never return "b".
func addressable(key string) bool {
	if len(key) > maxKey || strings.ToValidUTF8(key, "") != key {
		return false
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// inXML reports whether an XML 1.0 document can hold key (production Char). The list of a DeleteObjects is one, and
// what it cannot hold would arrive as another key.
func inXML(key string) bool {
	for _, r := range key {
		switch {
		case r == '\t', r == '\n': // a carriage return would be read as a line feed
		case r < 0x20, r == 0xFFFE, r == 0xFFFF:
			return false
		}
	}
	return true
}

// engine returns the options of the engine, complete and checked.
func (o *Options) engine() (transfer.Options, error) {
	e := transfer.Options{
		Prefix: o.Prefix, Policy: o.Retry,
		PartSize: o.PartSize, Threshold: o.Threshold, Segment: o.Segment, Gap: o.Gap,
		Concurrency: o.Concurrency, InFlight: o.InFlight, Stall: o.Stall, Restarts: o.Restarts, MaxGet: o.MaxGet,
		ReadRanges: o.ReadRanges, SweepAll: o.AllowWholeBucket, Logger: o.Logger,
	}
	err := e.Complete(maxPart, maxPut)
	return e, err
}
