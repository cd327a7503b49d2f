package fakes3

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
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

// pipeListener hands out net.Pipes.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

// selfSigned makes a certificate for 127.0.0.1 and the names under domain.
func selfSigned(domain string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "fakes3"},
		// The client's clock decides about validity, and tests turn clocks.
		NotBefore:             time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2190, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:              []string{"localhost", domain, "*." + domain},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
