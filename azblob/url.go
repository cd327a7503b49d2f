package azblob

import (
	"fmt"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
)

// ParseURL reads azblob://container/prefix?name=value&... into the arguments of New. Keys, SAS and connection strings have no place in a URL:
// set them in the Options that it returns, or leave it to the credentials that the SDK finds.
//
// The parameters are the fields of Options: account, endpoint, managed_identity, client_id, anonymous, api_version, conditions (trust), restore
// (soft-delete, versions), part_size, threshold, segment, gap, concurrency, in_flight, stall, max_get, retry_attempts, retry_attempt and
// retry_total. Sizes are written like 8MiB, durations like 30s, switches true or false. An unknown or doubled parameter, a wrong value and
// an empty container are errors that match blob.ErrInvalidOption and name it.
func ParseURL(raw string) (container string, opts *Options, err error) {
	u, err := param.ParseURL(raw)
	if err != nil {
		return "", nil, openError(err)
	}
	if u.Scheme != "azblob" {
		return "", nil, openError(invalid("the URL's scheme is %q, not azblob", u.Scheme))
	}
	q := u.Query
	o := &Options{
		Prefix:          strings.TrimPrefix(u.Path, "/"),
		Account:         q.String("account", ""),
		Endpoint:        q.Endpoint("endpoint", ""),
		ManagedIdentity: q.Bool("managed_identity", false),
		ClientID:        q.String("client_id", ""),
		Anonymous:       q.Bool("anonymous", false),
		APIVersion:      q.String("api_version", ""),
		Conditions:      Trust(q.Enum("conditions", "", string(TrustYes))),
		Restore:         Keeps(q.Enum("restore", "", string(KeepsDeleted), string(KeepsVersions))),
		PartSize:        q.Size("part_size", 0),
		Threshold:       q.Size("threshold", 0),
		Segment:         q.Size("segment", 0),
		Gap:             q.Size("gap", 0),
		Concurrency:     q.Int("concurrency", 0, 1, 1<<16),
		InFlight:        q.Int("in_flight", 0, 1, 1<<16),
		Stall:           q.Duration("stall", 0),
		MaxGet:          q.Size("max_get", 0),
	}
	o.Retry.Attempts = q.Int("retry_attempts", 0, 1, 1<<16)
	o.Retry.Attempt = q.Duration("retry_attempt", 0)
	o.Retry.Total = q.Duration("retry_total", 0)
	if err := q.Err(); err != nil {
		return "", nil, openError(err)
	}
	if u.Host == "" {
		return "", nil, openError(fmt.Errorf("%w: the URL names no container: want azblob://container/prefix", blob.ErrInvalidOption))
	}
	if err := checkURL(u.Host, *o); err != nil {
		return "", nil, openError(err)
	}
	return u.Host, o, nil
}

// checkURL checks what a URL says by itself. Credentials are still to come, so an endpoint without TLS is no fault yet.
func checkURL(container string, o Options) error {
	if !o.ManagedIdentity {
		o.Anonymous = true
	}
	_, err := complete(container, &o)
	return err
}
