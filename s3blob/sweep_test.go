package s3blob_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/internal/faultsweep"
	"github.com/wholeblob/wholeblob/s3blob"
)

func TestFaultSweep(t *testing.T)        { faultsweep.Sweep(t, sweepTarget(nil)) }
func TestFaultSweepOverTCP(t *testing.T) { faultsweep.SweepTCP(t, sweepTarget(nil)) }
func TestFaultSweepOfPairs(t *testing.T) { faultsweep.SweepPairs(t, sweepTarget(nil)) }

func TestBodiesUnderFaults(t *testing.T) {
	for _, unsigned := range []bool{false, true} {
		t.Run(fmt.Sprintf("unsigned %t", unsigned), func(t *testing.T) {
			faultsweep.Bodies(t, sweepTarget(func(o *s3blob.Options) { o.UnsignedPayload = unsigned }))
		})
	}
}

func TestCommitsWithoutAnAnswer(t *testing.T)    { faultsweep.Commits(t, sweepTarget(nil)) }
func TestObjectReplacedDuringARead(t *testing.T) { faultsweep.Changes(t, sweepTarget(nil)) }

// Failures, cancels and abandoned listings leave no goroutine, connection or upload behind.
func TestFailuresAndCancelsLeaveNothingBehind(t *testing.T) { faultsweep.Leaks(t, sweepTarget(nil)) }

func TestServerSeesNoMoreAttemptsThanThePolicyAllows(t *testing.T) {
	faultsweep.Attempts(t, sweepTarget(nil))
}

// sweepTarget is S3 for package faultsweep, with options that edit changes.
func sweepTarget(edit func(*s3blob.Options)) *faultsweep.Target {
	return &faultsweep.Target{
		Store: "s3", PartSize: P,
		Start: startSweep,
		Open: func(ctx context.Context, s faultsweep.Service, c faultsweep.Config) (blob.Blob, error) {
			o := sweepOptions(s, c)
			if edit != nil {
				edit(o)
			}
			return s3blob.New(ctx, "b", o)
		},
		Kind:      kindOf,
		Refusals:  []fakehttp.Reply{{Status: 403}},
		Throttles: []fakehttp.Reply{{Status: 503, Code: "SlowDown"}},
		Failures:  []fakehttp.Reply{{Status: 500}, {Status: 502, Body: fakehttp.HTMLPage}},
		Conflicts: []fakehttp.Reply{{Status: 409}},
		PartReads: true, Batch: 1000, Restore: true, Forgets: true, BodyHashes: true,
		LeaveUploads: leaveUploads,
		Sweep: func(ctx context.Context, b blob.Blob, olderThan time.Duration) (blob.SweepResult, error) {
			return b.(*s3blob.Store).Sweep(ctx, olderThan)
		},
		NoAnswers: noAnswers,
		Shapes: map[string]fakehttp.Shape{
			"honours If-Match": {},
			"ignores If-Match": {IgnoreIfMatch: true},
			"no ETag":          {ETag: fakehttp.NoETag}, // the time of the change stands in
			"plain":            {IgnoreIfMatch: true, IgnoreRange: true, IgnorePartNumber: true},
		},
	}
}

func kindOf(r *fakehttp.Request) faultsweep.Kind {
	switch r.Op {
	case "GetObject":
		return faultsweep.Read
	case "HeadObject":
		return faultsweep.Head
	case "ListObjectsV2":
		return faultsweep.List
	case "PutObject":
		return faultsweep.Put
	case "CreateMultipartUpload":
		return faultsweep.Begin
	case "UploadPart":
		return faultsweep.Part
	case "CompleteMultipartUpload":
		return faultsweep.Commit
	case "AbortMultipartUpload":
		return faultsweep.Abort
	case "DeleteObjects":
		return faultsweep.Delete
	case "DeleteObject":
		if r.Query.Get("versionId") != "" {
			return faultsweep.Revive // it removes the mark of a delete
		}
		return faultsweep.Delete
	}
	return faultsweep.Other
}

// sweepService is the bucket "b" of a fake.
type sweepService struct{ *fakes3.Server }

func startSweep(s faultsweep.Setup) faultsweep.Service {
	return sweepService{fakes3.New(fakes3.Options{
		InMemory: s.InMemory, Buckets: []string{"b"}, Versioned: s.Restore, MinPartSize: -1, HashBodies: s.HashBodies,
		Now: s.Now, Anonymous: s.Now != nil, // whose clock differs refuses what is signed
		Knobs: fakes3.Knobs{Shape: s.Shape, PageSize: s.PageSize, NoBatchDelete: s.NoBatch, ForgetUploads: s.Forgets},
	})}
}

func sweepOptions(s faultsweep.Service, c faultsweep.Config) *s3blob.Options {
	o := options(s.(sweepService).Server)
	o.Transport, o.Retry = c.Transport, c.Policy
	o.PartSize, o.Segment = cmp.Or(c.PartSize, P), cmp.Or(c.Segment, P)
	o.Stall, o.Gap, o.Restarts = c.Stall, c.Gap, c.Restarts
	o.ReadRanges, o.Restore, o.AllowWholeBucket = c.ReadRanges, c.Restore, c.SweepAll
	return o
}

func (s sweepService) HTTP() *fakehttp.Server { return s.Server.Server }

func (s sweepService) Put(key string, parts [][]byte, metadata map[string]string) {
	s.PutObject("b", key, parts, &fakes3.PutOptions{Metadata: metadata})
}

func (s sweepService) Remove(key string) { s.DeleteObject("b", key) }

func (s sweepService) Object(key string) (faultsweep.Object, bool) {
	obj, ok := s.Server.Object("b", key)
	if !ok {
		return faultsweep.Object{}, false
	}
	return faultsweep.Object{Data: obj.Bytes(), Version: strings.Trim(obj.ETag, `"`), Metadata: obj.Metadata}, true
}

func (s sweepService) Uploads() []faultsweep.Upload {
	var ups []faultsweep.Upload
	for _, up := range s.Server.Uploads("b") {
		ups = append(ups, faultsweep.Upload{Key: up.Key, Name: up.Key + " " + up.ID})
	}
	return ups
}

func (s sweepService) Kept(key string) string {
	return fmt.Sprint(len(s.Versions("b", key)), " versions")
}

func leaveUploads(ctx context.Context, s faultsweep.Service, n int) error {
	c := s.HTTP().Client()
	defer c.CloseIdleConnections()
	for range n {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.HTTP().URL()+"/b/left?uploads", http.NoBody)
		if err != nil {
			return err
		}
		reply, err := c.Do(req)
		if err != nil {
			return err
		}
		_ = reply.Body.Close()
	}
	return nil
}
