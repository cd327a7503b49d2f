package azblob_test

import (
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/retry"
)

// openAzurite returns a store on one container of an Azurite.
func openAzurite(t testing.TB, srv *realserver.Azure, container string, edit func(*azblob.Options)) *azblob.Store {
	t.Helper()
	o := &azblob.Options{
		Endpoint: srv.Endpoint, Account: srv.Account, AccountKey: srv.Key,
		Conditions: azblob.TrustYes,
		Retry:      retry.Policy{FirstDelay: 5 * time.Millisecond, Attempts: 4},
	}
	if edit != nil {
		edit(o)
	}
	st, err := azblob.New(t.Context(), container, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, st) })
	return st
}

func TestConformanceOnAzurite(t *testing.T) {
	srv := realserver.Azurite(t)
	container := srv.NewContainer(t)
	blobtest.Run(t, func(t *testing.T) blob.Blob { return openAzurite(t, srv, container, small) }, &blobtest.Config{
		PartSize:   smallPart,
		Pending:    faultsweep.Pending(),
		Deviations: azurite,
		Racy:       azuriteRacy,
		MaxGet: func(t *testing.T, n int64) blob.Blob {
			return openAzurite(t, srv, container, func(o *azblob.Options) { small(o); o.MaxGet = n })
		},
	})
}

// azurite are the rules that Azurite breaks by itself.
var azurite = map[string]string{
	"get/missing-key":                   "If-Match on a blob that is not there is answered 412",
	"list/delimiter-several-characters": "only the first character of a delimiter counts",
}

// azuriteRacy are the rules that it breaks when two requests meet in the wrong order.
var azuriteRacy = map[string]string{
	"linear/sets":             uncommitted,
	"linear/sets-and-deletes": uncommitted,
}

const uncommitted = "Put Blob with If-None-Match: * is refused as long as somebody's uncommitted blocks wait for the key, as if the blob existed"
