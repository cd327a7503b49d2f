package azblob

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/retry"
)

// Trust says who vouches for an ability of the endpoint.
type Trust string

// The values of Options.Conditions.
const (
	TrustAuto Trust = ""      // Azure's own endpoints honour conditions; of others nobody knows
	TrustYes  Trust = "trust" // this endpoint does
)

// Keeps says what the account keeps of a deleted blob.
type Keeps string

// The values of Options.Restore.
const (
	KeepsNothing  Keeps = ""
	KeepsDeleted  Keeps = "soft-delete" // "Soft delete for blobs" is on, versioning is off
	KeepsVersions Keeps = "versions"    // "Blob versioning" is on
)

// Options configure a Store. nil and the zero value are the defaults. The zero value names no account, so one of Account, Endpoint and
// ConnectionString is needed; without credentials the Store uses those that the Azure SDK finds.
type Options struct {
	// Prefix of all keys in the container; blob.CheckPrefix says which are valid. "": the whole container.
	Prefix string
	// Account is the name of the storage account. "": as Endpoint or ConnectionString has it.
	Account string
	// Endpoint is the URL of the blob service. "": that of Account in Azure's public cloud. The URL of an emulator ends in the name of the
	// account: http://127.0.0.1:10000/account.
	Endpoint string

	// At most one of the following kinds of credentials; none of them: azidentity.NewDefaultAzureCredential. Tokens (that one,
	// Credential, ManagedIdentity) are never sent over plain HTTP, a SAS only to a loopback address.

	// AccountKey is one of the account's two keys, in base64.
	AccountKey string
	// SAS is a shared access signature, the query string of a URL with or without its question mark.
	SAS string
	// ConnectionString is what Azure's portal calls so: account, key or SAS, and endpoint in one.
	ConnectionString string
	// Credential provides tokens.
	Credential azcore.TokenCredential
	// ManagedIdentity uses the identity of the machine or pod, and ClientID, if set, the one user-assigned identity with this client id.
	ManagedIdentity bool
	ClientID        string
	// Anonymous sends no credentials, for containers that anybody may read.
	Anonymous bool

	// APIVersion is the version of the service's protocol, as a date like 2026-12-06. "": the one that the SDK was made for. An emulator
	// that refuses it wants an older one.
	APIVersion string
	// Conditions says whether the endpoint honours If-Match and If-None-Match on every kind of write. TrustAuto: only Azure's
	// do; on others conditional operations are blob.ErrUnsupported.
	Conditions Trust
	// Restore says what the account keeps of deleted blobs. The Store does not ask the account: with a wrong value Restore of an absent
	// key is blob.ErrNotFound or blob.ErrUnsupported although something could be brought back.
	Restore Keeps

	// PartSize is the size in bytes of all blocks of an upload but the last; it grows for objects of more than 50,000 blocks.
	// 0: 8 MiB. At most 4000 MiB.
	PartSize int64
	// Threshold is the size in bytes from which a Set goes in blocks. 0: PartSize. At most 5000 MiB.
	Threshold int64
	// Segment is the size in bytes of a range request of a large Get. 0: 8 MiB.
	Segment int64
	// Gap is how many bytes may lie between two ranges of a GetRanges for one request to read both and throw those
	// away; together they span at most Segment. 0: 64 KiB. -1: only ranges that touch or overlap.
	Gap int64
	// Concurrency is how many requests one operation has in flight, at most. 0: 8.
	Concurrency int
	// InFlight is how many requests all operations of the Store have in flight, at most. 0: 128.
	InFlight int
	// Stall is how long a body may stand still, sent or received, before the attempt is ended and another begins. 0: 20 s.
	// retry.NoLimit: for ever. The wait for a reply is bounded by Retry.Attempt.
	Stall time.Duration
	// Restarts is how often a read starts over when its object changes under it, and a Set whose blocks another writer has discarded.
	// 0: 3. -1: never.
	Restarts int
	// MaxGet bounds the bytes of one Get or GetRanges. 0: blob.DefaultMaxGet.
	MaxGet int64

	// Retry is the policy for each request. The zero Policy is the default of package retry.
	Retry retry.Policy
	// Transport sends the requests to the blob service (those for tokens go their own way). nil: one of the Store's own. It must not retry.
	Transport http.RoundTripper
	// Logger gets a line when clean-up fails. nil: none.
	Logger *slog.Logger
}

// String describes o without its secrets.
func (o Options) String() string {
	return fmt.Sprintf("azblob.Options{Prefix:%q Account:%q Endpoint:%q AccountKey:%s SAS:%s ConnectionString:%s ManagedIdentity:%t ClientID:%q Anonymous:%t}",
		o.Prefix, o.Account, param.Redact(o.Endpoint), param.Hide(o.AccountKey), param.Hide(o.SAS), param.Hide(o.ConnectionString), o.ManagedIdentity, o.ClientID, o.Anonymous)
}

// Format implements fmt.Formatter, so that no verb prints secrets. (Inside a struct, in a field that is not exported, package fmt
// does not ask: do not keep Options there.)
func (o Options) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, o.String()) }

// MarshalText implements encoding.TextMarshaler without secrets.
func (o Options) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// LogValue implements slog.LogValuer without secrets.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// complete returns a checked copy of opts with account and credentials resolved. What the engine has defaults for is left to it.
func complete(container string, opts *Options) (*Options, error) {
	o := new(Options)
	if opts != nil {
		*o = *opts
	}
	if err := checkContainer(container); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := o.account(); err != nil {
		return nil, err
	}
	return o, nil
}

// checkContainer follows "Naming and Referencing Containers, Blobs, and Metadata". The container $root is left out: its blobs can have no
// slash in their names.
func checkContainer(name string) error {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	switch {
	case name == "":
		return invalid("the container is empty")
	case name == "$web", name == "$logs":
		return nil
	case len(name) < 3, len(name) > 63, strings.Trim(name, letters+"-") != "", strings.Contains(name, "--"),
		strings.HasPrefix(name, "-"), strings.HasSuffix(name, "-"):
		return invalid("container %q: want 3 to 63 lower-case letters, digits and single hyphens, the first and the last no hyphen", name)
	}
	return nil
}

func (o *Options) check() error {
	if _, err := o.engine(); err != nil {
		return err
	}
	switch {
	case o.Conditions != TrustAuto && o.Conditions != TrustYes:
		return invalid("Conditions is %q: want %q or %q", o.Conditions, TrustAuto, TrustYes)
	case o.Restore != KeepsNothing && o.Restore != KeepsDeleted && o.Restore != KeepsVersions:
		return invalid("Restore is %q: want %q, %q or %q", o.Restore, KeepsNothing, KeepsDeleted, KeepsVersions)
	case o.ClientID != "" && !o.ManagedIdentity:
		return invalid("ClientID without ManagedIdentity")
	}
	if o.APIVersion != "" {
		if _, err := time.Parse(time.DateOnly, o.APIVersion); err != nil {
			return invalid("APIVersion is %q: want a date like 2026-12-06", o.APIVersion)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", blob.ErrInvalidOption, fmt.Sprintf(format, args...))
}

// engine returns the options of the engine, complete and checked.
func (o *Options) engine() (transfer.Options, error) {
	e := transfer.Options{
		Prefix: o.Prefix, Policy: o.Retry,
		PartSize: o.PartSize, Threshold: o.Threshold, Segment: o.Segment, Gap: o.Gap,
		Concurrency: o.Concurrency, InFlight: o.InFlight, Stall: o.Stall, Restarts: o.Restarts, MaxGet: o.MaxGet,
		SweepAll: true, // there is nothing that a Sweep could take from others
		Logger:   o.Logger,
	}
	err := e.Complete(maxPart, maxPut)
	return e, err
}
