package s3blob_test

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
	"github.com/wholeblob/wholeblob/s3blob"
)

const smallPart = 4 << 10

func small(o *s3blob.Options) { o.PartSize, o.Segment = smallPart, smallPart }

// prefix returns the prefix that edit sets.
func prefix(edit func(*s3blob.Options)) string {
	var o s3blob.Options
	if edit(&o); o.Prefix == "" {
		return ""
	}
	return o.Prefix + "/"
}

func TestConformanceOnFake(t *testing.T) {
	for _, mode := range []struct {
		name string
		edit func(*s3blob.Options)
	}{
		{"parts", func(*s3blob.Options) {}},
		{"ranges", func(o *s3blob.Options) { o.ReadRanges = true }},
		{"prefix", func(o *s3blob.Options) { o.Prefix = "some/prefix" }},
		{"versioned", func(o *s3blob.Options) { o.Restore = true }},
	} {
		t.Run(mode.name, func(t *testing.T) {
			srv := fake(t, fakes3.Options{MinPartSize: -1, Versioned: mode.name == "versioned"})
			blobtest.Run(t, func(t *testing.T) blob.Blob {
				return open(t, srv, func(o *s3blob.Options) { small(o); mode.edit(o) })
			}, &blobtest.Config{
				PartSize: smallPart,
				Pending:  faultsweep.Pending(),
				MaxGet: func(t *testing.T, n int64) blob.Blob {
					return open(t, srv, func(o *s3blob.Options) { small(o); mode.edit(o); o.MaxGet = n })
				},
				Requests: func(blob.Blob) int64 { return int64(len(srv.Log())) },
				Foreign: func(_ *testing.T, _ blob.Blob, key string, data []byte) {
					srv.PutObject("b", prefix(mode.edit)+key, [][]byte{data}, nil)
				},
			})
		})
	}
}
