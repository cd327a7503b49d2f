package fakehttp

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// serve is the life of one request; the package comment names its steps.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.inflight.Add(1)
	defer s.inflight.Add(-1)

	c := s.arrive(r)
	if c.shown != nil {
		defer c.record()
	}
	c.Sleep(c.Latency)
	if refusal := c.x.Authenticate(); refusal != nil {
		c.Drain()
		c.send(w, refusal, plan{})
		return
	}
	c.run(w)
}

// arrive lets the protocol name the request, and puts it in the log.
func (s *Server) arrive(r *http.Request) *Call {
	c := &Call{Request: newRequest(r), HTTP: r, ID: fmt.Sprintf("%016X", s.requests.Add(1)), s: s, Entry: &Entry{Time: s.Now()}}
	if info, ok := r.Context().Value(connKey{}).(*connInfo); ok {
		c.Entry.Conn = info.id
	}
	c.x = s.begin(c)
	c.Entry.Request = *c.Request
	if !s.opts.NoLog {
		shown := *c.Entry
		c.shown = &shown
		s.log.add(c.shown)
	}
	return c
}

func newRequest(r *http.Request) *Request {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	req := &Request{
		Op: "Unknown", Method: r.Method, Host: r.Host, RawPath: path, RawQuery: query,
		Header: r.Header, Range: r.Header.Get("Range"), ContentLength: r.ContentLength,
	}
	req.Query, _ = url.ParseQuery(query) // it returns what it could parse beside the error
	return req
}

// run takes an authentic request through the faults and the operation.
func (c *Call) run(w http.ResponseWriter) {
	p := c.s.faults.match(c.Request, &c.Shape)
	if p.before != 0 {
		p.reach(func(*Fault) bool { return true })
		c.end(w, p.before, p.hit)
		return
	}
	c.Sleep(p.delay)
	p.reach(func(f *Fault) bool { return f.HoldBefore })
	c.hold(p.holdBefore)
	var a *Answer
	if p.reply == nil || p.reply.Commit {
		a = c.x.Handle()
	}
	if p.reply == nil || !p.reply.Unread {
		c.Drain()
	}
	for _, then := range p.then {
		then()
	}
	p.reach(func(f *Fault) bool { return !f.HoldBefore })
	c.hold(p.holdAfter)
	if p.after != 0 {
		c.end(w, p.after, p.hit)
		return
	}
	if p.reply != nil {
		a = c.scripted(p.reply)
	}
	c.send(w, a, p)
}

// reach tells those who wait for a fault that a request has come to it.
func (p *plan) reach(which func(*Fault) bool) {
	for _, in := range p.hit {
		if which(&in.fault) {
			in.reach()
		}
	}
}

// hold waits until every one of these faults has been released.
func (c *Call) hold(by []*Injected) {
	for _, in := range by {
		select {
		case <-in.gate:
		case <-c.s.closing:
		}
	}
}

// Sleep returns early when the server closes or the client goes away.
func (c *Call) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.s.closing:
	case <-c.HTTP.Context().Done():
	}
}

// Drain reads what is left of the request body: a client that is still
// sending when the answer comes may never see it.
func (c *Call) Drain() { _, _ = io.Copy(io.Discard, c.HTTP.Body) }

// scripted makes the answer that r asks for. With a body of its own it has only the type of an error of the service: what else
// an error has would give the body away.
func (c *Call) scripted(r *Reply) *Answer {
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	a := c.x.Error(status, r.Code, r.Message)
	if r.Body != "" || r.NoBody {
		a = Document(status, a.Header.Get("Content-Type"), []byte(r.Body))
	}
	if r.RetryAfter > 0 {
		a.Set("Retry-After", strconv.Itoa(int(r.RetryAfter.Seconds())))
	}
	for name, v := range r.Header {
		a.Set(name, v)
	}
	return a
}

// end finishes the connection without an answer, or keeps it silent first.
func (c *Call) end(w http.ResponseWriter, how Ending, by []*Injected) {
	c.Entry.Cut = true
	c.record()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if how == Silence {
		c.silence(conn, by)
	}
	c.finish(conn, how)
}

// record brings the log up to date. It comes before the answer is sent, so
// that a client which has its answer finds the request in the log.
func (c *Call) record() {
	if c.shown != nil {
		c.s.log.update(c.shown, *c.Entry)
	}
}
