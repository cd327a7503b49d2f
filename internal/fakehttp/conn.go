package fakehttp

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// connTable knows every open connection, so that Close can wait for all of
// them and a test can count them.
type connTable struct {
	mu struct {
		sync.Mutex
		conns map[net.Conn]*connInfo
		next  int
		ended sync.Cond // told of every connection that ends
	}
}

type connInfo struct {
	id     int
	idle   bool
	doomed bool // to be closed when it becomes idle
}

func (t *connTable) init() {
	t.mu.conns = make(map[net.Conn]*connInfo)
	t.mu.ended.L = &t.mu
}

type connKey struct{}

// context gives every connection its number and its place in the request's
// context. It runs before the first ConnState callback.
func (t *connTable) context(ctx context.Context, c net.Conn) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.next++
	info := &connInfo{id: t.mu.next}
	t.mu.conns[c] = info
	return context.WithValue(ctx, connKey{}, info)
}

func (t *connTable) state(c net.Conn, st http.ConnState) {
	if t.step(c, st) {
		// net/http reads the next request only after this call, so none is lost.
		_ = c.Close()
	}
}

// step records the state of c, and reports whether c must be closed now.
func (t *connTable) step(c net.Conn, st http.ConnState) (end bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	info := t.mu.conns[c]
	if info == nil {
		return false
	}
	if st == http.StateClosed {
		t.drop(c)
		return false
	}
	info.idle = st == http.StateIdle || st == http.StateNew
	return info.idle && info.doomed
}

// drop forgets c; the caller holds the lock.
func (t *connTable) drop(c net.Conn) {
	delete(t.mu.conns, c)
	t.mu.ended.Broadcast()
}

// forget is called by the handler that hijacked c, as its last act.
func (t *connTable) forget(c net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(c)
}

func (t *connTable) open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.conns)
}

// closeIdle closes the idle connections, dooms the others, and waits until all
// of them have ended: a client that has just got its answer must find its
// connection closed, though the server may not have come to call it idle.
func (t *connTable) closeIdle() {
	all := t.list(func(info *connInfo) bool { info.doomed = true; return true })
	for _, c := range t.list(func(info *connInfo) bool { return info.idle }) {
		_ = c.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for slices.ContainsFunc(all, func(c net.Conn) bool { return t.mu.conns[c] != nil }) {
		t.mu.ended.Wait()
	}
}

// closeAll ends hijacked connections too, which http.Server no longer knows.
func (t *connTable) closeAll() {
	for _, c := range t.list(func(*connInfo) bool { return true }) {
		_ = c.Close()
	}
}

func (t *connTable) list(keep func(*connInfo) bool) []net.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	var cs []net.Conn
	for c, info := range t.mu.conns {
		if keep(info) {
			cs = append(cs, c)
		}
	}
	return cs
}

func (t *connTable) wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.mu.conns) > 0 {
		t.mu.ended.Wait()
	}
}

// reset ends a TCP connection with RST instead of FIN. Bytes the peer has not
// received yet are lost with it. On other connections it is a plain close.
func reset(c net.Conn) {
	raw := c
	if t, ok := c.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	if t, ok := raw.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = raw.Close()
}
