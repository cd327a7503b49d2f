package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far a phase is. It is safe for concurrent use.
type progress struct {
	w   io.Writer // nil: shows nothing
	bar *progressbar.ProgressBar
}

// newProgress shows progress on w only if it is a terminal that can move its cursor.
func newProgress(w io.Writer, environ func(string) string) *progress {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) || environ("TERM") == "dumb" {
		return &progress{}
	}
	return &progress{w: w}
}

func (p *progress) start(what string, steps int) {
	if p.w == nil {
		return
	}
	p.bar = progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(p.w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(true),
	)
}

func (p *progress) step() {
	if p.bar != nil {
		_ = p.bar.Add(1) // a terminal that went away is no failure of the bench
	}
}

// stop takes the bar off the screen, whether or not the phase went to its end.
func (p *progress) stop() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}
