package memblob

import "github.com/wholeblob/wholeblob/blob"

// named completes an error made by package blob or the gate, which do not know the store.
func named(err error) error { return blob.Named(storeName, err) }

// refuse returns the error of an operation that had no effect, as every failure here: nothing is
// published before the last check has passed.
func refuse(op, key string, err error) error {
	return blob.Fail(op, storeName, key, blob.NotApplied, err)
}
