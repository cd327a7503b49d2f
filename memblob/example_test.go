package memblob_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

func ExampleNew() {
	ctx := context.Background()
	store := memblob.New(nil)

	info, err := store.Set(ctx, "manifest", blob.Bytes([]byte("v1")), &blob.SetOptions{If: blob.IfAbsent()})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = store.Set(ctx, "manifest", blob.Bytes([]byte("v1, too")), &blob.SetOptions{If: blob.IfAbsent()})
	fmt.Println(errors.Is(err, blob.ErrExists), blob.OutcomeOf(err))

	_, err = store.Set(ctx, "manifest", blob.Bytes([]byte("v2")), &blob.SetOptions{If: blob.IfVersion(info.Version)})
	if err != nil {
		fmt.Println(err)
		return
	}
	obj, err := store.Get(ctx, "manifest", nil)
	fmt.Printf("%s %v\n", obj.Data, err)
	// Output:
	// true not applied
	// v2 <nil>
}
