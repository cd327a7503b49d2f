package azblob_test

import (
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
)

func TestConformanceOnFake(t *testing.T) {
	for _, mode := range []struct {
		name       string
		edit       func(*azblob.Options)
		knobs      fakeaz.Knobs
		deviations map[string]string
	}{
		{name: "plain", edit: func(*azblob.Options) {}},
		{
			name:  "soft-delete",
			edit:  func(o *azblob.Options) { o.Prefix, o.Restore = "some/prefix", azblob.KeepsDeleted },
			knobs: fakeaz.Knobs{Retention: time.Hour, PageSize: 100, EmptyPages: true},
			deviations: map[string]string{
				"cost/list": "there is an empty page before each page, and those are small",
			},
		},
		{
			name:  "versions",
			edit:  func(o *azblob.Options) { o.Restore = azblob.KeepsVersions },
			knobs: fakeaz.Knobs{Versioning: true, NoBatch: true},
			deviations: map[string]string{
				"cost/deleteall": "batches are refused, and the keys deleted one by one",
			},
		},
	} {
		t.Run(mode.name, func(t *testing.T) {
			srv := fake(t, fakeaz.Options{Knobs: mode.knobs})
			edit := func(o *azblob.Options) { small(o); mode.edit(o) }
			var o azblob.Options
			mode.edit(&o)
			prefix := o.Prefix
			if prefix != "" {
				prefix += "/"
			}
			blobtest.Run(t, func(t *testing.T) blob.Blob { return open(t, srv, edit) }, &blobtest.Config{
				PartSize:   smallPart,
				Pending:    faultsweep.Pending(),
				Deviations: mode.deviations,
				MaxGet: func(t *testing.T, n int64) blob.Blob {
					return open(t, srv, func(o *azblob.Options) { edit(o); o.MaxGet = n })
				},
				Requests: func(blob.Blob) int64 { return int64(len(srv.Log())) },
				Foreign: func(_ *testing.T, _ blob.Blob, key string, data []byte) {
					srv.PutBlob("box", prefix+key, data, nil)
				},
			})
		})
	}
}
