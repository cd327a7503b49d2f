package realserver

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"testing"
)

// Server is what the servers of all kinds have in common.
type Server struct {
	Name     string // of the server's software
	Version  string // as the program that runs states it
	Endpoint string // http://127.0.0.1:port, and a path where the kind of server wants one
	Note     string // how it was set up, where that can change what a test sees

	proc *process
}

// String names the server for logs, without its keys.
func (s *Server) String() string {
	return fmt.Sprintf("%s %s at %s (%s)", s.Name, s.Version, s.Endpoint, s.Note)
}

func (s *Server) common() *Server { return s }

// handle is what tests get of a server: a struct that embeds [Server].
type handle interface {
	fmt.Stringer
	common() *Server
}

// kind is one kind of server: its program, and how that is started for a
// handle of the type H.
type kind[H handle] struct {
	program program
	// setUp returns a new handle and how to start the program at path for it. The handle has its keys and its note; its
	// endpoint is known from the call of the launch's command on.
	setUp func(path string) (H, launch)
	// shared starts the one that the tests of a process share.
	shared func() (H, error)
}

func newKind[H handle](p program, setUp func(path string) (H, launch)) *kind[H] {
	k := &kind[H]{program: p, setUp: setUp}
	k.shared = sync.OnceValues(func() (H, error) {
		ctx, cancel := obtainContext()
		defer cancel()
		return k.open(ctx, mayBuild())
	})
	return k
}

// open starts a server, which [Stop] will end.
func (k *kind[H]) open(ctx context.Context, mayBuild bool) (none H, err error) {
	path, err := k.program.obtain(ctx, mayBuild)
	if err != nil {
		return none, err
	}
	h, l := k.setUp(path)
	s := h.common()
	s.Name, l.name = k.program.name, k.program.name
	if s.Version, err = k.program.version(path); err != nil {
		return none, err
	}
	command := l.command
	l.command = func(dir, addr string) (*exec.Cmd, error) {
		s.Endpoint = "http://" + addr + l.path
		return command(dir, addr)
	}
	if s.proc, err = l.start(ctx); err != nil {
		return none, err
	}
	keep(s.proc)
	return h, nil
}

// forTest returns the server that the tests of this process share.
func (k *kind[H]) forTest(t testing.TB) H {
	t.Helper()
	var h H
	forTest(t, k.program.name, func() (*process, error) {
		var err error
		if h, err = k.shared(); err != nil {
			return nil, err
		}
		return h.common().proc, nil
	})
	t.Log(markUsed, h)
	return h
}
