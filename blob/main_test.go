package blob_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// put sets keys, each with its own name as content.
func put(t *testing.T, b blob.Blob, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if _, err := b.Set(t.Context(), k, blob.Bytes([]byte(k)), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// keysOf lists all keys.
func keysOf(t *testing.T, b blob.Blob) []string {
	t.Helper()
	var keys []string
	for info, err := range b.List(t.Context(), "", nil) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}
