package s3blob

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
)

// Delete implements transfer.Requests.
func (r *requests) Delete(ctx context.Context, key string, cond blob.Condition) error {
	in := &s3.DeleteObjectInput{Bucket: &r.bucket, Key: &key}
	_, in.IfMatch = condition(cond)
	st := &sent{}
	if _, err := r.client.DeleteObject(st.watch(ctx), in); err != nil {
		return r.fault(ctx, err, st)
	}
	return nil
}

// DeleteBatch implements transfer.Requests. The reply has the status 200 whatever became of the keys, so each key must
// be named in it, as deleted or as failed; one that is not is Unknown.
func (r *requests) DeleteBatch(ctx context.Context, keys []string) ([]error, error) {
	ids := make([]types.ObjectIdentifier, len(keys))
	index := make(map[string]int, len(keys))
	for i, k := range keys {
		ids[i] = types.ObjectIdentifier{Key: &keys[i]}
		index[k] = i
	}
	st := &sent{}
	out, err := r.client.DeleteObjects(st.watch(ctx), &s3.DeleteObjectsInput{
		Bucket: &r.bucket, Delete: &types.Delete{Objects: ids},
	})
	if err != nil {
		return nil, r.fault(ctx, err, st)
	}
	errs := make([]error, len(keys))
	for i := range errs {
		errs[i] = &blob.Error{Kind: blob.ErrUnavailable, Err: errors.New("the reply to DeleteObjects does not name the key")}
	}
	for _, d := range out.Deleted {
		if i, ok := index[aws.ToString(d.Key)]; ok {
			errs[i] = nil
		}
	}
	for _, f := range out.Errors {
		if i, ok := index[aws.ToString(f.Key)]; ok {
			errs[i] = keyFault(f)
		}
	}
	return errs, nil
}

// keyFault turns the error of one key of a batch into the engine's. It has a code but no status.
func keyFault(f types.Error) error {
	const unknownCode = 500
	e := &blob.Error{Code: aws.ToString(f.Code), Err: errors.New(aws.ToString(f.Message))}
	v := classify(unknownCode, e.Code)
	e.Kind, e.Outcome = v.Kind, v.Outcome
	return e
}

// Undelete implements transfer.Requests: removing the delete marker that is the newest version makes the
// version below it the current one ("Managing delete markers", Amazon S3 User Guide).
func (r *requests) Undelete(ctx context.Context, v transfer.KeptVersion) error {
	st := &sent{}
	_, err := r.client.DeleteObject(st.watch(ctx), &s3.DeleteObjectInput{Bucket: &r.bucket, Key: &v.Key, VersionId: &v.ID})
	if err != nil {
		return r.fault(ctx, err, st)
	}
	return nil
}
