package blob_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// flush is how a database stores a segment: once, under a name of its own, never over another writer's. It returns
// what goes into the manifest.
func flush(ctx context.Context, store blob.Blob, name string, segment []byte) (blob.Want, error) {
	info, err := store.Set(ctx, "segments/"+name, blob.Bytes(segment), &blob.SetOptions{If: blob.IfAbsent()})
	if errors.Is(err, blob.ErrExists) {
		return blob.Want{}, fmt.Errorf("another writer owns %s: %w", name, err)
	}
	return blob.Want{Size: info.Size, HasSize: true}, err
}

// footer reads the end of a segment and fails unless the segment is the one of the manifest.
func footer(ctx context.Context, store blob.Blob, name string, want blob.Want) ([]byte, error) {
	obj, err := store.Get(ctx, "segments/"+name, &blob.GetOptions{Range: blob.Last(4), Want: want})
	return obj.Data, err
}

// A database embeds a Blob and does not know which: here memblob, as in its unit tests.
func ExampleBlob() {
	ctx, store := context.Background(), memblob.New(nil)
	want, err := flush(ctx, store, "0001", []byte("rows, rows, rows, PAR1"))
	fmt.Println(want.Size, err)
	data, err := footer(ctx, store, "0001", want)
	fmt.Printf("%s %v\n", data, err)
	_, err = flush(ctx, store, "0001", []byte("other rows"))
	fmt.Println(errors.Is(err, blob.ErrExists), blob.OutcomeOf(err))
	// Output:
	// 22 <nil>
	// PAR1 <nil>
	// true not applied
}

// The prefix is a plain string: the final slash keeps it to one folder.
func ExampleDeletePrefix() {
	ctx, store := context.Background(), memblob.New(nil)
	for _, key := range []string{"bar/1", "bar/2", "bar-baz/1"} {
		if _, err := store.Set(ctx, key, blob.Bytes(nil), nil); err != nil {
			fmt.Println(err)
		}
	}
	n, err := blob.DeletePrefix(ctx, store, "bar/")
	fmt.Println(n, err)
	for info, err := range store.List(ctx, "", nil) {
		fmt.Println(info.Key, err)
	}
	// Output:
	// 2 <nil>
	// bar-baz/1 <nil>
}

func ExampleFS() {
	ctx, store := context.Background(), memblob.New(nil)
	if _, err := store.Set(ctx, "logs/today.txt", blob.Bytes([]byte("all is well")), nil); err != nil {
		fmt.Println(err)
	}
	fsys := blob.FS(ctx, store)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		fmt.Println(name, d.IsDir())
		return err
	})
	text, readErr := fs.ReadFile(fsys, "logs/today.txt")
	_, openErr := fsys.Open("logs/yesterday.txt")
	fmt.Println(string(text), err, readErr, errors.Is(openErr, fs.ErrNotExist))
	// Output:
	// . true
	// logs true
	// logs/today.txt false
	// all is well <nil> <nil> true
}

// Two teams share one store and never meet.
func ExamplePrefixed() {
	ctx, store := context.Background(), memblob.New(nil)
	view, err := blob.Prefixed(store, "team")
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := view.Set(ctx, "state", blob.Bytes([]byte("{}")), nil)
	fmt.Println(info.Key, err)
	_, err = store.Stat(ctx, "team/state")
	fmt.Println(err)
	_, err = view.Stat(ctx, "other")
	fmt.Println(err)
	// Output:
	// state <nil>
	// <nil>
	// memory: stat "other": not found
}
