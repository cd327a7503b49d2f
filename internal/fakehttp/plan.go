package fakehttp

import "time"

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
