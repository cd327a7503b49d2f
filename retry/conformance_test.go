package retry

import (
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

// quick retries often enough that no chance of the faults below is noticed.
var quick = Policy{FirstDelay: time.Microsecond, MaxDelay: 100 * time.Microsecond, Attempts: 40}

// TestConformance runs the whole contract over the decorator: undisturbed, and with a third of all calls
// failing beneath it in each way that a caller must not notice.
func TestConformance(t *testing.T) {
	hit := func(do blobtest.Action, op string, keep int64) blobtest.Fault {
		return blobtest.Fault{
			Do: do, Op: op, Keep: keep, Chance: 0.3, RetryAfter: time.Microsecond,
			// An object that is not what Want says fails every time, and the error in the end is that of the last attempt.
			Key: func(key string) bool { return !strings.Contains(key, "/want") },
		}
	}
	for name, plan := range map[string][]blobtest.Fault{
		"undisturbed": nil,
		"fail before": {hit(blobtest.FailBefore, "", 0)},
		"throttle":    {hit(blobtest.Throttle, "", 0)},
		// Not of Set and Delete, where the caller has to resolve a lost reply if there is a condition, nor of Restore, whose
		// failures are of Unknown outcome after one.
		"lost reply": {
			hit(blobtest.FailAfter, blob.OpGet, 0), hit(blobtest.FailAfter, blob.OpGetRanges, 0), hit(blobtest.FailAfter, blob.OpStat, 0),
			hit(blobtest.FailAfter, blob.OpList, 0), hit(blobtest.FailAfter, blob.OpList, 1), hit(blobtest.FailAfter, blob.OpDeleteAll, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := func(t *testing.T, opts memblob.Options) blob.Blob {
				b, err := New(blobtest.NewFaults(memblob.New(&opts), plan...), quick)
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			blobtest.Run(t, func(t *testing.T) blob.Blob { return over(t, memblob.Options{Restore: true}) }, &blobtest.Config{
				MaxGet:  func(t *testing.T, n int64) blob.Blob { return over(t, memblob.Options{Restore: true, MaxGet: n}) },
				Pending: map[string]string{"set/sha256": "stored checksums"},
			})
		})
	}
}

func TestALostReplyOfAConditionalSetIsReportedNotRepeated(t *testing.T) {
	faults := blobtest.NewFaults(memblob.New(nil), blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpSet, Call: 1})
	b, err := New(faults, quick)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Set(t.Context(), "key", blob.Bytes([]byte("mine")), &blob.SetOptions{If: blob.IfAbsent()})
	wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.Unknown), 1, true)
	if n := faults.Calls(blob.OpSet); n != 1 {
		t.Errorf("%d attempts, want 1: the second would have met the object of the first", n)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
