package fakeaz

import (
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

type (
	response = fakehttp.Answer
	rope     = fakehttp.Rope
	page     = fakehttp.Page
)

func newResponse(status int) *response { return fakehttp.NewAnswer(status) }

// DefaultAccount is the name of the account when Options name none.
const DefaultAccount = "fakeaccount"

// DefaultKey returns the account's key, in base64, when Options name none.
func DefaultKey() string {
	return base64.StdEncoding.EncodeToString([]byte("fakeaz account key, guards nothing"))
}

// Options describe a server. The zero value is a plain HTTP server on a free loopback port, with the default account and
// no containers.
type Options struct {
	// Addr is the TCP address to listen on. Empty: a free port of 127.0.0.1.
	Addr string
	// TLS serves HTTPS with a certificate made for this server (see Server.Client). False: plain HTTP.
	TLS bool
	// InMemory joins clients and server by net.Pipe instead of sockets; only Server.Transport, Client and Dial reach it
	// then. Addr is ignored.
	InMemory bool
	// Account is the name of the one account. A host that begins with it and a dot is addressed host-style, any other
	// path-style, as http://HOST/ACCOUNT/CONTAINER/BLOB. Empty: DefaultAccount.
	Account string
	// Keys are the account's keys, in base64; each is accepted. Empty: DefaultKey.
	Keys []string
	// Tokens are the bearer tokens that are accepted, over TLS only. Empty: none.
	Tokens []string
	// Anonymous turns authorization off: every request may do everything.
	Anonymous bool
	// Containers are created at the start. Empty: none.
	Containers []string
	// Now is the server's clock: dates in answers, skew, expiry, retention, the log. Nil: time.Now.
	Now func() time.Time
	// NoLog records no requests, for benchmarks.
	NoLog bool
	// HashBodies records the SHA-256 of every request body in the log.
	HashBodies bool
	// MaxBlob is the largest body of Put Blob in bytes. Zero: 5000 MiB.
	MaxBlob int64
	// MaxBlock is the largest block in bytes. Zero: 4000 MiB.
	MaxBlock int64
	// MaxCommitted is the most blocks of a blob. Zero: 50,000.
	MaxCommitted int
	// MaxUncommitted is the most uncommitted blocks of a blob. Zero: 100,000.
	MaxUncommitted int
	// Knobs are the traits the server starts with.
	Knobs Knobs
}

// Knobs are steady traits of the server, changed with Server.Set. The zero value is an account as it is made: without
// soft delete and versioning.
type Knobs struct {
	fakehttp.Traits

	// Retention is how long soft-deleted blobs are kept. Zero: soft delete is off. What is deleted stays deleted for the
	// retention of the moment.
	Retention time.Duration
	// Versioning keeps previous versions of blobs. False: off.
	Versioning bool

	// Order compares names in listings. Nil: byte order of UTF-8.
	Order func(a, b string) int
	// PageSize is the most entries in a page of a listing. Zero: 5000.
	PageSize int
	// EmptyPages puts an empty page with a marker before every page of a listing: "List Blobs" says that this happens.
	EmptyPages bool
	// CommittedIDs lets Put Block compare the length of ids with those of committed blocks too. False: with uncommitted
	// ones only.
	CommittedIDs bool
	// ConditionsFirst answers If-Match on a blob that is not there with 412 in Get Blob, Get Blob Properties and Delete Blob
	// too, as Azurite does. False: with 404.
	ConditionsFirst bool
	// NoBatch answers Blob Batch with 501 NotImplemented.
	NoBatch bool
	// LosesMetadata drops user metadata.
	LosesMetadata bool
}

// Server is a running fake of Azure Blob Storage. Its methods are safe for concurrent use.
type Server struct {
	*fakehttp.Server
	opts   Options
	knobs  fakehttp.Steady[Knobs]
	keys   atomic.Pointer[[][]byte]
	tokens atomic.Pointer[[]string]
	ticks  atomic.Int64  // the last stamp, in 100 ns
	writes atomic.Uint64 // ETags
	ids    atomic.Uint64 // ids of copies and parts of batches

	mu struct {
		sync.RWMutex
		containers map[string]*container
	}
}

// New starts a server. It panics when the address cannot be listened on, as a test has nothing else to do then; see Start
// for the error.
func New(opts Options) *Server {
	s, err := Start(opts)
	if err != nil {
		panic("fakeaz: " + err.Error())
	}
	return s
}

// Start starts a server.
func Start(opts Options) (*Server, error) {
	withDefaults(&opts)
	s := &Server{opts: opts}
	s.mu.containers = make(map[string]*container)
	s.knobs.Set(func(k *Knobs) { *k = opts.Knobs })
	if err := s.setKeys(opts.Keys); err != nil {
		return nil, err
	}
	s.SetTokens(opts.Tokens...)
	var err error
	s.Server, err = fakehttp.Listen(fakehttp.Options{
		Addr: opts.Addr, TLS: opts.TLS, InMemory: opts.InMemory, Now: opts.Now, NoLog: opts.NoLog, HashBodies: opts.HashBodies,
		Hosts: []string{opts.Account + ".localhost", opts.Account + ".blob.core.windows.net"},
	})
	if err != nil {
		return nil, err
	}
	for _, name := range opts.Containers {
		s.CreateContainer(name)
	}
	s.Serve(s.begin)
	return s, nil
}

func withDefaults(o *Options) {
	o.Containers = slices.Clone(o.Containers)
	if o.Account == "" {
		o.Account = DefaultAccount
	}
	if len(o.Keys) == 0 {
		o.Keys = []string{DefaultKey()}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxBlob == 0 {
		o.MaxBlob = 5000 << 20
	}
	if o.MaxBlock == 0 {
		o.MaxBlock = 4000 << 20
	}
	if o.MaxCommitted == 0 {
		o.MaxCommitted = maxCommitted
	}
	if o.MaxUncommitted == 0 {
		o.MaxUncommitted = maxUncommitted
	}
}

// Account is the name of the account.
func (s *Server) Account() string { return s.opts.Account }

// Endpoint is the path-style address of the account, without a final slash.
func (s *Server) Endpoint() string { return s.URL() + "/" + s.opts.Account }

// Set changes the steady traits of the server. Requests that have begun keep the traits of [fakehttp.Traits] that they
// began with.
func (s *Server) Set(change func(*Knobs)) { s.knobs.Set(change) }

// Knobs returns the steady traits of now. They must not be changed.
func (s *Server) Knobs() *Knobs { return s.knobs.Load() }

func (s *Server) now() time.Time           { return s.opts.Now() }
func (s *Server) retention() time.Duration { return s.Knobs().Retention }

// SetKeys replaces the account's keys (base64), as a rotation does. It panics for what is not base64.
func (s *Server) SetKeys(keys ...string) {
	if err := s.setKeys(keys); err != nil {
		panic("fakeaz: " + err.Error())
	}
}

func (s *Server) setKeys(keys []string) error {
	var raw [][]byte
	for _, k := range keys {
		b, err := base64.StdEncoding.DecodeString(k)
		if err != nil {
			return fmt.Errorf("account key: %w", err)
		}
		raw = append(raw, b)
	}
	s.keys.Store(&raw)
	return nil
}

// SetTokens replaces the accepted bearer tokens.
func (s *Server) SetTokens(tokens ...string) {
	tokens = slices.Clone(tokens)
	s.tokens.Store(&tokens)
}

func (s *Server) knowsToken(t string) bool { return slices.Contains(*s.tokens.Load(), t) }

// requestID makes an id of the service's form.
func (s *Server) requestID() string {
	return fmt.Sprintf("fa4ea200-001e-0000-0000-%012x", s.ids.Add(1))
}

// codeOf is the code that the service names with a status when a script names none.
func codeOf(status int) string {
	if code := statusCodes[status]; code != "" {
		return code
	}
	return fmt.Sprintf("Status%d", status)
}
