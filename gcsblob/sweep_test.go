package gcsblob_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
)

func TestFaultSweep(t *testing.T) { faultsweep.Sweep(t, sweepTarget(gcsblob.RestoreSoftDelete)) }
func TestFaultSweepOverTCP(t *testing.T) {
	faultsweep.SweepTCP(t, sweepTarget(gcsblob.RestoreSoftDelete))
}
func TestFaultSweepOfPairs(t *testing.T) {
	faultsweep.SweepPairs(t, sweepTarget(gcsblob.RestoreSoftDelete))
}

func TestFaultSweepOfRestoringVersions(t *testing.T) {
	target := sweepTarget(gcsblob.RestoreVersions)
	target.Only = "restore"
	faultsweep.Sweep(t, target)
	faultsweep.SweepPairs(t, target)
}

func TestBodiesUnderFaults(t *testing.T) { faultsweep.Bodies(t, sweepTarget(gcsblob.RestoreOff)) }

func TestCommitsWithoutAnAnswer(t *testing.T) {
	faultsweep.Commits(t, sweepTarget(gcsblob.RestoreOff))
}

func TestObjectReplacedDuringARead(t *testing.T) {
	faultsweep.Changes(t, sweepTarget(gcsblob.RestoreOff))
}

func TestOddPagesOfAListing(t *testing.T) { faultsweep.Pages(t, sweepTarget(gcsblob.RestoreOff)) }

// Failures, cancels and abandoned listings leave no goroutine, connection or session behind.
func TestFailuresAndCancelsLeaveNothingBehind(t *testing.T) {
	faultsweep.Leaks(t, sweepTarget(gcsblob.RestoreOff))
}

func TestDecoratorsAddNoAttempts(t *testing.T) {
	faultsweep.Attempts(t, sweepTarget(gcsblob.RestoreSoftDelete))
}

// sweepTarget is Cloud Storage for package faultsweep, with a bucket that keeps deleted objects so.
func sweepTarget(keep gcsblob.Restore) *faultsweep.Target {
	return &faultsweep.Target{
		Store: "gcs", PartSize: chunk, Serial: true, Restore: keep != gcsblob.RestoreOff,
		Start: func(s faultsweep.Setup) faultsweep.Service { return startSweep(s, keep) },
		Open: func(ctx context.Context, s faultsweep.Service, c faultsweep.Config) (blob.Blob, error) {
			o := options(s.(sweepService).Server)
			o.Transport, o.Retry = c.Transport, c.Policy
			o.PartSize, o.Segment = cmp.Or(c.PartSize, chunk), cmp.Or(c.Segment, chunk)
			o.Stall, o.Gap, o.Restarts = c.Stall, c.Gap, c.Restarts
			if c.Restore {
				o.Restore = keep
			}
			return gcsblob.New(ctx, "b", o)
		},
		Kind:      kindOf,
		Refusals:  []fakehttp.Reply{{Status: 403}},
		Throttles: []fakehttp.Reply{{Status: 429}},
		Failures:  []fakehttp.Reply{{Status: 503}, {Status: 500}, {Status: 502, Body: fakehttp.HTMLPage}},
		NoAnswers: map[string]fakehttp.Fault{
			"a page":       {Reply: &fakehttp.Reply{Body: fakehttp.HTMLPage}},
			"no body":      {Reply: &fakehttp.Reply{NoBody: true}},
			"cut document": {Reply: &fakehttp.Reply{Body: `{"kind":"storage#object","gener`}},
			"an error":     {Reply: &fakehttp.Reply{Body: `{"error":{"code":503,"message":"Backend Error"}}`}},
		},
		Pages: map[string]faultsweep.Odd{
			"the same token again":       {Page: fakehttp.SameToken, Times: -1, Want: blob.ErrCorrupt},
			"an empty page with a token": {Page: fakehttp.EmptyPage, Times: 1},
			"none":                       {Times: -1},
		},
		Shapes: map[string]fakehttp.Shape{
			"honours conditions": {},
			"ignores conditions": {IgnoreIfMatch: true},
			"no generation":      {ETag: fakehttp.NoETag}, // the time of the change stands in
			"plain":              {IgnoreIfMatch: true, IgnoreRange: true},
		},
	}
}

func kindOf(r *fakehttp.Request) faultsweep.Kind {
	switch r.Op {
	case "objects.media", "xml.get":
		return faultsweep.Read
	case "objects.get", "xml.head":
		return faultsweep.Head
	case "objects.list":
		if r.Query.Get("versions") == "" && r.Query.Get("softDeleted") == "" {
			return faultsweep.List
		}
	case "objects.insert":
		return faultsweep.Put
	case "uploads.start":
		return faultsweep.Begin
	case "uploads.put":
		if lastChunk(r.Header.Get("Content-Range")) {
			return faultsweep.Commit
		}
		return faultsweep.Part
	case "uploads.query":
		return faultsweep.Ask
	case "uploads.cancel":
		return faultsweep.Abort
	case "objects.delete":
		return faultsweep.Delete
	case "objects.restore", "objects.copy", "objects.rewrite":
		return faultsweep.Revive
	}
	return faultsweep.Other
}

// lastChunk reports whether a Content-Range, "bytes first-last/total", ends where the object does.
func lastChunk(v string) bool {
	span, total, _ := strings.Cut(strings.TrimPrefix(v, "bytes "), "/")
	_, last, _ := strings.Cut(span, "-")
	n, err := strconv.Atoi(last)
	return err == nil && total == strconv.Itoa(n+1)
}

// sweepService is the bucket "b" of a fake.
type sweepService struct{ *fakegcs.Server }

func startSweep(s faultsweep.Setup, keep gcsblob.Restore) faultsweep.Service {
	o := fakegcs.Options{
		InMemory: s.InMemory, Buckets: []string{"b"}, SoftDelete: -1, HashBodies: s.HashBodies, Now: s.Now,
		Knobs: fakegcs.Knobs{Traits: fakehttp.Traits{Shape: s.Shape}, PageSize: s.PageSize},
	}
	switch {
	case s.Restore && keep == gcsblob.RestoreVersions:
		o.Versioned = true
	case s.Restore:
		o.SoftDelete = 0
	}
	return sweepService{fakegcs.New(o)}
}

func (s sweepService) HTTP() *fakehttp.Server { return s.Server.Server }

func (s sweepService) Put(key string, parts [][]byte, metadata map[string]string) {
	s.PutObject("b", key, slices.Concat(parts...), &fakegcs.PutOptions{Metadata: metadata})
}

func (s sweepService) Remove(key string) { s.DeleteObject("b", key) }

func (s sweepService) Object(key string) (faultsweep.Object, bool) {
	obj, ok := s.Server.Object("b", key)
	if !ok {
		return faultsweep.Object{}, false
	}
	return faultsweep.Object{Data: obj.Bytes(), Version: strconv.FormatInt(obj.Generation, 10), Metadata: obj.Metadata}, true
}

// Uploads have no names here: those of the store hide the addresses of its sessions.
func (s sweepService) Uploads() []faultsweep.Upload {
	var ups []faultsweep.Upload
	for _, up := range s.Server.Uploads("b") {
		ups = append(ups, faultsweep.Upload{Key: up.Key})
	}
	return ups
}

func (s sweepService) Kept(key string) string {
	return fmt.Sprint(len(s.Versions("b", key)), " generations")
}
