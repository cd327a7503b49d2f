package fakehttp

import "time"

// Fault is something that happens to chosen requests; see the package comment
// for the order in which its parts act. A Fault with none of them set only
// counts.
type Fault struct {
	// Op is the operation, as Request.Op has it. Empty: any.
	Op string
	// Key is the exact key. Empty: any.
	Key string
	// Match looks at the request. Nil: any. It runs under a lock: it must not
	// call the server.
	Match func(*Request) bool

	// Nth is the first of the matching requests that is hit, counted from 1.
	// Zero: 1.
	Nth int
	// Times is how many are hit in a row. Zero: 1, or one for each of
	// Replies; negative: all.
	Times int

	// Before ends the connection before the request is handled. A body that
	// was not read makes TCP reset even a clean close.
	Before Ending
	// Delay is slept before the request is handled. Zero: nothing.
	Delay time.Duration
	// HoldBefore and HoldAfter keep the request, before it is handled or with
	// its answer ready, until Injected.Release or Server.Close.
	HoldBefore, HoldAfter bool
	// After handles the request and then ends the connection: a lost reply.
	After Ending
	// Then is called after the request was handled and before its answer is
	// sent; the answer is from before what it does. Nil: nothing.
	Then func()

	// Reply is the answer instead of the server's own. Nil: its own.
	Reply *Reply
	// Replies are the answers of the requests hit, in turn; a zero Reply
	// leaves that request alone.
	Replies []Reply

	// Cut ends the body early. Nil: not.
	Cut *Cut
	// Shape deforms the answer.
	Shape
}

// Ending is a way in which a connection ends. The zero value: it does not.
type Ending int

const (
	// Close ends it in order (FIN).
	Close Ending = iota + 1
	// Reset ends it with RST.
	Reset
	// Silence leaves it open and says nothing more, until Injected.Release,
	// Server.Close or the client's own end; then it is closed.
	Silence
)

// Cut ends the connection after At bytes of the body; the headers, with the
// full Content-Length, and those bytes have been sent. At beyond the body
// ends it right after the body (with Chunked: before the last chunk). How
// zero: Close. With Reset fewer bytes may arrive.
type Cut struct {
	At  int64
	How Ending
}

// Reply is a scripted answer.
type Reply struct {
	// Status is the HTTP status. Zero: 200 if there is a Body, else the
	// request is left alone.
	Status int
	// Code and Message are of the error document. Empty: what the service
	// sends with that status. Ignored when Body is set.
	Code, Message string
	// Body is sent instead of an error document. Empty: see NoBody.
	Body string
	// NoBody sends an empty body.
	NoBody bool
	// RetryAfter is sent in whole seconds. Zero: no header.
	RetryAfter time.Duration
	// Header is added.
	Header map[string]string
	// Commit handles the request first and throws its own answer away.
	Commit bool
	// Unread answers without having read the request body.
	Unread bool
}

func (r *Reply) none() bool { return r == nil || r.Status == 0 && r.Body == "" && !r.NoBody }

// Statuses makes replies of statuses; 0 leaves the request alone.
func Statuses(status ...int) []Reply {
	rs := make([]Reply, len(status))
	for i, st := range status {
		rs[i].Status = st
	}
	return rs
}

// HTMLPage is what a proxy in the way answers.
const HTMLPage = "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>\n"
