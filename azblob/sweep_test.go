package azblob_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
)

func TestFaultSweep(t *testing.T)        { faultsweep.Sweep(t, sweepTarget(azblob.KeepsDeleted)) }
func TestFaultSweepOverTCP(t *testing.T) { faultsweep.SweepTCP(t, sweepTarget(azblob.KeepsDeleted)) }
func TestFaultSweepOfPairs(t *testing.T) { faultsweep.SweepPairs(t, sweepTarget(azblob.KeepsDeleted)) }

func TestFaultSweepOfRestoringVersions(t *testing.T) {
	target := sweepTarget(azblob.KeepsVersions)
	target.Only = "restore"
	faultsweep.Sweep(t, target)
	faultsweep.SweepPairs(t, target)
}

func TestBodiesUnderFaults(t *testing.T) { faultsweep.Bodies(t, sweepTarget(azblob.KeepsNothing)) }
func TestCommitsWithoutAnAnswer(t *testing.T) {
	faultsweep.Commits(t, sweepTarget(azblob.KeepsNothing))
}
func TestObjectReplacedDuringARead(t *testing.T) {
	faultsweep.Changes(t, sweepTarget(azblob.KeepsNothing))
}
func TestOddPagesOfAListing(t *testing.T) { faultsweep.Pages(t, sweepTarget(azblob.KeepsNothing)) }

// Failures, cancels and abandoned listings leave no goroutine and no connection behind.
func TestFailuresAndCancelsLeaveNothingBehind(t *testing.T) {
	faultsweep.Leaks(t, sweepTarget(azblob.KeepsNothing))
}

func TestDecoratorsAddNoAttempts(t *testing.T) {
	faultsweep.Attempts(t, sweepTarget(azblob.KeepsDeleted))
}

// sweepTarget is Azure for package faultsweep, with an account that keeps deleted blobs so.
func sweepTarget(keeps azblob.Keeps) *faultsweep.Target {
	return &faultsweep.Target{
		Store: "azure", PartSize: smallPart, Batch: 256, Restore: keeps != azblob.KeepsNothing, BodyHashes: true,
		Start: func(s faultsweep.Setup) faultsweep.Service { return startSweep(s, keeps) },
		Open: func(ctx context.Context, s faultsweep.Service, c faultsweep.Config) (blob.Blob, error) {
			o := options(s.(sweepService).Server)
			o.Transport, o.Retry = c.Transport, c.Policy
			o.PartSize, o.Segment = cmp.Or(c.PartSize, smallPart), cmp.Or(c.Segment, smallPart)
			o.Stall, o.Gap, o.Restarts = c.Stall, c.Gap, c.Restarts
			if c.Restore {
				o.Restore = keeps
			}
			return azblob.New(ctx, "box", o)
		},
		Kind:      kindOf,
		Refusals:  []fakehttp.Reply{{Status: 403}},
		Throttles: []fakehttp.Reply{{Status: 503, Code: "ServerBusy"}},
		Failures:  []fakehttp.Reply{{Status: 500}, {Status: 500, Code: "OperationTimedOut"}, {Status: 502, Body: fakehttp.HTMLPage}},
		Fallbacks: []string{"BlobBatch"},
		NoAnswers: map[string]fakehttp.Fault{
			"a page":              {Reply: &fakehttp.Reply{Body: fakehttp.HTMLPage}},
			"no body":             {Reply: &fakehttp.Reply{NoBody: true}},
			"created, no version": {Reply: &fakehttp.Reply{Status: 201, NoBody: true}},
			"created, a page":     {Reply: &fakehttp.Reply{Status: 201, Body: fakehttp.HTMLPage}},
			"accepted":            {Reply: &fakehttp.Reply{Status: 202, NoBody: true}},
		},
		Pages: map[string]faultsweep.Odd{
			"the same token again":       {Page: fakehttp.SameToken, Times: -1, Want: blob.ErrCorrupt},
			"an empty page with a token": {Page: fakehttp.EmptyPage, Times: 1},
			"none":                       {Times: -1},
		},
		Shapes: map[string]fakehttp.Shape{
			"honours If-Match": {},
			"ignores If-Match": {IgnoreIfMatch: true},
			"no ETag":          {ETag: fakehttp.NoETag}, // the time of the change stands in
			"plain":            {IgnoreIfMatch: true, IgnoreRange: true},
		},
	}
}

func kindOf(r *fakehttp.Request) faultsweep.Kind {
	switch r.Op {
	case "GetBlob":
		return faultsweep.Read
	case "GetBlobProperties":
		return faultsweep.Head
	case "ListBlobs":
		return faultsweep.List
	case "PutBlob":
		return faultsweep.Put
	case "PutBlock":
		return faultsweep.Part
	case "PutBlockList":
		return faultsweep.Commit
	case "DeleteBlob", "BlobBatch":
		return faultsweep.Delete
	case "UndeleteBlob", "CopyBlob", "CopyBlobFromURL":
		return faultsweep.Revive
	}
	return faultsweep.Other
}

// sweepService is the container "box" of a fake.
type sweepService struct{ *fakeaz.Server }

func startSweep(s faultsweep.Setup, keeps azblob.Keeps) faultsweep.Service {
	knobs := fakeaz.Knobs{Traits: fakehttp.Traits{Shape: s.Shape}, PageSize: s.PageSize, NoBatch: s.NoBatch}
	switch {
	case s.Restore && keeps == azblob.KeepsVersions:
		knobs.Versioning = true
	case s.Restore:
		knobs.Retention = time.Hour
	}
	return sweepService{fakeaz.New(fakeaz.Options{
		InMemory: s.InMemory, Containers: []string{"box"}, HashBodies: s.HashBodies, Knobs: knobs,
		Now: s.Now, Anonymous: s.Now != nil, // whose clock differs refuses what is signed
	})}
}

func (s sweepService) HTTP() *fakehttp.Server { return s.Server.Server }

func (s sweepService) Put(key string, parts [][]byte, metadata map[string]string) {
	s.PutObject("box", key, parts, &fakeaz.PutOptions{Metadata: metadata})
}

func (s sweepService) Remove(key string) { s.DeleteBlob("box", key) }

func (s sweepService) Object(key string) (faultsweep.Object, bool) {
	b, ok := s.Blob("box", key)
	if !ok {
		return faultsweep.Object{}, false
	}
	return faultsweep.Object{Data: b.Bytes(), Version: strings.Trim(b.ETag, `"`), Metadata: b.Metadata}, true
}

// Uploads are none: blocks go by themselves.
func (s sweepService) Uploads() []faultsweep.Upload { return nil }

func (s sweepService) Kept(key string) string { return fmt.Sprint(len(s.Past("box", key)), " kept") }
