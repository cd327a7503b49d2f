package transfer

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// 0 is the default of every option, and -1 turns off what can be turned off.
func TestOptionsOfAStoreAreCompleted(t *testing.T) {
	var o Options
	if err := o.Complete(5<<30, 5<<30); err != nil {
		t.Fatal(err)
	}
	o.Logger.Info("nowhere")
	o.Logger = nil
	if want := (Options{
		PartSize: 8 << 20, Threshold: 8 << 20, Segment: 8 << 20, Gap: 64 << 10, Concurrency: 8, InFlight: 128,
		Restarts: 3, Stall: 20 * time.Second, MaxGet: blob.DefaultMaxGet,
	}); o != want {
		t.Errorf("%+v, want %+v", o, want)
	}
	o = Options{Prefix: "p", PartSize: 2 << 30, Gap: -1, Restarts: -1, Stall: retry.NoLimit}
	if err := o.Complete(5<<30, 1<<30); err != nil {
		t.Fatal(err)
	}
	if o.Prefix != "p/" || o.Threshold != 1<<30 || o.Gap != 0 || o.Restarts != 0 || o.Stall != retry.NoLimit {
		t.Errorf("%+v", o)
	}
}

func TestOptionsOutOfBoundsAreNamed(t *testing.T) {
	for field, bad := range map[string][]Options{
		"PartSize":    {{PartSize: -1}, {PartSize: 101, Threshold: 1}},
		"Threshold":   {{Threshold: -1}, {Threshold: 201}},
		"Segment":     {{Segment: -1}, {Segment: 101}},
		"Gap":         {{Gap: -2}, {Gap: 101}},
		"Concurrency": {{Concurrency: -1}, {Concurrency: 1<<16 + 1}},
		"InFlight":    {{InFlight: -1}, {InFlight: 1<<16 + 1}},
		"Stall":       {{Stall: -2}},
		"Restarts":    {{Restarts: -2}, {Restarts: 1<<16 + 1}},
		"MaxGet":      {{MaxGet: -1}, {MaxGet: 1<<62 + 1}},
		"Attempt":     {{Policy: retry.Policy{Attempt: time.Minute, Total: time.Second}}},
		"prefix":      {{Prefix: "a/../b"}},
	} {
		for _, o := range bad {
			if o.PartSize == 0 {
				o.PartSize = 100
			}
			if o.Segment == 0 {
				o.Segment = 100
			}
			if o.Gap == 0 {
				o.Gap = 100
			}
			err := o.Complete(100, 200)
			if !errors.Is(err, blob.ErrInvalidOption) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s %+v: %v", field, o, err)
			}
		}
	}
}

// What kept a store from being opened keeps its kind, and is a matter of the options if it has none.
func TestOpenErrorsHaveAKind(t *testing.T) {
	for _, c := range []struct{ err, kind error }{
		{io.ErrUnexpectedEOF, blob.ErrInvalidOption},
		{&blob.Error{Kind: blob.ErrPermission, Err: io.ErrUnexpectedEOF}, blob.ErrPermission},
	} {
		err := OpenError("store", c.err)
		var e *blob.Error
		if !errors.As(err, &e) || e.Op != blob.OpOpen || e.Store != "store" || e.Kind != c.kind || e.Outcome != blob.NotApplied || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v: %#v", c.err, e)
		}
	}
}
