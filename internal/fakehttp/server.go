package fakehttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options describe a server. The zero value is a plain HTTP server on a free
// loopback port.
type Options struct {
	// Addr is the TCP address to listen on. Empty: a free port of 127.0.0.1.
	Addr string
	// TLS serves HTTPS with a certificate made for this server (see
	// Server.Client). False: plain HTTP.
	TLS bool
	// Hosts are names in the certificate beside 127.0.0.1 and localhost.
	Hosts []string
	// InMemory joins clients and server by net.Pipe instead of sockets; only
	// Server.Transport, Client and Dial reach it then. Addr is ignored.
	InMemory bool
	// Now is the server's clock. Nil: time.Now.
	Now func() time.Time
	// NoLog records no requests, for benchmarks.
	NoLog bool
	// HashBodies records the SHA-256 of every body that ReadBody reads.
	HashBodies bool
}

// Server is the part of a fake that is the same for all. Its methods are safe for concurrent use.
type Server struct {
	opts  Options
	begin Begin
	ln    net.Listener
	pipes *pipeListener // nil unless InMemory
	http  *http.Server
	url   string
	cert  *x509.Certificate

	requests atomic.Uint64 // request ids
	inflight atomic.Int64
	faults   faultList
	log      logBook
	conns    connTable
	closing  chan struct{} // closed by Close
	serving  chan struct{} // closed when the listener has ended
	once     sync.Once
}

// Listen makes a server that has its address. It answers from Serve on.
func Listen(opts Options) (*Server, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{opts: opts, closing: make(chan struct{}), serving: make(chan struct{})}
	s.conns.init()
	if err := s.listen(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) listen() error {
	if s.opts.InMemory {
		s.pipes = newPipeListener()
		s.ln = s.pipes
	} else {
		ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", s.opts.Addr)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		s.ln = ln
	}
	scheme := "http"
	if s.opts.TLS {
		cert, err := selfSigned(s.opts.Hosts)
		if err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
		scheme, s.cert = "https", cert.Leaf
		s.ln = tls.NewListener(s.ln, &tls.Config{Certificates: []tls.Certificate{cert}})
	}
	s.url = scheme + "://" + s.Addr()
	return nil
}

// Serve begins to answer requests, and returns at once. It is called once.
func (s *Server) Serve(begin Begin) {
	s.begin = begin
	s.http = &http.Server{
		Handler:     http.HandlerFunc(s.serve),
		ConnState:   s.conns.state,
		ConnContext: s.conns.context,
		// HTTP/1.1 only: the faults need the raw connection.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(s.serving)
		_ = s.http.Serve(s.ln) // always ends with ErrServerClosed, in Close
	}()
}

// URL is the endpoint, such as http://127.0.0.1:41234, without a final slash.
func (s *Server) URL() string { return s.url }

// Now is the time on the server's clock.
func (s *Server) Now() time.Time { return s.opts.Now() }

// Close releases every held request, ends all connections and waits until
// the server's goroutines have ended. It may be called again.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closing)
		_ = s.http.Close() // closing a listener on loopback has nothing to report
		<-s.serving        // from here on no connection is added
		s.conns.closeAll()
		s.conns.wait()
	})
}

// Dial opens a connection to the server, in every mode.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	if s.pipes != nil {
		return s.pipes.dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", s.Addr())
}

// Addr is the host and port of URL.
func (s *Server) Addr() string {
	if s.pipes != nil {
		return "127.0.0.1:80"
	}
	return s.ln.Addr().String()
}

// Transport returns a new transport whose connections all lead to this
// server, whatever host the URL names, and which trusts its certificate. It
// offers no compression. The caller closes its idle connections.
func (s *Server) Transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return s.Dial(ctx)
		},
		TLSClientConfig:     &tls.Config{RootCAs: s.CertPool()},
		DisableCompression:  true,
		MaxIdleConnsPerHost: 256,
	}
}

// Client returns a new client over Transport.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.Transport()} }

// CertPool holds the server's certificate; it is empty for a plain server.
func (s *Server) CertPool() *x509.CertPool {
	pool := x509.NewCertPool()
	if s.cert != nil {
		pool.AddCert(s.cert)
	}
	return pool
}

// OpenConns is the number of client connections open now.
func (s *Server) OpenConns() int { return s.conns.open() }

// InFlight is the number of requests being served now, held ones included.
func (s *Server) InFlight() int { return int(s.inflight.Load()) }

// CloseIdleConns closes every connection that is open now as soon as no
// request runs on it, as a server or a middlebox does with a connection it
// thinks nobody uses, and returns when all have ended. It waits for requests
// that are being served, so it must not be called where only its caller can
// release them.
func (s *Server) CloseIdleConns() { s.conns.closeIdle() }
