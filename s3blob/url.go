package s3blob

import (
	"fmt"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
)

// ParseURL reads s3://bucket/prefix?name=value&... into the arguments of New. Credentials have no place in a URL.
//
// The parameters are the fields of Options: endpoint, region, path_style, conditions (trust), checksums (on, off),
// unsigned_payload, restore, part_size, threshold, segment, gap, read (parts, ranges), concurrency, in_flight, stall, max_get, retry_attempts,
// retry_attempt and retry_total. Sizes are written like 8MiB, durations like 30s, switches true or false. An unknown or
// doubled parameter, a wrong value and an empty bucket are errors that match blob.ErrInvalidOption and name it.
func ParseURL(raw string) (bucket string, opts *Options, err error) {
	u, err := param.ParseURL(raw)
	if err != nil {
		return "", nil, openError(err)
	}
	if u.Scheme != "s3" {
		return "", nil, openError(invalid("the URL's scheme is %q, not s3", u.Scheme))
	}
	q := u.Query
	o := &Options{
		Prefix:          strings.TrimPrefix(u.Path, "/"),
		Endpoint:        q.Endpoint("endpoint", ""),
		Region:          q.String("region", ""),
		PathStyle:       q.Bool("path_style", false),
		Conditions:      Trust(q.Enum("conditions", "", string(TrustYes))),
		Checksums:       Switch(q.Enum("checksums", "", string(On), string(Off))),
		UnsignedPayload: q.Bool("unsigned_payload", false),
		Restore:         q.Bool("restore", false),
		PartSize:        q.Size("part_size", 0),
		Threshold:       q.Size("threshold", 0),
		Segment:         q.Size("segment", 0),
		Gap:             q.Size("gap", 0),
		ReadRanges:      q.Enum("read", "parts", "parts", "ranges") == "ranges",
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
		return "", nil, openError(fmt.Errorf("%w: the URL names no bucket: want s3://bucket/prefix", blob.ErrInvalidOption))
	}
	if _, err := complete(u.Host, o); err != nil {
		return "", nil, openError(err)
	}
	return u.Host, o, nil
}
