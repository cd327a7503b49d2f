package gcsblob

import (
	"fmt"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
)

// ParseURL reads gs://bucket/prefix?name=value&... into the arguments of New. Credentials have no place in a URL, but the
// path of their file does.
//
// The parameters are the fields of Options: endpoint, credentials_file, anonymous, quota_project, conditions (trust), restore (off,
// soft-delete, versions), part_size, threshold, segment, gap, concurrency, in_flight, stall, max_get, retry_attempts, retry_attempt and
// retry_total. Sizes are written like 8MiB, durations like 30s, switches true or false. An unknown or
// doubled parameter, a wrong value and an empty bucket are errors that match blob.ErrInvalidOption and name it.
func ParseURL(raw string) (bucket string, opts *Options, err error) {
	u, err := param.ParseURL(raw)
	if err != nil {
		return "", nil, openError(err)
	}
	if u.Scheme != "gs" {
		return "", nil, openError(invalid("the URL's scheme is %q, not gs", u.Scheme))
	}
	q := u.Query
	o := &Options{
		Prefix:          strings.TrimPrefix(u.Path, "/"),
		Endpoint:        q.Endpoint("endpoint", ""),
		CredentialsFile: q.String("credentials_file", ""),
		Anonymous:       q.Bool("anonymous", false),
		QuotaProject:    q.String("quota_project", ""),
		Conditions:      Trust(q.Enum("conditions", "", string(TrustYes))),
		PartSize:        q.Size("part_size", 0),
		Threshold:       q.Size("threshold", 0),
		Segment:         q.Size("segment", 0),
		Gap:             q.Size("gap", 0),
		Concurrency:     q.Int("concurrency", 0, 1, 1<<16),
		InFlight:        q.Int("in_flight", 0, 1, 1<<16),
		Stall:           q.Duration("stall", 0),
		MaxGet:          q.Size("max_get", 0),
	}
	if word := q.Enum("restore", "off", "off", string(RestoreSoftDelete), string(RestoreVersions)); word != "off" {
		o.Restore = Restore(word)
	}
	o.Retry.Attempts = q.Int("retry_attempts", 0, 1, 1<<16)
	o.Retry.Attempt = q.Duration("retry_attempt", 0)
	o.Retry.Total = q.Duration("retry_total", 0)
	if err := q.Err(); err != nil {
		return "", nil, openError(err)
	}
	if u.Host == "" {
		return "", nil, openError(fmt.Errorf("%w: the URL names no bucket: want gs://bucket/prefix", blob.ErrInvalidOption))
	}
	if _, err := complete(u.Host, o); err != nil {
		return "", nil, openError(err)
	}
	return u.Host, o, nil
}
