package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
)

// leftovers are what a run leaves in the store: nothing, unless the clean-up failed.
type leftovers struct {
	names []string // keys known to be there
	err   error
}

// cleanUp deletes the run's objects and closes the store. It goes on when ctx has ended, for cleanupLimit.
func (c command) cleanUp(ctx context.Context, store blob.Blob, prefix string) leftovers {
	left := c.deleteRun(ctx, store, prefix)
	if err := closeStore(ctx, store); err != nil {
		left.err = errors.Join(left.err, fmt.Errorf("closing the store: %w", err))
		var owed *blob.OwedError
		if errors.As(err, &owed) {
			for _, name := range append(owed.Uploads, owed.Files...) {
				left.err = errors.Join(left.err, fmt.Errorf("left behind: %q", name))
			}
		}
	}
	return left
}

func (c command) deleteRun(ctx context.Context, store blob.Blob, prefix string) leftovers {
	stopped := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	n, err := blob.DeletePrefix(ctx, store, prefix)
	if err == nil {
		if stopped || n > 0 {
			fmt.Fprintf(c.stderr, "wholeblob: cleaned up: deleted %d objects under %q, none left\n", n, prefix)
		}
		return leftovers{}
	}
	left := leftovers{err: fmt.Errorf("clean-up failed after %d objects, some may be left under %q: %w", n, prefix, err)}
	for info, listErr := range store.List(ctx, prefix, nil) {
		if listErr != nil {
			break // the first error says why; what is known is reported
		}
		left.names = append(left.names, info.Key)
		left.err = errors.Join(left.err, fmt.Errorf("left behind: %q", info.Key))
	}
	return left
}

func closeStore(ctx context.Context, store blob.Blob) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	return store.Close(ctx)
}
