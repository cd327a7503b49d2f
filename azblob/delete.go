package azblob

import (
	"context"
	"errors"
	"net/http"

	sdkblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/wholeblob/wholeblob/blob"
)

// withSnapshots deletes a blob and its snapshots. A blob that has any is not deleted otherwise: 409 SnapshotsPresent ("Delete Blob").
func withSnapshots() *sdkblob.DeleteSnapshotsOptionType {
	v := sdkblob.DeleteSnapshotsOptionTypeInclude
	return &v
}

// Delete implements transfer.Requests.
func (r *requests) Delete(ctx context.Context, key string, cond blob.Condition) error {
	st := &sent{}
	_, err := r.client.NewBlobClient(key).Delete(st.watch(ctx), &sdkblob.DeleteOptions{
		DeleteSnapshots: withSnapshots(), AccessConditions: conditions(cond),
	})
	if err != nil {
		return r.fault(ctx, err, st)
	}
	return nil
}

// DeleteBatch implements transfer.Requests. The SDK builds and signs the batch and its parts; the reply is read by batch, since the SDK's reader
// trusts the numbers in it.
func (r *requests) DeleteBatch(ctx context.Context, keys []string) ([]error, error) {
	builder, err := r.client.NewBatchBuilder()
	for i := 0; i < len(keys) && err == nil; i++ {
		err = builder.Delete(keys[i], &container.BatchDeleteOptions{DeleteOptions: sdkblob.DeleteOptions{DeleteSnapshots: withSnapshots()}})
	}
	if err != nil {
		return nil, &blob.Error{Kind: blob.ErrUnsupported, Outcome: blob.NotApplied, Err: scrub(err, r.secrets)}
	}
	st := &sent{batch: newBatch(len(keys))}
	_, err = r.client.SubmitBatch(st.watch(ctx), builder, nil)
	switch {
	case errors.Is(err, errBatchRead):
		return st.batch.errs, nil
	case err == nil: // an answer that says nothing of the keys
		return nil, &blob.Error{Kind: blob.ErrUnavailable, Status: st.status, Err: errors.New("a batch was answered without results")}
	}
	e := r.fault(ctx, err, st)
	if st.status != 0 && noBatches(e) {
		e.Kind = blob.ErrUnsupported // the engine deletes the keys one by one instead
	}
	return nil, e
}

// noBatches reports whether the refusal of a whole batch can be one of batches as such: emulators and kinds of accounts that have
// none, and signatures that are not for the whole container.
func noBatches(e *blob.Error) bool {
	if e.Outcome != blob.NotApplied || e.Status == http.StatusUnauthorized {
		return false
	}
	switch e.Kind {
	case blob.ErrUnsupported, blob.ErrInvalidOption, blob.ErrPermission, blob.ErrNotFound:
		return true
	}
	return false
}
