package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
	"time"
)

var sentinels = map[string]error{
	"ErrNotFound": ErrNotFound, "ErrNoContainer": ErrNoContainer, "ErrExists": ErrExists, "ErrPrecondition": ErrPrecondition,
	"ErrConflict": ErrConflict, "ErrTruncated": ErrTruncated, "ErrCorrupt": ErrCorrupt, "ErrChanged": ErrChanged,
	"ErrSourceLength": ErrSourceLength, "ErrInvalidKey": ErrInvalidKey, "ErrInvalidOption": ErrInvalidOption,
	"ErrInvalidRange": ErrInvalidRange, "ErrTooLarge": ErrTooLarge, "ErrPermission": ErrPermission, "ErrThrottled": ErrThrottled,
	"ErrUnavailable": ErrUnavailable, "ErrUnsupported": ErrUnsupported, "ErrClosed": ErrClosed,
}

// sdkError stands for the error type of a store's SDK, which wraps it in more of its own.
type sdkError struct{ code string }

func (e *sdkError) Error() string { return "api error " + e.code }

func TestEachKindMatchesItselfAlone(t *testing.T) {
	for name, kind := range sentinels {
		err := error(&Error{Op: OpGet, Key: "k", Kind: kind})
		for other, k := range sentinels {
			if errors.Is(err, k) != (name == other) {
				t.Errorf("an error of kind %s: Is(%s) is %v", name, other, !(name == other))
			}
		}
		if errors.Is(err, fs.ErrNotExist) != (name == "ErrNotFound") {
			t.Errorf("%s and fs.ErrNotExist", name)
		}
		for _, e := range []error{err, kind, fmt.Errorf("more: %w", err), fmt.Errorf("%w: less", kind), &fs.PathError{Op: "open", Path: "k", Err: err}} {
			if KindOf(e) != kind {
				t.Errorf("KindOf(%v) is %v", e, KindOf(e))
			}
		}
	}
}

func TestSDKErrorIsReachable(t *testing.T) {
	inner := &sdkError{"SlowDown"}
	err := fmt.Errorf("flush: %w", &Error{Op: OpSet, Kind: ErrThrottled, Err: fmt.Errorf("operation PutObject: %w", inner)})
	var sdk *sdkError
	var own *Error
	if !errors.As(err, &sdk) || sdk != inner || !errors.As(err, &own) || !errors.Is(err, ErrThrottled) {
		t.Errorf("%v: SDK error %v, own %v", err, sdk, own)
	}
}

func TestUnwrapHasNoNilErrors(t *testing.T) {
	for _, e := range []*Error{{}, {Kind: ErrExists}, {Err: io.EOF}, {Kind: ErrExists, Err: io.EOF}} {
		for _, inner := range e.Unwrap() {
			if inner == nil {
				t.Errorf("%+v unwraps to a nil error", e)
			}
		}
		if errors.Is(e, ErrExists) != (e.Kind != nil) || errors.Is(e, io.EOF) != (e.Err != nil) {
			t.Errorf("%+v: ErrExists %v, io.EOF %v", e, errors.Is(e, ErrExists), errors.Is(e, io.EOF))
		}
	}
}

func TestKindOf(t *testing.T) {
	failed := func(errs ...error) error {
		d := &DeleteError{}
		for i, err := range errs {
			d.Failed = append(d.Failed, KeyError{Key: fmt.Sprint(i), Err: err})
		}
		return d
	}
	canceled := &Error{Op: OpDelete, Err: context.Canceled}
	throttled := &Error{Op: OpDelete, Kind: ErrThrottled}
	// Another store's refusal, met while its object was read as the source of a Set.
	foreign := &SourceError{Err: &Error{Op: OpGet, Kind: ErrPrecondition}}
	for i, c := range []struct{ err, kind error }{
		{nil, nil},
		{io.EOF, nil},
		{&Error{Op: OpSet}, nil},
		{&Error{Op: OpSet, Err: io.EOF}, nil},
		{context.Canceled, context.Canceled},
		{canceled, context.Canceled},
		{fmt.Errorf("%w", context.DeadlineExceeded), context.DeadlineExceeded},
		{&Error{Kind: ErrUnavailable, Err: context.DeadlineExceeded}, ErrUnavailable}, // a limit of ours, not the caller's
		{fmt.Errorf("%w, then %w", context.Canceled, ErrThrottled), ErrThrottled},
		{&Error{Err: throttled}, ErrThrottled},
		{&Error{Kind: ErrUnavailable, Err: throttled}, ErrUnavailable}, // the outermost
		{errors.Join(io.EOF, throttled, ErrExists), ErrThrottled},
		{&OwedError{Err: ErrUnavailable}, ErrUnavailable},
		{failed(), nil},
		{failed(throttled), ErrThrottled},
		{failed(canceled, throttled), context.Canceled}, // the first key's, not the first kind
		{failed(io.EOF, throttled, canceled), nil},
		{fmt.Errorf("more: %w", failed(throttled, canceled)), ErrThrottled},
		{foreign, nil},
		{&Error{Op: OpSet, Err: foreign}, nil},
		{&Error{Op: OpSet, Kind: ErrUnavailable, Err: foreign}, ErrUnavailable},
		{&Error{Op: OpSet, Err: &SourceError{Err: context.Canceled}}, context.Canceled},
		{&SourceError{Err: fmt.Errorf("%w: ended", ErrSourceLength)}, ErrSourceLength},
		{&Error{Op: OpSet, Err: &SourceError{Err: ErrSourceLength}}, ErrSourceLength},
	} {
		if got := KindOf(c.err); got != c.kind {
			t.Errorf("%d: KindOf(%v) is %v, want %v", i, c.err, got, c.kind)
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	no, unknown := &Error{Op: OpSet, Outcome: NotApplied}, &Error{Op: OpSet}
	keys := func(errs ...error) error {
		d := &DeleteError{}
		for _, err := range errs {
			d.Failed = append(d.Failed, KeyError{Key: "k", Err: err})
		}
		return d
	}
	for i, c := range []struct {
		err  error
		want Outcome
	}{
		{nil, Unknown},
		{io.EOF, Unknown},
		{ErrExists, Unknown}, // a sentinel alone says nothing about the write
		{&Error{}, Unknown},  // nobody classified it
		{no, NotApplied},
		{fmt.Errorf("more: %w", no), NotApplied},
		{&Error{Op: OpSet, Err: no}, Unknown}, // the outermost knows of all attempts
		{keys(), Unknown},                     // names no key, so all were deleted
		{keys(no), NotApplied},
		{keys(no, no), NotApplied},
		{keys(no, unknown), Unknown},
		{keys(no, io.EOF), Unknown},
		{fmt.Errorf("more: %w", keys(no, no)), NotApplied},
	} {
		if got := OutcomeOf(c.err); got != c.want {
			t.Errorf("%d: OutcomeOf(%v) is %v, want %v", i, c.err, got, c.want)
		}
	}
	var zero Outcome
	if zero != Unknown || zero.String() != "unknown" || NotApplied.String() != "not applied" {
		t.Errorf("the zero Outcome is %v, NotApplied is %v", zero, NotApplied)
	}
}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			&Error{
				Op: OpSet, Store: "s3", Key: "a/b", Kind: ErrUnavailable, Status: 503, Code: "InternalError", RequestID: "4442587FB7D0A2F9",
				Attempts: 5, RetryAfter: time.Second, Exhausted: true, Err: io.EOF,
			},
			`s3: set "a/b": unavailable (outcome unknown; 503 InternalError, request 4442587FB7D0A2F9; 5 attempts): EOF`,
		},
		{&Error{Op: OpGet, Store: "memory", Key: "k", Kind: ErrNotFound, Outcome: NotApplied}, `memory: get "k": not found`},
		{&Error{Op: OpGet, Key: "k", Err: context.Canceled}, `get "k": context canceled`},
		{&Error{Op: OpClose, Store: "file", Kind: ErrClosed}, `file: close: closed`},
		{&Error{Op: OpDelete, Key: "line\nbreak", Outcome: NotApplied, Kind: ErrConflict}, `delete "line\nbreak": conflict with an operation in flight (outcome not applied)`},
		{&Error{Op: OpStat, Key: "k", Kind: ErrUnavailable, Status: 500}, `stat "k": unavailable (500)`},
		{&Error{Op: OpStat, Key: "k", Kind: ErrUnavailable, Code: "Busy"}, `stat "k": unavailable (Busy)`},
		{&Error{Op: OpStat, Key: "k", Kind: ErrUnavailable, RequestID: "7"}, `stat "k": unavailable (request 7)`},
		{&Error{Op: OpStat, Key: "k", Kind: ErrUnavailable, Attempts: 1}, `stat "k": unavailable`},
		// A cause that wraps the kind does not say it twice; one that only begins with the same letters keeps them.
		{&Error{Op: OpGet, Kind: ErrTruncated, Err: fmt.Errorf("%w: 3 of 4 bytes", ErrTruncated)}, `get: truncated: 3 of 4 bytes`},
		{&Error{Op: OpGet, Kind: ErrTruncated, Err: ErrTruncated}, `get: truncated`},
		{&Error{Op: OpGet, Kind: ErrClosed, Err: errors.New("closed network connection")}, `get: closed: closed network connection`},
		{&Error{Op: OpGet, Err: errors.New("")}, `get`},
		{&Error{Op: OpGet, Err: errors.Join(io.EOF, io.ErrNoProgress)}, `get: EOF; multiple Read calls return no data or error`},
		{&Error{Op: OpGet, Kind: ErrUnavailable, Err: errors.New("<html>\r\n<body>")}, `get: unavailable: <html>; <body>`},
		{&DeleteError{}, `deleteall: no key failed`},
		{&DeleteError{Failed: []KeyError{{"a\n", ErrPermission}}}, `deleteall: 1 key failed: "a\n": permission denied`},
		{&DeleteError{Failed: []KeyError{{"a", ErrPermission}, {"b", io.EOF}}}, `deleteall: 2 keys failed, first "a": permission denied`},
		{&OwedError{Uploads: []string{"k id"}, Files: []string{"f", "g"}, Err: context.Canceled}, `close: 1 uploads and 2 files not cleaned up: context canceled`},
		{&SourceError{Offset: 7, Err: io.ErrUnexpectedEOF}, `source at byte 7: unexpected EOF`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%#v reads\n\t%s, want\n\t%s", c.err, got, c.want)
		}
	}
}

func TestErrorsOfManyReachEach(t *testing.T) {
	inner := &sdkError{"AccessDenied"}
	d := &DeleteError{Failed: []KeyError{{"a", &Error{Op: OpDeleteAll, Kind: ErrThrottled}}, {"b", &Error{Op: OpDeleteAll, Kind: ErrPermission, Err: inner}}}}
	var sdk *sdkError
	if !errors.Is(d, ErrThrottled) || !errors.Is(d, ErrPermission) || !errors.As(d, &sdk) || errors.Is(d, ErrNotFound) {
		t.Errorf("%v", d)
	}
	if o := (&OwedError{Err: context.Canceled}); !errors.Is(o, context.Canceled) {
		t.Errorf("%v", o)
	}
}

func TestMutatesAllThatCanChangeTheStore(t *testing.T) {
	for op, want := range map[string]bool{
		OpGet: false, OpGetRanges: false, OpStat: false, OpList: false, OpClose: false, OpOpen: false, "": false,
		OpSet: true, OpDelete: true, OpDeleteAll: true, OpRestore: true,
	} {
		if Mutates(op) != want {
			t.Errorf("Mutates(%q) is %v", op, !want)
		}
	}
}
