package blob

import (
	"context"
	"errors"
	"fmt"
)

// Copy reads srcKey of src and sets it as dstKey of dst, with the source's metadata and content type
// unless opts has its own (non-nil Metadata, non-empty ContentType). It returns the Info of the
// new object.
//
// The object is read whole and verified before the first byte is written, so it needs as much memory
// as the object has bytes, and an object above the MaxGet of src is ErrTooLarge. It costs a Get and a Set.
func Copy(ctx context.Context, dst Blob, dstKey string, src Blob, srcKey string, opts *SetOptions) (Info, error) {
	o := deref(opts)
	if _, err := CheckSet(dstKey, Bytes(nil), &o); err != nil {
		return Info{}, err
	}
	obj, err := src.Get(ctx, srcKey, &GetOptions{SkipCache: true})
	if err != nil {
		return Info{}, err
	}
	if err := checkWhole(obj); err != nil {
		return Info{}, Invalid(OpGet, srcKey, err)
	}
	if o.Metadata == nil {
		o.Metadata = obj.Metadata
	}
	if o.ContentType == "" {
		o.ContentType = obj.ContentType
	}
	return dst.Set(ctx, dstKey, Bytes(obj.Data), &o)
}

// checkWhole guards against a Blob that breaks the promise of Get: what goes on from here would be taken
// for the whole object by everyone after us.
func checkWhole(o Object) error {
	return Want{Size: o.Size, HasSize: true}.VerifySize(int64(len(o.Data)))
}

// deletePrefixBatch is how many keys DeletePrefix holds and deletes at a time: one batch
// request on S3 and GCS.
const deletePrefixBatch = 1000

// DeletePrefix deletes every key that begins with prefix and returns how many it deleted. The prefix is a plain
// string prefix: "bar" deletes "bar-baz/1" too; end it with a slash to delete a folder. An empty
// prefix, which would delete everything, is ErrInvalidOption: list and use DeleteAll.
//
// Keys are deleted as they are listed, 1000 at a time, so an error leaves the rest in place and
// another call goes on. Keys set meanwhile may survive. An error of DeleteAll ends it; the keys it names
// are not counted.
func DeletePrefix(ctx context.Context, b Blob, prefix string) (int, error) {
	if prefix == "" {
		return 0, Invalid(OpDeleteAll, "", fmt.Errorf("%w: DeletePrefix with an empty prefix", ErrInvalidOption))
	}
	deleted := 0
	flush := func(keys []string) error {
		err := b.DeleteAll(ctx, keys)
		var d *DeleteError
		if err == nil {
			deleted += len(keys)
		} else if errors.As(err, &d) {
			deleted += len(keys) - len(d.Failed)
		}
		return err
	}
	keys := make([]string, 0, deletePrefixBatch)
	for info, err := range b.List(ctx, prefix, nil) {
		if err != nil {
			return deleted, err
		}
		if keys = append(keys, info.Key); len(keys) == deletePrefixBatch {
			if err := flush(keys); err != nil {
				return deleted, err
			}
			keys = keys[:0]
		}
	}
	if len(keys) == 0 {
		return deleted, nil
	}
	return deleted, flush(keys)
}
