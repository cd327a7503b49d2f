package fakes3

import "time"

// Knobs are steady traits of the server, changed with Server.Set. The zero
// value is a server like Amazon S3.
type Knobs struct {
	Shape

	// Latency is slept before every request is handled. Zero: none.
	Latency time.Duration
	// Bandwidth is the bytes per second of each connection, in bodies of
	// requests and answers. Zero: no limit.
	Bandwidth int64

	// RefuseChecksums is the status (400 or 501) with which checksum headers,
	// algorithm headers and aws-chunked bodies are refused, on every operation
	// with a body but DeleteObjects. Zero: they are honoured.
	RefuseChecksums int
	// RequireContentMD5 makes DeleteObjects demand Content-MD5 and know no
	// other checksum, as servers from before those do.
	RequireContentMD5 bool
	// StoreFraming stores an aws-chunked body with its framing, unverified.
	StoreFraming bool

	// EqualParts refuses Complete (400 InvalidPart) unless all parts but the
	// last have one size and the last is not larger, as Cloudflare R2 does.
	EqualParts bool
	// AllowNoParts lets Complete with no parts make an empty object.
	// False: 400 MalformedXML, as on AWS.
	AllowNoParts bool
	// ForgetUploads answers a repeated Complete with 404 NoSuchUpload instead
	// of the first answer again.
	ForgetUploads bool

	// Order compares keys in listings. Nil: byte order of UTF-8.
	Order func(a, b string) int
	// PageSize is the most entries in a page of any listing. Zero: 1000.
	PageSize int
	// HidesMissing answers 403 AccessDenied for GET and HEAD of absent keys,
	// as AWS does without the permission to list.
	HidesMissing bool
	// LosesMetadata drops user metadata.
	LosesMetadata bool
	// FoldSlashes treats runs of slashes in keys as one and drops leading ones.
	FoldSlashes bool
	// NoBatchDelete answers DeleteObjects with 501 NotImplemented.
	NoBatchDelete bool
}
