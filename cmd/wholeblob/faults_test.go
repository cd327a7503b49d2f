package main

import (
	"testing"
	"testing/synctest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

func TestBrokenStoresAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		fault blobtest.Fault
		want  string
	}{
		"get corrupt":   {blobtest.Fault{Do: blobtest.Corrupt, Op: blob.OpGet, Call: 7}, "MISMATCH: get"},
		"get truncated": {blobtest.Fault{Do: blobtest.Truncate, Op: blob.OpGet, Call: 7}, "MISMATCH: get"},
		"get empty":     {blobtest.Fault{Do: blobtest.Truncate, Op: blob.OpGet, Call: 7, Keep: -1}, "MISMATCH: get"},
		"set corrupt":   {blobtest.Fault{Do: blobtest.Corrupt, Op: blob.OpSet, Call: 7}, "MISMATCH: get"},
		"set truncated": {blobtest.Fault{Do: blobtest.Truncate, Op: blob.OpSet, Call: 7}, "MISMATCH: list"},
		"list ends":     {blobtest.Fault{Do: blobtest.Truncate, Op: blob.OpList, Call: 2}, "MISMATCH: list"},
		"get fails":     {blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpGet, Call: 7, Err: blob.ErrPermission}, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memblob.New(nil)
			o := runStore(t, t.Context(), blobtest.NewFaults(mem, c.fault), "--sizes=4095", "--count=20")
			o.want(t, exitFail, c.want, "wholeblob-bench-")
			wantEmpty(t, mem)
		})
	}
}

func TestFaultsThatPassAreRetriedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memblob.New(nil)
		store := blobtest.NewFaults(mem,
			blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpSet, Call: 3},
			blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpGet, Call: 4, Times: 1},
			blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpDelete, Call: 5},
			blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpList, Call: 2},
			blobtest.Fault{Do: blobtest.Throttle, Op: blob.OpGet, Call: 9},
		)
		o := runStore(t, t.Context(), store, "--json", "--sizes=4095", "--count=20", "--concurrency=1")
		o.want(t, exitOK)
		if r := parseReport(t, o); r.Retries != (Retries{Unavailable: 4, Throttled: 1}) || r.Errors != 0 {
			t.Errorf("retries %+v, %d errors; injected %v", r.Retries, r.Errors, store.Injected())
		}
		wantEmpty(t, mem)
	})
}
