package fileblob_test

import (
	"context"
	"fmt"
	"os"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/fileblob"
)

func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fileblob")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	// Create makes a store where there is none. Without it a directory whose volume is not mounted is ErrNoContainer.
	store, err := fileblob.New(ctx, dir, &fileblob.Options{Create: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"a/b", "a", "a-b", "A"} {
		if _, err := store.Set(ctx, key, blob.Bytes([]byte(key)), nil); err != nil {
			fmt.Println(err)
			return
		}
	}
	for info, err := range store.List(ctx, "", nil) {
		fmt.Println(info.Key, info.Size, err)
	}
	fmt.Println(store.Close(ctx))
	// Output:
	// A 1 <nil>
	// a 1 <nil>
	// a-b 3 <nil>
	// a/b 3 <nil>
	// <nil>
}
