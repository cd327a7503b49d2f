package fakegcs

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// Options describe a server. The zero value is a plain HTTP server on a free
// loopback port that accepts DefaultToken and has no buckets.
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
	// Versioned switches Object Versioning on for new buckets. False: off.
	Versioned bool
	// SoftDelete is how long new buckets keep what was deleted or replaced.
	// Zero: 7 days, as in new buckets of Google ("Soft delete"); negative: not at all.
	SoftDelete time.Duration
	// Tokens are the OAuth access tokens accepted. Empty: DefaultToken.
	Tokens []Token
	// Anonymous accepts every request, with any token or none.
	Anonymous bool
	// Now is the server's clock: times of objects, generations, expiry, the
	// log. Nil: time.Now.
	Now func() time.Time
	// NoLog records no requests, for benchmarks.
	NoLog bool
	// HashBodies records the SHA-256 of every request body in the log.
	HashBodies bool
	// MaxObject is the largest object in bytes. Zero: 5 TiB.
	MaxObject int64
	// SessionLife is how long an upload session can be used. Zero: a week.
	SessionLife time.Duration
	// Knobs are the traits the server starts with.
	Knobs Knobs
}

// Server is a running fake. Its methods are safe for concurrent use; those for
// faults, the log and connections are of the embedded server.
type Server struct {
	*fakehttp.Server
	opts       Options
	knobs      fakehttp.Steady[Knobs]
	tokens     atomic.Pointer[[]Token]
	generation atomic.Int64 // the last one given
	uploads    atomic.Int64 // the number of sessions begun

	mu struct {
		sync.RWMutex
		buckets  map[string]*bucket
		sessions map[string]*session
	}
}

// New starts a server. It panics when the address cannot be listened on, as
// a test has nothing else to do then; see Start for the error.
func New(opts Options) *Server {
	s, err := Start(opts)
	if err != nil {
		panic("fakegcs: " + err.Error())
	}
	return s
}

// Start starts a server.
func Start(opts Options) (*Server, error) {
	opts.Buckets = slices.Clone(opts.Buckets)
	switch {
	case opts.SoftDelete == 0:
		opts.SoftDelete = 7 * 24 * time.Hour
	case opts.SoftDelete < 0:
		opts.SoftDelete = 0
	}
	if len(opts.Tokens) == 0 {
		opts.Tokens = []Token{{Value: DefaultToken}}
	}
	if opts.MaxObject == 0 {
		opts.MaxObject = 5 << 40
	}
	if opts.SessionLife == 0 {
		opts.SessionLife = 7 * 24 * time.Hour
	}
	s := &Server{opts: opts}
	s.mu.buckets, s.mu.sessions = map[string]*bucket{}, map[string]*session{}
	s.Set(func(k *Knobs) { *k = opts.Knobs })
	s.SetTokens(opts.Tokens...)
	var err error
	s.Server, err = fakehttp.Listen(fakehttp.Options{
		Addr: opts.Addr, TLS: opts.TLS, InMemory: opts.InMemory, Now: opts.Now, NoLog: opts.NoLog, HashBodies: opts.HashBodies,
		Hosts: []string{"storage.googleapis.com"},
	})
	if err != nil {
		return nil, err
	}
	for _, name := range opts.Buckets {
		s.CreateBucket(name)
	}
	s.Serve(s.begin)
	return s, nil
}

// Set changes the steady traits of the server. Requests that have begun keep
// the traits they began with.
func (s *Server) Set(change func(*Knobs)) { s.knobs.Set(change) }

// Knobs are steady traits of the server, changed with Server.Set. The zero
// value is a server as Google documents it. Of fakehttp.Shape, what is about parts has
// no meaning here; ETag changes generations; IgnoreIfNoneMatch is about
// ifGenerationMatch=0 and the "not" conditions, IgnoreIfMatch about the others;
// DeleteError returns the status of a part of a batch, such as "503".
type Knobs struct {
	fakehttp.Traits

	// PageSize is the most items and prefixes in a page of a listing. Zero: 1000.
	PageSize int
	// Keep is how many of the n new bytes of a chunk the server persists, before
	// it rounds down to 256 KiB; the client learns it from Range. Nil: all.
	Keep func(r *fakehttp.Request, n int64) int64
	// DropCut persists nothing of a chunk whose body ends early. False: what
	// came of it, rounded down to 256 KiB.
	DropCut bool
	// RewriteStep is how many bytes one call of rewriteTo copies. Zero: all.
	RewriteStep int64
	// MissingFailsCondition answers 412 instead of 404 when a get, delete or
	// update with ifGenerationMatch other than 0 finds no object.
	MissingFailsCondition bool
	// MediaMetadata sends x-goog-meta-* with downloads of the JSON API too,
	// which has them in the metadata only.
	MediaMetadata bool
	// JSONMediaErrors answers failed downloads of the JSON API with the JSON
	// document instead of the bare message.
	JSONMediaErrors bool
	// LosesMetadata drops custom metadata.
	LosesMetadata bool
	// NoSoftDelete answers objects.restore and softDeleted reads with 400, as
	// a server from before soft deletion does.
	NoSoftDelete bool
}

// Keep is a value for Shape.Extra of a fault: of the chunks that it hits at
// most so many new bytes are persisted, rounded down to 256 KiB.
type Keep int64

// call is one request being served.
type call struct {
	*fakehttp.Call
	s     *Server
	knobs *Knobs
	b     *bucket // set for every operation on a bucket that exists
	xml   bool    // it came to the XML API
	bad   *apiError
	dst   address // of a copy
	inner bool    // it is a part of a batch
}

// begin names the request.
func (s *Server) begin(c *fakehttp.Call) fakehttp.Exchange {
	x := &call{Call: c, s: s, knobs: s.knobs.Load()}
	c.Traits = x.knobs.Traits
	x.bad = x.parse()
	c.Notes = x.notes()
	return x
}

// Handle implements fakehttp.Exchange.
func (c *call) Handle() *fakehttp.Answer {
	a, err := c.do()
	if err != nil {
		return c.refuse(err)
	}
	return a
}

// do runs the operation, once its bucket is known to exist.
func (c *call) do() (*fakehttp.Answer, *apiError) {
	h := handler(c.Op)
	if h == nil {
		return nil, errNoMethod()
	}
	if c.Bucket != "" && c.Op != "buckets.insert" {
		if c.b = c.s.bucket(c.Bucket); c.b == nil {
			return nil, errNoBucket()
		}
	}
	return h(c)
}

// refuse is the answer to a request that failed.
func (c *call) refuse(e *apiError) *fakehttp.Answer {
	var a *fakehttp.Answer
	switch {
	case e.status == http.StatusNotModified:
		a = fakehttp.NewAnswer(e.status)
	case e.plain:
		a = fakehttp.Document(e.status, "text/plain; charset=utf-8", []byte(e.msg))
	case c.xml:
		a = fakehttp.Document(e.status, "application/xml; charset=UTF-8", e.xml())
	case c.Op == "objects.media" && !c.knobs.JSONMediaErrors:
		// Downloads fail with the bare message; so do the client libraries show it.
		a = fakehttp.Document(e.status, "text/html; charset=UTF-8", []byte(e.msg))
	default:
		a = fakehttp.Document(e.status, jsonType, e.json())
	}
	a.Length = a.Body.Size()
	for name, v := range e.header {
		a.Set(name, v)
	}
	return a
}

// Error implements fakehttp.Exchange. code is the reason of the JSON document,
// or the code of the XML one.
func (c *call) Error(status int, code, message string) *fakehttp.Answer {
	e := &apiError{status: status, reason: reasons[status].reason, code: reasons[status].code, msg: message}
	if code != "" {
		e.reason, e.code = code, code
	}
	if e.msg == "" {
		e.msg = http.StatusText(status)
	}
	return c.refuse(e)
}

// Finish implements fakehttp.Exchange.
func (c *call) Finish(a *fakehttp.Answer) {
	a.Set("Date", c.s.Now().UTC().Format(http.TimeFormat))
	a.Set("Server", "UploadServer")
	if a.Header.Get("X-Guploader-Uploadid") == "" {
		a.Set("X-Guploader-Uploadid", "fakegcs-"+c.ID)
	}
}

const jsonType = "application/json; charset=UTF-8"

// document answers with a resource, or with the fields of it that were asked for.
func (c *call) document(v any) (*fakehttp.Answer, *apiError) {
	body := mustJSON(v)
	if mask := c.Query.Get("fields"); mask != "" {
		filtered, ok := selectFields(body, mask)
		if !ok {
			return nil, fail(http.StatusBadRequest, "invalidParameter", "InvalidArgument", "Invalid field selection %s", mask).at("fields")
		}
		body = filtered
	}
	return fakehttp.Document(http.StatusOK, jsonType, body), nil
}
