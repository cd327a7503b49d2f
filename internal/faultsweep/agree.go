package faultsweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// Agree reads keys through a decorator of store, in every way there is and then once more, and returns an error if any answer is
// not the one of store. Nothing may write them meanwhile.
//
// A Stat comes first, and ranges come before the whole: what is read whole would replace what is left of an earlier version.
func Agree(ctx context.Context, through, store blob.Blob, keys ...string) error {
	for _, key := range keys {
		want, wantErr := store.Get(ctx, key, nil)
		if wantErr != nil && !errors.Is(wantErr, blob.ErrNotFound) {
			return fmt.Errorf("reading %q from the store itself: %w", key, wantErr)
		}
		a := agreement{through, key, want, wantErr != nil}
		for look := 1; look <= 2; look++ {
			if err := a.all(ctx); err != nil {
				return fmt.Errorf("look %d at %q: %w", look, key, err)
			}
			if a.absent {
				break // nothing is left of what is not there
			}
		}
		if err := a.another(ctx); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	return nil
}

// warm reads keys through a cache of store in every way there is, and waits until each that is there is kept: reading it once more
// costs no request, or the one question of a cache that revalidates. cost is how many requests a read costs.
func warm(t *testing.T, through, store blob.Blob, cost func(read func()) int, revalidates bool, keys ...string) {
	t.Helper()
	if err := Agree(t.Context(), through, store, keys...); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		eventually(t, fmt.Sprintf("%q to be kept", key), func() bool {
			var err error
			n := cost(func() { _, err = through.Get(t.Context(), key, nil) })
			if err != nil && !errors.Is(err, blob.ErrNotFound) {
				t.Fatal(err)
			}
			return err != nil || n == 0 || n == 1 && revalidates
		})
	}
}

// agreement compares reads of a key with what the store has.
type agreement struct {
	through blob.Blob
	key     string
	want    blob.Object
	absent  bool
}

func (a *agreement) all(ctx context.Context) error {
	info, err := a.through.Stat(ctx, a.key)
	if err := a.same(blob.OpStat, info, err); err != nil {
		return err
	}
	ranges := a.ranges()
	for _, r := range ranges {
		obj, err := a.through.Get(ctx, a.key, &blob.GetOptions{Range: r})
		if err := a.sameBytes(fmt.Sprint(blob.OpGet, " of ", r), r, obj, err); err != nil {
			return err
		}
	}
	objs, err := a.through.GetRanges(ctx, a.key, ranges, nil)
	if err == nil && len(objs) != len(ranges) {
		return fmt.Errorf("%s returns %d objects for %d ranges", blob.OpGetRanges, len(objs), len(ranges))
	}
	for i, r := range ranges {
		var obj blob.Object
		if err == nil {
			obj = objs[i]
		}
		if err := a.sameBytes(fmt.Sprint(blob.OpGetRanges, " with ", r), r, obj, err); err != nil {
			return err
		}
	}
	obj, err := a.through.Get(ctx, a.key, nil)
	if err := a.sameBytes(blob.OpGet, blob.Range{}, obj, err); err != nil {
		return err
	}
	if a.absent {
		return nil
	}
	obj, err = a.through.Get(ctx, a.key, &blob.GetOptions{If: blob.IfVersion(a.want.Version), Range: blob.Span(0, 9)})
	return a.sameBytes("Get of the version", blob.Span(0, 9), obj, err)
}

// another reads a version that never was.
func (a *agreement) another(ctx context.Context) error {
	if _, err := a.through.Get(ctx, a.key, &blob.GetOptions{If: blob.IfVersion("another")}); !errors.Is(err, blob.ErrPrecondition) && !a.absent {
		return fmt.Errorf("a read of another version: %v", err) //nolint:errorlint // it may be nil
	}
	return nil
}

// ranges are within a part, across two, at the end by two ways, and nothing.
func (a *agreement) ranges() []blob.Range {
	size := a.want.Size
	return []blob.Range{
		blob.Span(size/2, 10), blob.Span(size/3, size/3+1), blob.Last(min(7, size)), blob.From(size - size/4), blob.Span(0, 0), blob.Span(0, 5),
	}
}

func (a *agreement) same(what string, info blob.Info, err error) error {
	switch {
	case a.absent && !errors.Is(err, blob.ErrNotFound):
		return fmt.Errorf("%s finds version %q of %d bytes, error %w; the store has nothing", what, info.Version, info.Size, err)
	case a.absent:
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case info.Key != a.want.Key || info.Size != a.want.Size || info.Version != a.want.Version || info.ContentType != a.want.ContentType ||
		!info.ModTime.Equal(a.want.ModTime) || !maps.Equal(info.Metadata, a.want.Metadata):
		return fmt.Errorf("%s says %+v, the store %+v", what, info, a.want.Info)
	}
	return nil
}

func (a *agreement) sameBytes(what string, r blob.Range, obj blob.Object, err error) error {
	if err := a.same(what, obj.Info, err); err != nil || a.absent {
		return err
	}
	off, n, err := r.Resolve(a.want.Size)
	if err != nil {
		return err
	}
	if obj.Offset != off || !bytes.Equal(obj.Data, a.want.Data[off:off+n]) {
		return fmt.Errorf("%s returns %d bytes from %d that are not the %d bytes of the store from %d", what, len(obj.Data), obj.Offset, n, off)
	}
	return nil
}
