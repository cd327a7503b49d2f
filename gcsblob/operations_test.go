package gcsblob_test

import (
	"context"
	"strconv"

	"github.com/wholeblob/wholeblob/blob"
)

func text(n int64) string { return strconv.FormatInt(n, 10) }

// operations are all that send requests, on the key k.
var operations = map[string]func(context.Context, blob.Blob) error{
	"get":  func(ctx context.Context, b blob.Blob) error { _, err := b.Get(ctx, "k", nil); return err },
	"stat": func(ctx context.Context, b blob.Blob) error { _, err := b.Stat(ctx, "k"); return err },
	"getranges": func(ctx context.Context, b blob.Blob) error {
		_, err := b.GetRanges(ctx, "k", []blob.Range{blob.Span(0, 5), blob.Span(9000, 9)}, nil)
		return err
	},
	"set":           func(ctx context.Context, b blob.Blob) error { return setN(ctx, b, 10, blob.Condition{}) },
	"set if absent": func(ctx context.Context, b blob.Blob) error { return setN(ctx, b, 10, blob.IfAbsent()) },
	"set chunks":    func(ctx context.Context, b blob.Blob) error { return setN(ctx, b, 2*chunk+9, blob.Condition{}) },
	"set chunks if absent": func(ctx context.Context, b blob.Blob) error {
		return setN(ctx, b, 2*chunk+9, blob.IfAbsent())
	},
	"list": func(ctx context.Context, b blob.Blob) error {
		for _, err := range b.List(ctx, "", nil) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"delete":    func(ctx context.Context, b blob.Blob) error { return b.Delete(ctx, "other", nil) },
	"deleteall": func(ctx context.Context, b blob.Blob) error { return b.DeleteAll(ctx, []string{"x"}) },
}

func setN(ctx context.Context, b blob.Blob, n int, c blob.Condition) error {
	_, err := b.Set(ctx, "new", blob.Bytes(content(n)), &blob.SetOptions{If: c})
	return err
}
