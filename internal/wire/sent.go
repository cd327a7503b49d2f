package wire

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
)

// Sent follows one attempt, to know what had happened when it failed.
type Sent struct {
	Body *Body // nil: the request has none of the caller's

	entered   atomic.Bool // the request was given to the transport
	asked     atomic.Bool // the transport has told that it wants a connection,
	connected atomic.Bool // and that it has one: from here on bytes may have left
}

// Traced returns ctx with a trace that tells s about the connection of its request. (On the ctx of a whole call it would also
// see the connections of whoever provides credentials.)
func (s *Sent) Traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.connected.Store(true) },
	})
}

// Enter is told that the request is given to the transport.
func (s *Sent) Enter() { s.entered.Store(true) }

// certainlyNot reports whether the service cannot have seen a whole request. A transport that tells nothing of its connections
// may have had one.
func (s *Sent) certainlyNot() bool {
	switch {
	case !s.entered.Load(), s.asked.Load() && !s.connected.Load():
		return true
	}
	return s.Body != nil && !s.Body.Complete()
}

// end takes the body from a transport that has failed and may go on with it: what has not been handed over by now, on which the outcome
// rests, will not be.
func (s *Sent) end() {
	if s.Body != nil {
		s.Body.LetGo()
	}
}

// Lost completes e, the error of an attempt that has ended without a reply that makes sense. unsent is its kind if nothing was given to the
// transport. Nobody gets more of the body.
func (s *Sent) Lost(ctx context.Context, e *blob.Error, unsent error) *blob.Error {
	s.end()
	if s.certainlyNot() {
		e.Outcome = blob.NotApplied
	}
	switch {
	case ctx.Err() != nil:
		// The cause of the end may be another request's error, which must not speak for this one.
		e.Err = ctx.Err()
	case s.entered.Load():
		e.Kind = blob.ErrUnavailable
	default:
		e.Kind = unsent
	}
	return e
}

// SourceFailed reports whether the source of the body has failed in an attempt that has ended, and makes e the error of that. Nobody gets
// more of the body. A source can fail with its last bytes: they may have been sent all the same, and nobody knows what became of them.
func (s *Sent) SourceFailed(e *blob.Error) bool {
	if s.Body == nil {
		return false
	}
	s.end()
	src := s.Body.SourceError()
	if src == nil {
		return false
	}
	e.Kind, e.Outcome, e.Err = nil, blob.Unknown, src
	if !s.Body.Complete() {
		e.Outcome = blob.NotApplied
	}
	if errors.Is(src, blob.ErrSourceLength) {
		e.Kind = blob.ErrSourceLength
	}
	return true
}

// Unread returns an error if a success, of this status, was answered before the body had been handed over: whatever was stored, it is not the
// whole.
func (s *Sent) Unread(status int) error {
	if s.Body == nil || s.Body.Complete() {
		return nil
	}
	return &blob.Error{Kind: blob.ErrUnavailable, Status: status, Err: errors.New("a success was answered before the whole body was sent")}
}
