package fakes3

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// response is an answer before it is deformed and sent.
type response struct {
	status int
	header http.Header
	body   rope
	length int64 // announced for HEAD; else the size of body
}

func newResponse(status int) *response {
	return &response{status: status, header: http.Header{}}
}

func docResponse(d *xmlDoc) *response {
	r := newResponse(http.StatusOK)
	r.set("Content-Type", "application/xml")
	r.body = rope{d.bytes()}
	r.length = r.body.size()
	return r
}

// set leaves the header out when the value is empty.
func (r *response) set(name, value string) {
	if value != "" {
		r.header.Set(name, value)
	}
}

// serve is the life of one request; the package comment names its steps.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.inflight.Add(1)
	defer s.inflight.Add(-1)

	id := fmt.Sprintf("%016X", s.requests.Add(1))
	knobs := s.knobs.Load()
	req, bad := s.parse(r, knobs)
	c := &call{Request: req, s: s, r: r, knobs: knobs, shape: knobs.Shape, entry: &Entry{Request: *req, Time: s.now()}}
	if info, ok := r.Context().Value(connKey{}).(*connInfo); ok {
		c.entry.Conn = info.id
	}
	if !s.opts.NoLog {
		shown := *c.entry
		c.shown = &shown
		s.log.add(c.shown)
		defer c.record()
	}
	c.sleep(knobs.Latency)

	if err := s.authenticate(r); err != nil {
		bad = err
	}
	if bad != nil {
		c.drain()
		c.send(w, c.refusal(bad, id), id, plan{})
		return
	}
	c.run(w, id)
}

// run takes an authentic request through the faults and the operation.
func (c *call) run(w http.ResponseWriter, id string) {
	p := c.s.faults.match(c.Request, &c.shape)
	if p.before != 0 {
		p.reach(func(*Fault) bool { return true })
		c.end(w, p.before, p.hit)
		return
	}
	c.sleep(p.delay)
	p.reach(func(f *Fault) bool { return f.HoldBefore })
	c.hold(p.holdBefore)
	var resp *response
	if p.reply == nil || p.reply.Commit {
		var err *apiError
		if resp, err = c.handle(); err != nil {
			resp = c.refusal(err, id)
		}
	}
	if p.reply == nil || !p.reply.Unread {
		c.drain()
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
		resp = p.reply.response(c.Method, id)
	}
	c.send(w, resp, id, p)
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
func (c *call) hold(by []*Injected) {
	for _, in := range by {
		select {
		case <-in.gate:
		case <-c.s.closing:
		}
	}
}

// drain reads what is left of the request body: a client that is still
// sending when the answer comes may never see it.
func (c *call) drain() { _, _ = io.Copy(io.Discard, c.r.Body) }

func (c *call) refusal(e *apiError, id string) *response {
	resp := newResponse(e.status)
	for name, v := range e.header {
		resp.set(name, v)
	}
	if e.status == http.StatusNotModified {
		return resp
	}
	resp.set("Content-Type", "application/xml")
	if c.Method != http.MethodHead {
		resource := c.RawPath
		resp.body = rope{errorDoc(e, resource, id)}
	}
	resp.length = resp.body.size()
	return resp
}

func (r *Reply) response(method, id string) *response {
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	resp := newResponse(status)
	resp.set("Content-Type", "application/xml")
	if r.RetryAfter > 0 {
		resp.set("Retry-After", strconv.Itoa(int(r.RetryAfter.Seconds())))
	}
	for name, v := range r.Header {
		resp.set(name, v)
	}
	if method != http.MethodHead {
		resp.body = rope{r.document(id)}
	}
	resp.length = resp.body.size()
	return resp
}

// end finishes the connection without an answer, or keeps it silent first.
func (c *call) end(w http.ResponseWriter, how Ending, by []*Injected) {
	c.entry.Cut = true
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
func (c *call) record() {
	if c.shown != nil {
		c.s.log.update(c.shown, *c.entry)
	}
}
