package fakes3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options describe a server. The zero value is a plain HTTP server on a free
// loopback port, with the default credentials and no buckets.
type Options struct {
	// Addr is the TCP address to listen on. Empty: a free port of 127.0.0.1.
	Addr string
	// TLS serves HTTPS with a certificate made for this server (see
	// Server.Client). False: plain HTTP.
	TLS bool
	// InMemory joins clients and server by net.Pipe instead of sockets; only
	// Server.Transport, Client and Dial reach it then. Addr is ignored.
	InMemory bool
	// Buckets are created at the start. Empty: none.
	Buckets []string
	// Versioned switches versioning on for Buckets. False: never versioned.
	Versioned bool
	// Credentials are those accepted. Empty: DefaultCredentials.
	Credentials []Credentials
	// Anonymous turns the signature check off: every request is authentic.
	Anonymous bool
	// Region is the one region of the server. Empty: us-east-1.
	Region string
	// Domain is the host name under which BUCKET.Domain addresses a bucket.
	// Empty: localhost. Any other host is addressed path-style.
	Domain string
	// Now is the server's clock: dates in answers, skew, expiry, the log.
	// Nil: time.Now.
	Now func() time.Time
	// NoLog records no requests, for benchmarks.
	NoLog bool
	// HashBodies records the SHA-256 of every request body in the log.
	HashBodies bool
	// FastETag makes ETags that are unique per write instead of MD5 sums,
	// which saves the hashing; such an ETag still ends in -N for N parts.
	FastETag bool
	// MinPartSize is the smallest size in bytes of all parts but the last.
	// Zero: 5 MiB, as on AWS; negative: no minimum.
	MinPartSize int64
	// MaxParts is the highest part number. Zero: 10,000.
	MaxParts int
	// MaxObject is the largest body of one request in bytes. Zero: 5 GiB.
	MaxObject int64
	// Knobs are the traits the server starts with.
	Knobs Knobs
}

// Server is a running fake S3 server. Its methods are safe for concurrent use.
type Server struct {
	opts  Options
	ln    net.Listener
	pipes *pipeListener // nil unless InMemory
	http  *http.Server
	url   string
	cert  *x509.Certificate

	knobs    atomic.Pointer[Knobs]
	creds    atomic.Pointer[[]Credentials]
	requests atomic.Uint64 // request ids
	versions atomic.Uint64 // version ids, upload ids and fast ETags
	inflight atomic.Int64
	faults   faultList
	log      logBook
	conns    connTable
	closing  chan struct{} // closed by Close
	serving  chan struct{} // closed when the listener has ended
	once     sync.Once

	mu struct {
		sync.RWMutex
		buckets map[string]*bucket
	}
}

// New starts a server. It panics when the address cannot be listened on, as
// a test has nothing else to do then; see Start for the error.
func New(opts Options) *Server {
	s, err := Start(opts)
	if err != nil {
		panic("fakes3: " + err.Error())
	}
	return s
}

// Start starts a server.
func Start(opts Options) (*Server, error) {
	withDefaults(&opts)
	s := &Server{opts: opts, closing: make(chan struct{}), serving: make(chan struct{})}
	s.mu.buckets = make(map[string]*bucket)
	k := opts.Knobs
	s.knobs.Store(&k)
	s.SetCredentials(opts.Credentials...)
	for _, name := range opts.Buckets {
		s.CreateBucket(name)
		if opts.Versioned {
			s.SetVersioning(name, true)
		}
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler:     http.HandlerFunc(s.serve),
		ConnState:   s.conns.state,
		ConnContext: s.conns.context,
		// Real S3 speaks HTTP/1.1 only, and the faults need the raw connection.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(s.serving)
		_ = s.http.Serve(s.ln) // always ends with ErrServerClosed, in Close
	}()
	return s, nil
}

func withDefaults(o *Options) {
	o.Buckets = slices.Clone(o.Buckets)
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Domain == "" {
		o.Domain = "localhost"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if len(o.Credentials) == 0 {
		o.Credentials = []Credentials{DefaultCredentials()}
	}
	switch {
	case o.MinPartSize == 0:
		o.MinPartSize = 5 << 20
	case o.MinPartSize < 0:
		o.MinPartSize = 0
	}
	if o.MaxParts == 0 {
		o.MaxParts = 10_000
	}
	if o.MaxObject == 0 {
		o.MaxObject = 5 << 30
	}
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
	s.conns.init()
	scheme := "http"
	if s.opts.TLS {
		cert, err := selfSigned(s.opts.Domain)
		if err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
		scheme, s.cert = "https", cert.Leaf
		s.ln = tls.NewListener(s.ln, &tls.Config{Certificates: []tls.Certificate{cert}})
	}
	s.url = scheme + "://" + s.Addr()
	return nil
}

// URL is the endpoint, such as http://127.0.0.1:41234, without a final slash.
func (s *Server) URL() string { return s.url }

// Region is the region of the server.
func (s *Server) Region() string { return s.opts.Region }

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

// Set changes the steady traits of the server. Requests that have begun keep
// the traits they began with.
func (s *Server) Set(change func(*Knobs)) {
	for {
		old := s.knobs.Load()
		k := *old
		change(&k)
		if s.knobs.CompareAndSwap(old, &k) {
			return
		}
	}
}

func (s *Server) now() time.Time { return s.opts.Now() }
