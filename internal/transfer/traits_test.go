package transfer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// On a service that lets go of parts by itself, a Set that failed asks for no abort, starts nothing and owes nothing.
func TestServiceWithoutAborts(t *testing.T) {
	for _, verb := range []string{"part", "commit"} {
		s := serve(t, azureLike())
		s.before = func(_ context.Context, r request) error {
			if r.verb == verb {
				return refusal(blob.ErrPermission)
			}
			return nil
		}
		st := open(t, s)
		_, err := set(st, blob.Bytes(content(250)), nil)
		wantKind(t, err, blob.ErrPermission)
		wantOutcome(t, err, blob.NotApplied)
		ctx, cancel := contextOf(t)
		cancel()
		if err := st.Close(ctx); err != nil { // nothing to wait for
			t.Error(err)
		}
		if len(st.clean.mu.active) > 0 {
			t.Error("something is remembered for a sweep that there is not")
		}
	}
}

// Of an upload whose id was lost the log names a sweep where there is one: elsewhere it goes by itself.
func TestLogNamesNoSweepThatThereIsNot(t *testing.T) {
	for p, want := range map[string]bool{"s3": true, "gcs": false} {
		s := serve(t, personalities()[p])
		s.after = lose("begin", 1)
		var log bytes.Buffer
		if _, err := set(open(t, s, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }), blob.Bytes(content(250)), nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "sweep"); got != want {
			t.Errorf("%s: %q", p, log.String())
		}
	}
}

// Where uploads cannot be listed, or what is found cannot be discarded, Sweep checks its arguments and does nothing.
func TestSweepWithoutUploads(t *testing.T) {
	listed := azureLike()
	listed.traits.Uploads = true
	for _, p := range []personality{azureLike(), gcsLike(), listed} {
		s := serve(t, p)
		st := open(t, s, func(o *Options) { o.Prefix = "p/" })
		if res, err := st.Sweep(t.Context(), time.Hour); err != nil || res.Kept != 0 || res.Aborted != nil || res.Failed != nil {
			t.Error(res, err)
		}
		_, err := st.Sweep(t.Context(), -1)
		wantKind(t, err, blob.ErrInvalidOption)
		_, err = open(t, s).Sweep(t.Context(), time.Hour)
		wantKind(t, err, blob.ErrInvalidOption)
		ctx, cancel := contextOf(t)
		cancel()
		_, err = st.Sweep(ctx, time.Hour)
		wantKind(t, err, context.Canceled)
		if err := st.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := st.Sweep(t.Context(), time.Hour); !errors.Is(err, blob.ErrClosed) {
			t.Error(err)
		}
		wantLog(t, s)
	}
}

// What one request cannot carry goes in parts, whatever the threshold.
func TestThresholdBeyondMaxPut(t *testing.T) {
	p := s3Like()
	p.traits.MaxPut = 150
	s := serve(t, p)
	st := open(t, s, func(o *Options) { o.Threshold = 1 << 40 })
	for _, size := range []int{150, 151} {
		if _, err := set(st, blob.Bytes(content(size)), nil); err != nil {
			t.Fatal(err)
		}
	}
	wantLog(t, s, "put 150", "begin 151", "part 1: 0+100 of 151", "part 2: 100+51 of 151", "commit 2")
}

// Parts that the service would refuse are refused before any request, and never sent smaller than was asked for.
func TestPartsBeyondMaxPart(t *testing.T) {
	for _, c := range []struct {
		part, multiple int64
		parts          int
		size           int64
		ok             bool
	}{
		{100, 0, 0, 1000, true},
		{200, 0, 0, 1000, true},
		{201, 0, 0, 1000, false},
		{201, 0, 0, 200, true}, // one part, and no larger than the object
		{201, 0, 0, 201, false},
		{100, 0, 5, 1000, true},
		{100, 0, 5, 1001, false}, // more than so many parts can hold
		{100, 150, 0, 1000, true},
		{160, 150, 0, 1000, false},
		{201, 0, 0, 99, true}, // in one request
		{201, 0, 0, 2000, false},
	} {
		p := s3Like()
		p.traits.MaxPart, p.traits.PartMultiple, p.traits.MaxParts = 200, c.multiple, c.parts
		s := serve(t, p)
		_, err := set(open(t, s, func(o *Options) { o.PartSize = c.part }), blob.Bytes(content(int(c.size))), nil)
		if c.ok != (err == nil) {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil {
			wantKind(t, err, blob.ErrTooLarge)
			wantOutcome(t, err, blob.NotApplied)
			wantLog(t, s)
		}
	}
	p := s3Like()
	p.traits.MaxPart = 200
	if _, err := set(open(t, serve(t, p), func(o *Options) { o.Threshold, o.PartSize = 1000, 999 }), blob.Bytes(content(999)), nil); err != nil {
		t.Error("an object that goes in one request:", err)
	}
}
