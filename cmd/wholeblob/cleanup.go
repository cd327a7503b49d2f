package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
)

// leftovers are what a run leaves in the store: nothing, unless the clean-up failed.
type leftovers struct {
	deleted int      // objects that the clean-up found and deleted
	names   []string // keys known to be there
	err     error
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
	n, err := deleteAllUnder(ctx, store, prefix)
	if err == nil {
		if stopped || n > 0 {
			fmt.Fprintf(c.stderr, "wholeblob: cleaned up: deleted %d objects under %q, none left\n", n, prefix)
		}
		return leftovers{deleted: n}
	}
	left := leftovers{deleted: n, err: fmt.Errorf("clean-up failed after %d objects, some may be left under %q: %w", n, prefix, err)}
	for info, listErr := range store.List(ctx, prefix, nil) {
		if listErr != nil {
			break // the first error says why; what is known is reported
		}
		left.names = append(left.names, info.Key)
		left.err = errors.Join(left.err, fmt.Errorf("left behind: %q", info.Key))
	}
	return left
}

// cleanupPasses bounds deleteAllUnder on a store that says it deletes and does not.
const cleanupPasses = 3

// deleteAllUnder deletes until a listing is empty: a set that was cut off may still have landed behind the first listing.
func deleteAllUnder(ctx context.Context, store blob.Blob, prefix string) (int, error) {
	total := 0
	for range cleanupPasses {
		n, err := blob.DeletePrefix(ctx, store, prefix)
		total += n
		if n == 0 || err != nil {
			return total, err
		}
	}
	return total, fmt.Errorf("there were objects in each of %d listings", cleanupPasses)
}

func closeStore(ctx context.Context, store blob.Blob) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	return store.Close(ctx)
}
