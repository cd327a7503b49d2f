package main

import (
	"context"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

func openS3(raw string, _ *param.URL) (openFunc, error) {
	bucket, opts, err := s3blob.ParseURL(raw)
	if err != nil {
		return nil, err
	}
	return s3Opener(bucket, opts), nil
}

func s3Opener(bucket string, opts *s3blob.Options) openFunc {
	return func(ctx context.Context, counters *retry.Counters) (blob.Blob, error) {
		o := *opts
		o.Retry.Counters = counters // the store retries by itself, request by request
		s, err := s3blob.New(ctx, bucket, &o)
		if err != nil {
			return nil, err // not s: a nil *Store is no nil Blob
		}
		return s, nil
	}
}
