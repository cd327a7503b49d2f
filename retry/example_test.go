package retry_test

import (
	"context"
	"fmt"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
	"github.com/wholeblob/wholeblob/retry"
)

func ExampleNew() {
	store, err := retry.New(memblob.New(nil), retry.Policy{Attempts: 5, Total: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("retries by itself:", store.Capabilities().SelfRetrying)

	again, err := retry.New(store, retry.Policy{})
	fmt.Println("wrapped twice:", again != store, err)
	// Output:
	// retries by itself: true
	// wrapped twice: false <nil>
}

func ExampleDo() {
	counters := new(retry.Counters)
	policy := retry.Policy{FirstDelay: time.Millisecond, Attempts: 3, Counters: counters}
	busy := &blob.Error{Op: blob.OpSet, Store: "s3", Key: "k", Kind: blob.ErrThrottled, Outcome: blob.NotApplied, Status: 503, Code: "SlowDown"}

	call := retry.Call{Op: blob.OpSet, Store: "s3", Key: "k", Effect: retry.AtLeastOnce, Bytes: 4096}
	err := retry.Do(context.Background(), policy, call, func(_ context.Context, a *retry.Attempt) error {
		if a.Number() < 3 {
			return busy
		}
		return nil
	})
	fmt.Println("third time:", err)

	err = retry.Do(context.Background(), policy, call, func(context.Context, *retry.Attempt) error { return busy })
	fmt.Println(err)

	c := counters.Snapshot()
	fmt.Printf("%d calls, %d attempts, %d throttled, %d gave up\n", c.Calls, c.Attempts, c.Throttled, c.GaveUp)
	// Output:
	// third time: <nil>
	// s3: set "k": throttled (outcome not applied; 503 SlowDown; 3 attempts)
	// 2 calls, 6 attempts, 4 throttled, 1 gave up
}
