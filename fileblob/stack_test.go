package fileblob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
	"github.com/wholeblob/wholeblob/retry"
)

// The whole contract holds for the full stack, the rules of concurrency and linearizability among it.
func TestStackConformance(t *testing.T) {
	faultsweep.Conform(t, func(t *testing.T, maxGet int64) blob.Blob {
		return open(t, t.TempDir(), Options{NoSync: true, Restore: true, MaxGet: maxGet})
	}, foreign, "memory", "memory and disk")
}

func TestStackFaultSweep(t *testing.T) {
	faultsweep.Stacks(t, func(t *testing.T) blob.Blob { return open(t, t.TempDir(), Options{NoSync: true, Restore: true}) }, "memory and disk")
}

// Every call of the file system fails beneath the full stack, in each of these operations: what is read afterwards is what is on disk.
func TestStackUnderFailingFiles(t *testing.T) {
	ops := operations()
	for name, o := range map[string]*blob.GetOptions{"get": nil, "get range": {Range: blob.Span(1, faultsweep.Block)}} {
		ops = append(ops, operation{
			name: name, prepare: func(t *testing.T, s *Store) { set(t, s, "a/k", string(make([]byte, 3*faultsweep.Block))) },
			run: func(ctx context.Context, b blob.Blob) error { _, err := b.Get(ctx, "a/k", o); return err },
		})
	}
	tiers := faultsweep.Tiers()["memory"]
	for _, op := range ops {
		for how, policy := range map[string]retry.Policy{"retried": {FirstDelay: time.Microsecond, Attempts: 3}, "not retried": retry.Off()} {
			for _, warm := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/warm %t", op.name, how, warm), func(t *testing.T) {
					t.Parallel()
					over := faultsweep.Stack(t, tiers, policy)
					for _, after := range []bool{false, true} {
						i := 0
						for failUnderStack(t, op, over, warm, i, after) {
							i++
						}
						if reads := strings.HasPrefix(op.name, "get"); i == 0 && !(reads && warm) {
							t.Error("no call was made")
						}
					}
				})
			}
		}
	}
}

// failUnderStack runs op through the stack with call i of the file system failing, and reports whether there was a call i.
func failUnderStack(t *testing.T, op operation, over func(context.Context, blob.Blob) (blob.Blob, error), warm bool, i int, after bool) bool {
	t.Helper()
	s, p := probedStore(t, t.TempDir(), op.opts)
	op.prepare(t, s)
	b, err := over(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if warm {
		if err := faultsweep.Agree(t.Context(), b, s, "a/k"); err != nil {
			t.Fatal(err)
		}
	}
	errno := map[bool]syscall.Errno{false: syscall.ENOSPC, true: syscall.EIO}[after]
	failed := ""
	p.reset(func(n int, call string) (error, bool) {
		if n != i {
			return nil, false
		}
		failed = call
		return errno, after
	})
	err = op.run(t.Context(), b)
	p.reset(nil)
	if err != nil && (failed == "" || !errors.Is(err, errno)) {
		t.Errorf("call %d (%s) failed, after %t: not the error that happened: %v", i, failed, after, err)
	}
	if bad := faultsweep.Agree(t.Context(), b, s, "a/k"); bad != nil {
		t.Errorf("call %d (%s) failed, after %t: %v\nerror of the operation: %v", i, failed, after, bad, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return failed != ""
}
