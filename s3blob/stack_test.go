package s3blob_test

import (
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

// The full stack is a cache over retry.New over a store. On S3 the middle one is the store itself, which retries by itself.

// The whole contract holds for it, the rules of concurrency and linearizability among it.
func TestStackConformance(t *testing.T) {
	for _, name := range []string{"memory", "memory and disk", "always"} {
		o := faultsweep.Tiers()[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keeps := o.Revalidate == 0 && o.Disk == 0 // a cache that does not ask might keep what was there before a Restore
			srv := fake(t, fakes3.Options{MinPartSize: -1, Versioned: keeps})
			over := func(t *testing.T, maxGet int64) blob.Blob {
				t.Helper()
				opts, tiers := options(srv), o
				small(opts)
				opts.Restore, opts.MaxGet, tiers.MaxGet = keeps, maxGet, maxGet
				st, err := s3blob.New(t.Context(), "b", opts)
				if err != nil {
					t.Fatal(err)
				}
				b, err := faultsweep.Stack(t, tiers, retry.Policy{})(t.Context(), st)
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			blobtest.Run(t, func(t *testing.T) blob.Blob { return over(t, 0) }, &blobtest.Config{
				PartSize: smallPart,
				Pending:  faultsweep.Pending(),
				MaxGet:   over,
				Requests: func(blob.Blob) int64 { return int64(len(srv.Log())) },
				Foreign: func(_ *testing.T, _ blob.Blob, key string, data []byte) {
					srv.PutObject("b", key, [][]byte{data}, nil)
				},
			})
		})
	}
}

// stackTarget is S3 beneath a cache of one of faultsweep.Tiers, for package faultsweep.
func stackTarget(t *testing.T, tier string, warm bool) *faultsweep.Target {
	t.Helper()
	target := sweepTarget(nil)
	target.Over = faultsweep.Stack(t, faultsweep.Tiers()[tier], retry.Policy{})
	target.Warm, target.Brief, target.Revalidates = warm, true, tier == "always"
	target.LeaveUploads, target.Sweep = nil, nil // which a cache has not
	return target
}

var (
	readOps        = []string{"get in one piece", "get by ranges", "get of a range", "get of the end", "getranges", "stat"}
	revalidatedOps = append([]string{"get of what another has replaced"}, readOps...)
	writeOps       = []string{"set 100 Bytes", "set 8193 Bytes IfVersion", "set 8193 ReaderAt", "delete", "deleteall one by one", "restore"}
)

// ifRace returns ops under the race detector, which takes ten times as long, and otherwise nil.
func ifRace(ops []string) []string {
	if raceEnabled {
		return ops
	}
	return nil
}

// Each request of each operation fails, with a cache that knows nothing yet and with one that has everything; afterwards it says what S3 says.
func TestStackFaultSweep(t *testing.T) {
	for _, c := range []struct {
		name, tier string
		warm       bool
		ops        []string // nil: all
	}{
		{"cold", "memory", false, ifRace(readOps)},
		{"warm", "memory", true, ifRace(writeOps)},
		{"cold disk", "memory and disk", false, readOps},
		{"warm disk", "disk", true, writeOps},
		{"revalidated", "always", true, revalidatedOps},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.tier != "memory" {
				t.Skip("takes a minute under the race detector: not with -short")
			}
			t.Parallel()
			if c.ops == nil {
				faultsweep.Sweep(t, stackTarget(t, c.tier, c.warm))
			}
			for _, op := range c.ops {
				target := stackTarget(t, c.tier, c.warm)
				target.Only = op
				faultsweep.Sweep(t, target)
			}
		})
	}
}

// Over sockets what was on its way is lost with the connection.
func TestStackFaultSweepOverTCP(t *testing.T) {
	for _, c := range []struct {
		op   string
		warm bool
	}{{"get by parts", false}, {"getranges", false}, {"set 100 Bytes", true}, {"set 8193 Bytes IfVersion", true}, {"delete", true}} {
		target := stackTarget(t, "memory", c.warm)
		target.Only = c.op
		faultsweep.SweepTCP(t, target)
	}
}

func TestStackFaultSweepOfPairs(t *testing.T) {
	for _, op := range []string{"set 8193 Bytes IfVersion", "delete", "restore"} {
		target := stackTarget(t, "memory", true)
		target.Only = op
		faultsweep.SweepPairs(t, target)
	}
}

func TestStackAfterCommitsWithoutAnAnswer(t *testing.T) {
	faultsweep.Commits(t, stackTarget(t, "memory", false))
}

// Blocks of two versions of an object never make one.
func TestStackOverObjectReplacedDuringARead(t *testing.T) {
	for _, tier := range []string{"memory", "memory and disk", "always"} {
		t.Run(tier, func(t *testing.T) { faultsweep.Changes(t, stackTarget(t, tier, false)) })
	}
}

func TestStackLeavesNothingBehind(t *testing.T) {
	faultsweep.Leaks(t, stackTarget(t, "memory and disk", false))
}

// A cache looks again where what it knew was out of date, and nowhere else.
func TestStackSendsNoMoreRequestsThanThePolicyAllows(t *testing.T) {
	for _, tier := range []string{"memory", "always"} {
		t.Run(tier, func(t *testing.T) { faultsweep.Attempts(t, stackTarget(t, tier, false)) })
	}
}
