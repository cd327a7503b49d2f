package gcsblob

import (
	"context"

	"cloud.google.com/go/storage"

	"github.com/wholeblob/wholeblob/blob"
)

// Delete implements transfer.Requests.
func (r *requests) Delete(ctx context.Context, key string, cond blob.Condition) error {
	obj := r.object(key)
	if gen, ok := generation(cond); ok {
		obj = obj.If(storage.Conditions{GenerationMatch: gen})
	}
	st := &sent{}
	if err := obj.Delete(st.watch(ctx)); err != nil {
		return r.fault(ctx, err, st)
	}
	return nil
}

// DeleteBatch implements transfer.Requests. There is none: the engine never asks. The service's batch endpoint ("Batch requests", JSON
// API) takes 100 requests in one body, each of which it authorises, limits and answers by itself, so it saves connections and not
// work, and one lost reply leaves 100 keys in doubt.
func (r *requests) DeleteBatch(context.Context, []string) ([]error, error) {
	return nil, unsupported()
}
