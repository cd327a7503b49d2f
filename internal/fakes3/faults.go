package fakes3

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Fault is something that happens to chosen requests; see the package comment
// for the order in which its parts act. A Fault with none of them set only
// counts.
type Fault struct {
	// Op is the operation, such as "GetObject". Empty: any.
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
	// Code and Message are of the error document. Empty: what S3 sends with
	// that status. Ignored when Body is set.
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

// WrongRegion is the redirect that S3 gives to a request sent to a region
// that is not the bucket's.
func WrongRegion(region string) *Reply {
	return &Reply{
		Status:  http.StatusMovedPermanently,
		Code:    "PermanentRedirect",
		Message: "The bucket you are attempting to access must be addressed using the specified endpoint.",
		Header:  map[string]string{"x-amz-bucket-region": region},
	}
}

// Injected is a fault in force.
type Injected struct {
	fault   Fault
	list    *faultList
	seen    int // matching requests so far, under the list's lock
	hits    int
	gate    chan struct{}
	release sync.Once

	mu struct {
		sync.Mutex
		arrived int
		next    chan struct{} // closed at the next arrival
		reached chan struct{} // closed at the first
	}
}

// Inject puts a fault in force, beside those there are. Faults that hit the
// same request add up.
func (s *Server) Inject(f Fault) *Injected {
	if f.Nth == 0 {
		f.Nth = 1
	}
	if f.Times == 0 {
		f.Times = max(1, len(f.Replies))
	}
	in := &Injected{fault: f, list: &s.faults, gate: make(chan struct{})}
	in.mu.next, in.mu.reached = make(chan struct{}), make(chan struct{})
	s.faults.add(in)
	return in
}

// ClearFaults removes every fault and releases what they hold.
func (s *Server) ClearFaults() {
	for _, in := range s.faults.clear() {
		in.Release()
	}
}

// Hits is the number of requests hit so far.
func (in *Injected) Hits() int {
	in.list.mu.Lock()
	defer in.list.mu.Unlock()
	return in.hits
}

// Seen is the number of requests that matched so far, hit or not.
func (in *Injected) Seen() int {
	in.list.mu.Lock()
	defer in.list.mu.Unlock()
	return in.seen
}

// Reached is closed when the first request has come to the fault: for
// HoldBefore and Before that is before it is handled, for the others after it
// was handled (and committed).
func (in *Injected) Reached() <-chan struct{} { return in.mu.reached }

// WaitFor waits until n requests have come to the fault, as Reached does for
// one.
func (in *Injected) WaitFor(ctx context.Context, n int) error {
	for {
		in.mu.Lock()
		arrived, next := in.mu.arrived, in.mu.next
		in.mu.Unlock()
		if arrived >= n {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Release lets every request go that the fault holds or will hold.
func (in *Injected) Release() { in.release.Do(func() { close(in.gate) }) }

// Remove ends the fault and releases what it holds.
func (in *Injected) Remove() {
	in.list.remove(in)
	in.Release()
}

func (in *Injected) reach() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mu.arrived++; in.mu.arrived == 1 {
		close(in.mu.reached)
	}
	close(in.mu.next)
	in.mu.next = make(chan struct{})
}

type faultList struct {
	n  atomic.Int32 // spares the lock where there are none
	mu struct {
		sync.Mutex
		list []*Injected
	}
}

func (l *faultList) add(in *Injected) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.list = append(l.mu.list, in)
	l.n.Add(1)
}

func (l *faultList) remove(in *Injected) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, x := range l.mu.list {
		if x == in {
			l.mu.list = append(l.mu.list[:i:i], l.mu.list[i+1:]...)
			l.n.Add(-1)
			return
		}
	}
}

func (l *faultList) clear() []*Injected {
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := l.mu.list
	l.mu.list = nil
	l.n.Store(0)
	return gone
}

// plan is what all faults together do to one request.
type plan struct {
	before, after Ending
	holdBefore    []*Injected
	holdAfter     []*Injected
	hit           []*Injected
	then          []func()
	delay         time.Duration
	reply         *Reply
	cut           *Cut
}

// match counts the request for every fault and collects what hits it.
func (l *faultList) match(r *Request, shape *Shape) plan {
	var p plan
	if l.n.Load() == 0 {
		return p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.mu.list {
		f := &in.fault
		if f.Op != "" && f.Op != r.Op || f.Key != "" && f.Key != r.Key || f.Match != nil && !f.Match(r) {
			continue
		}
		in.seen++
		i := in.seen - f.Nth // index among those hit
		if i < 0 || f.Times > 0 && i >= f.Times {
			continue
		}
		in.hits++
		p.add(in, i, shape)
	}
	return p
}

func (p *plan) add(in *Injected, i int, shape *Shape) {
	f := &in.fault
	p.hit = append(p.hit, in)
	over(&p.before, f.Before)
	over(&p.after, f.After)
	over(&p.delay, f.Delay)
	if f.HoldBefore {
		p.holdBefore = append(p.holdBefore, in)
	}
	if f.HoldAfter {
		p.holdAfter = append(p.holdAfter, in)
	}
	if f.Then != nil {
		p.then = append(p.then, f.Then)
	}
	if !f.Reply.none() {
		p.reply = f.Reply
	}
	if i < len(f.Replies) && !f.Replies[i].none() {
		p.reply = &f.Replies[i]
	}
	if f.Cut != nil {
		p.cut = f.Cut
	}
	shape.merge(&f.Shape)
}

// document is the error document of a scripted reply.
func (r *Reply) document(requestID string) []byte {
	if r.Body != "" || r.NoBody {
		return []byte(r.Body)
	}
	code, msg := r.Code, r.Message
	if code == "" {
		if code = statusCodes[r.Status]; code == "" {
			code = "Status" + strconv.Itoa(r.Status)
		}
	}
	if msg == "" {
		msg = "scripted answer"
	}
	return errorDoc(&apiError{code: code, msg: msg}, "", requestID)
}
