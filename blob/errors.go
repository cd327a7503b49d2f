package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// kind is the type of the sentinels, so that KindOf can tell them from others'.
type kind struct {
	text string
	also error
}

func (k *kind) Error() string { return k.text }
func (k *kind) Unwrap() error { return k.also }

// The kinds of error. errors.Is finds them in whatever a Blob returns.
var (
	// ErrNotFound: the key does not exist. It also matches fs.ErrNotExist.
	ErrNotFound error = &kind{"not found", fs.ErrNotExist}
	// ErrNoContainer: the bucket, container or root directory does not exist.
	ErrNoContainer error = &kind{"no such bucket or container", nil}
	// ErrExists: IfAbsent, and someone else's object is there.
	ErrExists error = &kind{"already exists", nil}
	// ErrPrecondition: IfVersion, and the key has another version or is missing.
	ErrPrecondition error = &kind{"precondition failed", nil}
	// ErrConflict: another operation on the key was in flight and the store
	// decided nothing. Trying again later is right.
	ErrConflict error = &kind{"conflict with an operation in flight", nil}
	// ErrTruncated: fewer bytes came than were announced, or nothing
	// proves that all came.
	ErrTruncated error = &kind{"truncated", nil}
	// ErrCorrupt: the bytes are not those that were written (a checksum or a
	// size the caller knows does not match, or the reply contradicts itself).
	ErrCorrupt error = &kind{"corrupt", nil}
	// ErrChanged: the object kept changing while it was read.
	ErrChanged error = &kind{"object changed while it was read", nil}
	// ErrSourceLength: a Source yielded more or fewer bytes than it declared.
	ErrSourceLength error = &kind{"source does not have its declared length", nil}
	// ErrInvalidKey: the key breaks the rules of CheckKey, or is empty.
	ErrInvalidKey error = &kind{"invalid key", nil}
	// ErrInvalidOption: an argument or option makes no sense.
	ErrInvalidOption error = &kind{"invalid option", nil}
	// ErrInvalidRange: the range begins beyond the object's end.
	ErrInvalidRange error = &kind{"invalid range", nil}
	// ErrTooLarge: more bytes than a limit allows.
	ErrTooLarge error = &kind{"too large", nil}
	// ErrPermission: the store refused the credentials or what they may do.
	ErrPermission error = &kind{"permission denied", nil}
	// ErrThrottled: the store asked for fewer requests.
	ErrThrottled error = &kind{"throttled", nil}
	// ErrUnavailable: the store could not be reached, or failed inside.
	ErrUnavailable error = &kind{"unavailable", nil}
	// ErrUnsupported: the store cannot do this.
	ErrUnsupported error = &kind{"unsupported", nil}
	// ErrClosed: the Blob has been closed.
	ErrClosed error = &kind{"closed", nil}
)

// Outcome says what is known about a mutation that returned an error.
type Outcome uint8

const (
	// Unknown: the mutation may have happened, or may yet. It is the zero
	// value, so that an error which nobody classified is never taken for a refusal.
	Unknown Outcome = iota
	// NotApplied: the mutation certainly did not happen and will not. Errors of
	// reads are NotApplied too.
	NotApplied
)

// String returns "unknown" or "not applied".
func (o Outcome) String() string {
	if o == NotApplied {
		return "not applied"
	}
	return "unknown"
}

// The operations, as named in Error.Op.
const (
	OpGet       = "get"
	OpGetRanges = "getranges"
	OpSet       = "set"
	OpStat      = "stat"
	OpList      = "list"
	OpDelete    = "delete"
	OpDeleteAll = "deleteall"
	OpRestore   = "restore"
	OpClose     = "close"
	OpOpen      = "open" // making a store
)

// Mutates reports whether the operation called op can change what is stored.
func Mutates(op string) bool {
	switch op {
	case OpSet, OpDelete, OpDeleteAll, OpRestore:
		return true
	}
	return false
}

// Error is the error of every Blob method. errors.Is matches Kind and everything Err
// wraps; errors.As reaches the SDK's own error through Err.
type Error struct {
	Op    string // one of the Op constants
	Store string // Capabilities().Store of the store that failed
	Key   string // the key, or the prefix of a List

	// Kind is one of the sentinels of this package. It is nil when Err
	// speaks for itself: a context's error, or the error of a Source.
	Kind    error
	Outcome Outcome

	Status    int    // HTTP status, 0 if there was no reply
	Code      string // the store's own code, such as "SlowDown"
	RequestID string // as the store logs it

	Attempts   int           // requests tried for this call, 0 if not counted
	RetryAfter time.Duration // how long the store asked to wait, 0 if it did not
	Exhausted  bool          // a retry loop has given up on it: no other loop should start

	Err error // the cause; may be nil
}

// Error returns the path through the system, one line without secrets:
//
//	s3: set "a/b": unavailable (outcome unknown; 503 InternalError, request 4442587FB7D0A2F9; 5 attempts): EOF
func (e *Error) Error() string {
	var b strings.Builder
	if e.Store != "" {
		b.WriteString(e.Store + ": ")
	}
	b.WriteString(e.Op)
	if e.Key != "" {
		fmt.Fprintf(&b, " %q", e.Key)
	}
	kindText := ""
	if e.Kind != nil {
		kindText = e.Kind.Error()
		b.WriteString(": " + kindText)
	}
	if d := e.detail(); d != "" {
		b.WriteString(" (" + d + ")")
	}
	if e.Err != nil {
		// The cause often wraps the kind already: do not say it twice.
		switch text := e.Err.Error(); {
		case text == kindText || text == "":
		case kindText != "":
			b.WriteString(": " + strings.TrimPrefix(text, kindText+": "))
		default:
			b.WriteString(": " + text)
		}
	}
	return oneLine.Replace(b.String())
}

// oneLine keeps causes and codes of many lines, such as those of errors.Join, in one line of a log.
var oneLine = strings.NewReplacer("\r\n", "; ", "\n", "; ", "\r", "; ")

func (e *Error) detail() string {
	var parts []string
	if Mutates(e.Op) {
		parts = append(parts, "outcome "+e.Outcome.String())
	}
	reply := e.Code
	if e.Status != 0 {
		reply = strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, e.Code))
	}
	if e.RequestID != "" {
		reply = strings.TrimPrefix(reply+", request "+e.RequestID, ", ")
	}
	if reply != "" {
		parts = append(parts, reply)
	}
	if e.Attempts > 1 {
		parts = append(parts, fmt.Sprintf("%d attempts", e.Attempts))
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns Kind and Err.
func (e *Error) Unwrap() []error {
	switch {
	case e.Kind == nil && e.Err == nil:
		return nil
	case e.Kind == nil:
		return []error{e.Err}
	case e.Err == nil:
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// KindOf returns the sentinel of this package that err carries, context.Canceled
// or context.DeadlineExceeded if it carries that instead, and nil if it
// carries neither. Of a *DeleteError it is the kind of the first key. What the reader of
// a Source says is the cause of a failed Set and never its kind: it may be the reader of another
// Blob, which speaks about a key of its own. So a *SourceError has the kind ErrSourceLength, that of a
// context, or none.
func KindOf(err error) error {
	if decided, kind := findKind(err); decided {
		return kind
	}
	return ofContext(err)
}

// ofContext returns the error of a context that err matches, or nil.
func ofContext(err error) error {
	for _, c := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, c) {
			return c
		}
	}
	return nil
}

// findKind looks through err from the outside in; decided is false if nothing in it says anything about kinds.
func findKind(err error) (decided bool, found error) {
	switch e := err.(type) { //nolint:errorlint // this is the walk itself
	case *kind:
		return true, e
	case *Error:
		if e.Kind != nil {
			return true, e.Kind
		}
	case *SourceError:
		if errors.Is(e.Err, ErrSourceLength) {
			return true, ErrSourceLength
		}
		return true, ofContext(e.Err)
	case *DeleteError:
		if len(e.Failed) > 0 {
			return true, KindOf(e.Failed[0].Err)
		}
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return findKind(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if decided, found := findKind(inner); decided {
				return true, found
			}
		}
	}
	return false, nil
}

// OutcomeOf returns what err, the error of a failed mutation, says about its
// outcome. An error that says nothing is Unknown. A *DeleteError is NotApplied only if
// it names keys and each of them is. OutcomeOf(nil) is a mistake and Unknown.
func OutcomeOf(err error) Outcome {
	var d *DeleteError
	if errors.As(err, &d) {
		if len(d.Failed) == 0 {
			return Unknown
		}
		for _, f := range d.Failed {
			if OutcomeOf(f.Err) != NotApplied {
				return Unknown
			}
		}
		return NotApplied
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return Unknown
}

// KeyError is the failure of one key in a DeleteAll.
type KeyError struct {
	Key string
	Err error
}

// DeleteError is the error of a DeleteAll in which keys failed. Every key that is
// not in Failed has been deleted.
type DeleteError struct {
	Failed []KeyError // in no particular order; keys that were not tried are NotApplied
}

// Error names the count and the first failure.
func (e *DeleteError) Error() string {
	if len(e.Failed) == 0 {
		return "deleteall: no key failed"
	}
	f := e.Failed[0]
	if len(e.Failed) == 1 {
		return fmt.Sprintf("deleteall: 1 key failed: %q: %v", f.Key, f.Err)
	}
	return fmt.Sprintf("deleteall: %d keys failed, first %q: %v", len(e.Failed), f.Key, f.Err)
}

// Unwrap returns the error of each key.
func (e *DeleteError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f.Err
	}
	return errs
}

// OwedError is the error of a Close whose context ended before the clean-up
// was done.
type OwedError struct {
	Uploads []string // multipart uploads still to abort, each "key upload-id"
	Files   []string // temporary files still to remove
	Err     error    // why Close stopped: the context's error, or the last failure
}

// Error names the counts and the cause.
func (e *OwedError) Error() string {
	return fmt.Sprintf("close: %d uploads and %d files not cleaned up: %v", len(e.Uploads), len(e.Files), e.Err)
}

// Unwrap returns Err.
func (e *OwedError) Unwrap() error { return e.Err }
