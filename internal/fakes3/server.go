package fakes3

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
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
	*fakehttp.Server
	opts Options

	knobs    fakehttp.Steady[Knobs]
	creds    atomic.Pointer[[]Credentials]
	versions atomic.Uint64 // version ids, upload ids and fast ETags

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
	s := &Server{opts: opts}
	s.mu.buckets = make(map[string]*bucket)
	s.Set(func(k *Knobs) { *k = opts.Knobs })
	s.SetCredentials(opts.Credentials...)
	var err error
	if s.Server, err = fakehttp.Listen(fakehttp.Options{
		Addr: opts.Addr, TLS: opts.TLS, Hosts: []string{opts.Domain, "*." + opts.Domain}, InMemory: opts.InMemory,
		Now: opts.Now, NoLog: opts.NoLog,
	}); err != nil {
		return nil, err
	}
	for _, name := range opts.Buckets {
		s.CreateBucket(name)
		if opts.Versioned {
			s.SetVersioning(name, true)
		}
	}
	s.Serve(s.begin)
	return s, nil
}

func withDefaults(o *Options) {
	o.Buckets = slices.Clone(o.Buckets)
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Domain == "" {
		o.Domain = "localhost"
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

// Region is the region of the server.
func (s *Server) Region() string { return s.opts.Region }

// Set changes the steady traits of the server. Requests that have begun keep
// the traits they began with.
func (s *Server) Set(change func(*Knobs)) { s.knobs.Set(change) }
