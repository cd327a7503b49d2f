package faultsweep

import (
	"fmt"
	"slices"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// mishap is a way in which a request fails.
type mishap struct {
	name  string
	fault fakehttp.Fault
	kinds []error // of the error, if it reaches the caller
	lost  bool    // whether nobody can know if the request was handled
	final bool    // whether no further attempt would help

	silent bool // takes time: for a clock that is not the real one
	mild   bool // may do no harm
}

// refusal is the first of the target's.
func (target *Target) refusal() mishap {
	r := target.Refusals[0]
	return mishap{name: said(r), fault: fakehttp.Fault{Reply: &r}, kinds: []error{blob.ErrPermission}, final: true}
}

// said names a reply.
func said(r fakehttp.Reply) string {
	name := fmt.Sprint(r.Status)
	if r.Code != "" {
		name += " " + r.Code
	}
	if r.Body != "" {
		name += " with a page"
	}
	return name
}

func (target *Target) mishaps() []mishap {
	all := append(target.answers(), endings(int64(target.PartSize))...)
	if target.Brief {
		all = slices.DeleteFunc(all, func(m mishap) bool { return !m.typical() })
	}
	return all
}

// typical reports whether m is one of the few that are left of those which look alike from above the engine.
func (m mishap) typical() bool {
	switch f := m.fault; {
	case f.Reply != nil:
		return m.final || f.Reply.Commit || !m.lost && !m.silent // refused, done but said to have failed, throttled
	case f.Cut != nil:
		return f.Cut.At == 100 && f.Cut.How == fakehttp.Reset
	default:
		return f.Before == fakehttp.Reset || f.After == fakehttp.Reset || f.After == fakehttp.Silence
	}
}

// answers are the mishaps that come as an answer.
func (target *Target) answers() []mishap {
	var ms []mishap
	gone := []error{blob.ErrUnavailable}
	for _, r := range target.Refusals {
		ms = append(ms, mishap{name: said(r), fault: fakehttp.Fault{Reply: &r}, kinds: []error{blob.ErrPermission}, final: true})
	}
	for i, r := range target.Throttles {
		ms = append(ms, mishap{name: said(r), fault: fakehttp.Fault{Reply: &r}, kinds: []error{blob.ErrThrottled}})
		if i == 0 {
			later := r
			later.RetryAfter = time.Second
			ms = append(ms, mishap{
				name: said(r) + " with Retry-After", fault: fakehttp.Fault{Reply: &later}, kinds: []error{blob.ErrThrottled}, silent: true,
			})
		}
	}
	for _, r := range target.Failures {
		done := r
		done.Commit = true
		ms = append(ms,
			mishap{name: said(r), fault: fakehttp.Fault{Reply: &r}, kinds: gone, lost: true},
			mishap{name: said(r) + " after it was done", fault: fakehttp.Fault{Reply: &done}, kinds: gone, lost: true},
		)
	}
	return ms
}

// endings are the mishaps in which the connection ends, or says nothing more.
func endings(partSize int64) []mishap {
	var ms []mishap
	gone, cut := []error{blob.ErrUnavailable}, []error{blob.ErrUnavailable, blob.ErrTruncated}
	for _, how := range []struct {
		name   string
		ending fakehttp.Ending
	}{{"close", fakehttp.Close}, {"reset", fakehttp.Reset}, {"silence", fakehttp.Silence}} {
		silent := how.ending == fakehttp.Silence
		ms = append(ms,
			mishap{name: how.name + " before", fault: fakehttp.Fault{Before: how.ending}, kinds: gone, lost: true, silent: silent},
			mishap{name: how.name + " after", fault: fakehttp.Fault{After: how.ending}, kinds: gone, lost: true, silent: silent},
		)
		for _, at := range []int64{0, 1, 100, partSize - 1} {
			ms = append(ms, mishap{
				name: fmt.Sprintf("%s at byte %d", how.name, at), fault: fakehttp.Fault{Cut: &fakehttp.Cut{At: at, How: how.ending}},
				kinds: cut, lost: true, silent: silent, mild: true,
			})
		}
	}
	return ms
}
