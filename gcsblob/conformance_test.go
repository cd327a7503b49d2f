package gcsblob_test

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
)

func TestConformanceOnFake(t *testing.T) {
	for _, mode := range []struct {
		name   string
		opts   fakegcs.Options
		edit   func(*gcsblob.Options)
		prefix string
	}{
		{"sessions", fakegcs.Options{}, func(*gcsblob.Options) {}, ""},
		{"prefix", fakegcs.Options{}, func(o *gcsblob.Options) { o.Prefix = "some/prefix" }, "some/prefix/"},
		{"soft delete", fakegcs.Options{}, func(o *gcsblob.Options) { o.Restore = gcsblob.RestoreSoftDelete }, ""},
		{"versions", fakegcs.Options{Versioned: true}, func(o *gcsblob.Options) { o.Restore = gcsblob.RestoreVersions }, ""},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			srv := fake(t, mode.opts)
			blobtest.Run(t, func(t *testing.T) blob.Blob { return open(t, srv, small, mode.edit) }, &blobtest.Config{
				PartSize: 4 << 10,
				Pending:  faultsweep.Pending(),
				MaxGet: func(t *testing.T, n int64) blob.Blob {
					return open(t, srv, small, mode.edit, func(o *gcsblob.Options) { o.MaxGet = n })
				},
				Requests: func(blob.Blob) int64 { return int64(len(srv.Log())) },
				Foreign: func(_ *testing.T, _ blob.Blob, key string, data []byte) {
					srv.PutObject("b", mode.prefix+key, data, nil)
				},
			})
		})
	}
}
