package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
	"github.com/wholeblob/wholeblob/memblob"
	"github.com/wholeblob/wholeblob/retry"
)

// opener checks a whole URL of its scheme and does no I/O. raw is what u was parsed from.
type opener func(raw string, u *param.URL) (openFunc, error)

// openFunc makes the store; its retries are counted in counters.
type openFunc func(ctx context.Context, counters *retry.Counters) (blob.Blob, error)

// stores are the schemes of the URLs. The map is made anew for each run.
func stores() map[string]opener {
	return map[string]opener{"mem": openMem, "file": openFile, "s3": openS3}
}

// target is a store that can be opened.
type target struct {
	name     string // to show: a URL without parameters
	embedded bool
	open     openFunc
	stop     func() // ends what was started for it; may be nil
}

// findStore checks a URL. Its errors name what is wrong and show no credentials.
func findStore(raw string, stores map[string]opener) (target, error) {
	u, err := param.ParseURL(raw)
	if err != nil {
		return target{}, &badUsage{err}
	}
	open, ok := stores[u.Scheme]
	if !ok {
		return target{}, usageError("unsupported URL scheme %q: want one of %s", u.Scheme, strings.Join(slices.Sorted(maps.Keys(stores)), ", "))
	}
	f, err := open(raw, u)
	if err != nil {
		return target{}, &badUsage{err}
	}
	return target{name: u.String(), open: f}, nil
}

func openMem(_ string, u *param.URL) (openFunc, error) {
	if u.Host != "" || u.Path != "" {
		return nil, fmt.Errorf("%w: URL %q: want mem:// and nothing after it", blob.ErrInvalidOption, u)
	}
	if err := u.Query.Err(); err != nil {
		return nil, err
	}
	return func(_ context.Context, counters *retry.Counters) (blob.Blob, error) {
		return retried(memblob.New(nil), counters)
	}, nil
}

// retried puts the retry loop around a store that has none of its own.
func retried(s blob.Blob, counters *retry.Counters) (blob.Blob, error) {
	b, err := retry.New(s, retry.Policy{Counters: counters})
	if err != nil {
		return nil, errors.Join(err, s.Close(context.Background()))
	}
	return b, nil
}
