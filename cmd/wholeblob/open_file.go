package main

import (
	"context"
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/fileblob"
	"github.com/wholeblob/wholeblob/internal/param"
	"github.com/wholeblob/wholeblob/retry"
)

func openFile(_ string, u *param.URL) (openFunc, error) {
	if u.Host != "" || u.Path == "" {
		return nil, fmt.Errorf("%w: URL %q: want file:///dir with three slashes and an absolute path", blob.ErrInvalidOption, u)
	}
	opts := &fileblob.Options{
		Create:  u.Query.Bool("create", true), // a bench is often the first use of a directory
		NoSync:  u.Query.Bool("nosync", false),
		Restore: u.Query.Bool("restore", false),
	}
	if err := u.Query.Err(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, counters *retry.Counters) (blob.Blob, error) {
		s, err := fileblob.New(ctx, u.Path, opts)
		if err != nil {
			return nil, err
		}
		return retried(s, counters)
	}, nil
}
