package realserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

const (
	readyTime  = 30 * time.Second      // a server may take to answer after its start
	probeEvery = 20 * time.Millisecond // between two questions whether it answers
	stopTime   = 5 * time.Second       // it may take to end when asked, before it is killed; see launch.stopTime
	portTries  = 3
)

// process is a running server.
type process struct {
	name    string
	addr    string          // host:port it listens on
	dir     string          // its data and its log, removed by stop
	wait    time.Duration   // for its end once asked, before it is killed
	outside func() []string // see launch.outside
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended
	err     error         // how it ended; valid once done is closed
}

// launch describes how to start a server.
type launch struct {
	name string
	path string // of its endpoint, behind host and port; "": none
	// command makes the command that starts it with its data in dir.
	command func(dir, addr string) (*exec.Cmd, error)
	// ready asks the server once whether it serves. It must tell this server
	// from another that listens at addr.
	ready func(ctx context.Context, addr string) error
	// stopTime bounds the wait for its end once it is asked to. 0: the constant of that name.
	stopTime time.Duration
	// outside returns the files that the server last started makes outside its folder, to be removed after its end. nil: none.
	outside func() []string
}

// start starts the server and waits until it is ready. The kernel names a free
// port; another process may take it before the server does, and the server
// then ends at once, so one that ends early is tried again on another port.
func (l launch) start(ctx context.Context) (*process, error) {
	var errs []error
	for range portTries {
		p, err := l.startOnce(ctx)
		if err == nil {
			return p, nil
		}
		errs = append(errs, err)
		if !errors.Is(err, errEndedEarly) {
			break
		}
	}
	return nil, errors.Join(errs...)
}

var errEndedEarly = errors.New("ended before it answered")

func (l launch) startOnce(ctx context.Context) (*process, error) {
	dir, err := os.MkdirTemp("", "wholeblob-"+l.name+"-")
	if err != nil {
		return nil, err
	}
	p := &process{name: l.name, dir: dir, wait: cmp.Or(l.stopTime, stopTime), outside: l.outside, done: make(chan struct{})}
	if err := p.spawn(ctx, l); err != nil {
		close(p.done)
		return nil, errors.Join(err, p.stop())
	}
	if err := p.awaitReady(ctx, l); err != nil {
		tail := p.logTail()
		return nil, errors.Join(fmt.Errorf("%s: %w\n%s", l.name, err, tail), p.stop())
	}
	return p, nil
}

// spawn starts the process on a free port, with its output in the log.
func (p *process) spawn(ctx context.Context, l launch) error {
	addr, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	p.addr = addr
	if p.cmd, err = l.command(p.dir, addr); err != nil {
		return err
	}
	log, err := os.Create(p.logPath())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own handle
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go p.own(started)
	return <-started
}

// own starts the process and waits for its end. The parent whose death kills
// the server is, to Linux, the thread that forked, not the whole process
// (prctl(2), PR_SET_PDEATHSIG); so this goroutine keeps its thread for as long
// as the server lives.
func (p *process) own(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

func (p *process) awaitReady(ctx context.Context, l launch) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		err := l.ready(ctx, p.addr)
		if err == nil && !p.exited() {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%w at %s: %w", errEndedEarly, p.addr, p.err)
		case <-ctx.Done():
			return fmt.Errorf("no answer from %s: %w (last: %w)", p.addr, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop ends the process if it still runs and removes its data.
func (p *process) stop() error {
	if !p.exited() {
		if p.cmd.Process.Signal(os.Interrupt) != nil {
			_ = p.cmd.Process.Kill() // no such signal on Windows
		}
		patience := time.NewTimer(p.wait)
		defer patience.Stop()
		select {
		case <-p.done:
		case <-patience.C:
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	}
	errs := []error{os.RemoveAll(p.dir)}
	if p.outside != nil {
		for _, path := range p.outside() {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

func (p *process) logPath() string { return filepath.Join(p.dir, "server.log") }

// logTail returns the last lines that the server wrote.
func (p *process) logTail() string {
	content, err := os.ReadFile(p.logPath())
	if err != nil {
		return ""
	}
	return string(lastLines(content, 30))
}

// lastLines returns the last n lines of text.
func lastLines(text []byte, n int) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}

// freeAddr asks the kernel for a loopback port that nobody listens on.
func freeAddr(ctx context.Context) (string, error) {
	addrs, err := freeAddrs(ctx, 1)
	if err != nil {
		return "", err
	}
	return addrs[0], nil
}

// freeAddrs asks for n of them, all different.
func freeAddrs(ctx context.Context, n int) (addrs []string, err error) {
	var held []net.Listener // until all are known: the kernel may name a port again once it is free
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		held = append(held, l)
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
