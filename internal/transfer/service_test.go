package transfer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// personality is how one service differs from the others beside its Traits: a column of the table in doc.go.
type personality struct {
	traits           Traits
	freeBegin        bool // Begin makes up an id, without a request
	conditionAtBegin bool // and at Commit
	deleteAbsent     error
}

func s3Like() personality {
	return personality{traits: Traits{
		Store: "s3like", MaxPart: 1 << 30, MaxParts: 10_000, MaxPut: 1 << 30, MaxObject: 1 << 40,
		PartReads: true, SuffixReads: true, Ordered: true, StartAfter: true,
		SetConditions: true, DeleteConditions: true, BatchDelete: 3, Abort: true, Uploads: true,
	}}
}

func azureLike() personality {
	return personality{freeBegin: true, deleteAbsent: refusal(blob.ErrNotFound), traits: Traits{
		Store: "azurelike", MaxPart: 1 << 30, MaxParts: 50_000, MaxPut: 1 << 30, MaxObject: 1 << 40,
		Ordered: true, SetConditions: true, DeleteConditions: true,
	}}
}

func gcsLike() personality {
	return personality{conditionAtBegin: true, deleteAbsent: refusal(blob.ErrNotFound), traits: Traits{
		Store: "gcslike", PartMultiple: 64, MaxPut: 1 << 30, MaxObject: 1 << 40,
		SerialParts: true, Abort: true, Sums: true, SuffixReads: true, Ordered: true, SetConditions: true, DeleteConditions: true,
	}}
}

func personalities() map[string]personality {
	return map[string]personality{"s3": s3Like(), "azure": azureLike(), "gcs": gcsLike()}
}

// request is what a script sees of a request.
type request struct {
	verb string
	nth  int // of this verb, from 1
	key  string
	read ReadRequest
	part int
	off  int64  // of a chunk
	what string // the rest, for the log
}

func (r request) String() string { return strings.TrimSpace(r.verb + " " + r.what) }

// service is a cloud service in memory. The functions are its script of faults, each nil for none; they are set before
// the service is used and called without its lock.
type service struct {
	t testing.TB
	p personality

	before   func(context.Context, request) error // instead of taking effect
	after    func(context.Context, request) error // instead of the reply
	edit     func(ReadRequest, *ReadReply)        // changes the reply to a Read
	head     func(*Head)                          // changes the reply to a Head
	stuck    func(ReadRequest) bool               // the body of this read never ends
	list     func(nth int, r ListRequest) (ListPage, error)
	batch    func(nth int, keys []string) ([]error, error)
	versions func(token string) VersionPage
	undelete func(KeptVersion) error // with the lock held
	uploads  func(token string) UploadPage

	tag func(p PartRequest) string // of a part; default: one

	cut      func(r request) int64      // how much of a chunk arrives before the connection is cut
	keep     func(r request, n int) int // how much of n bytes a session keeps
	received func(received int64) int64 // changes what a session says after a chunk
	progress func(*Progress)            // changes the answer to a question
	slow     bool                       // a session that has all bytes does not commit

	ignoreVersion bool // on reads
	noVersions    bool
	pageSize      int           // entries of a page of a listing
	reached       chan struct{} // each body that got stuck

	mu struct {
		sync.Mutex
		objects  map[string]*stored
		uploads  map[string]*pending
		log      []string
		count    map[string]int // by verb
		inFlight int            // requests; a Read until its body is closed
		peak     int
		bodies   int // open
		serial   int
	}
}

type stored struct {
	data    []byte
	parts   []int // sizes; nil: not made of parts
	version string
	mod     time.Time
	meta    Meta
}

type pending struct {
	key      string
	begin    BeginRequest
	parts    map[int][]byte
	inFlight int // parts

	// Of a session:
	data    []byte
	last    *CommitRequest // as it came, once it has
	version string         // once it has been committed
}

func serve(t testing.TB, p personality) *service {
	s := &service{t: t, p: p, pageSize: 1000, reached: make(chan struct{}, 100)}
	s.mu.objects = map[string]*stored{}
	s.mu.uploads = map[string]*pending{}
	s.mu.count = map[string]int{}
	return s
}

// put stores an object of one part, or of parts of the given sizes.
func (s *service) put(key string, data []byte, parts ...int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store(key, data, parts, Meta{})
}

func (s *service) store(key string, data []byte, parts []int, meta Meta) string {
	s.mu.serial++
	o := &stored{
		data: data, parts: parts, meta: meta,
		version: fmt.Sprintf("v%d", s.mu.serial), mod: time.Unix(int64(s.mu.serial), 0),
	}
	s.mu.objects[key] = o
	return o.version
}

// object returns what is stored under "k".
func (s *service) object() *stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.objects["k"]
}

func (s *service) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.mu.objects))
}

// takeLog returns the requests since the last call.
func (s *service) takeLog() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.mu.log
	s.mu.log = nil
	return log
}

// requests returns how many requests of one verb there were.
func (s *service) requests(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.count[verb]
}

// takePeak returns the largest number of requests in flight since the last call.
func (s *service) takePeak() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.mu.peak
	s.mu.peak = s.mu.inFlight
	return p
}

func (s *service) wantQuiet(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.bodies != 0 || s.mu.inFlight != 0 {
		t.Errorf("%d bodies open and %d requests in flight at the end", s.mu.bodies, s.mu.inFlight)
	}
}

func (s *service) arrive(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.count[r.verb]++
	r.nth = s.mu.count[r.verb]
	s.mu.log = append(s.mu.log, r.String())
	s.mu.inFlight++
	s.mu.peak = max(s.mu.peak, s.mu.inFlight)
}

func (s *service) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.inFlight--
}

// serve runs a request: effect is called with the lock held.
func (s *service) serve(ctx context.Context, r request, effect func() error) error {
	s.arrive(&r)
	defer s.leave()
	return s.run(ctx, r, effect)
}

func (s *service) run(ctx context.Context, r request, effect func() error) error {
	if err := ctx.Err(); err != nil {
		return &blob.Error{Outcome: blob.NotApplied, Err: err}
	}
	if s.before != nil {
		if err := s.before(ctx, r); err != nil {
			return err
		}
	}
	s.mu.Lock()
	err := effect()
	s.mu.Unlock()
	if err == nil && s.after != nil {
		err = s.after(ctx, r)
	}
	return err
}

// admit checks a condition of a write. The lock is held.
func (s *service) admit(key string, c blob.Condition) error {
	o := s.mu.objects[key]
	v, pinned := c.Version()
	switch {
	case c.Absent() && o != nil:
		return refusal(blob.ErrExists)
	case pinned && (o == nil || o.version != v):
		return refusal(blob.ErrPrecondition)
	}
	return nil
}
