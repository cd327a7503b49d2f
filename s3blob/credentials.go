package s3blob

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// renewing provides credentials, and fetches new ones when the service says that they have expired before their
// time. Each request is signed when it is sent, so that a retry of an old part has a fresh date and token.
type renewing struct {
	cache *aws.CredentialsCache // over fetch: many requests that need credentials wait for one Retrieve
	inner aws.CredentialsProvider

	mu struct {
		sync.Mutex
		current string // identity of the newest credentials
		expired string // identity the service has refused
		same    bool   // they were fetched anew and are still those
	}
}

func newRenewing(inner aws.CredentialsProvider) *renewing {
	r := &renewing{inner: inner}
	r.cache = aws.NewCredentialsCache(aws.CredentialsProviderFunc(r.fetch))
	return r
}

func identity(c aws.Credentials) string { return c.AccessKeyID + "\x00" + c.SessionToken }

func (r *renewing) fetch(ctx context.Context) (aws.Credentials, error) {
	c, err := r.inner.Retrieve(ctx)
	if err != nil {
		return c, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.current = identity(c)
	r.mu.same = r.mu.current == r.mu.expired
	return c, nil
}

// expired is told that the service refused credentials as expired. It reports whether another attempt may have others. Of many
// requests refused together the first one throws the old ones away; the rest find them gone.
func (r *renewing) expired(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case id != r.mu.current: // replaced since that request was signed
		return true
	case id == r.mu.expired:
		if !r.mu.same { // thrown away, and not fetched yet
			return true
		}
		r.invalidate() // fetched, and no better: not for this request, but the next one asks anew
		return false
	}
	r.mu.expired, r.mu.same = id, false
	r.invalidate()
	return true
}

// invalidate throws the credentials away, here and in a cache that the caller or the SDK's own chain has put around its provider.
func (r *renewing) invalidate() {
	r.cache.Invalidate()
	if inner, ok := r.inner.(interface{ Invalidate() }); ok {
		inner.Invalidate()
	}
}

// clock tells the time by which requests are signed: the local one, unless replies show that the service's is another.
type clock struct{ ahead atomic.Int64 } // by how many nanoseconds the service's is ahead

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// learn takes the service's time from the headers of a reply to a request that was begun at this time of the local clock.
func (c *clock) learn(reply http.Header, begun time.Time) {
	const slow = 15 * time.Minute // its date may be as old as that: signatures are valid for no longer
	date, err := http.ParseTime(reply.Get("Date"))
	if err != nil || reply.Get("Age") != "" || time.Since(begun) > slow { // Age: out of a cache
		return
	}
	ahead := time.Until(date)
	if ahead.Abs() < clockSkew {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
}

// signer is the SDK's, by our clock, and notes what each request was signed with.
type signer struct {
	inner *v4.Signer
	clock *clock
}

func newSigner(c *clock) signer {
	return signer{v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }), c} // S3 signs the path as it is sent
}

// SignHTTP implements s3.HTTPSignerV4. The time is not the SDK's, which learns from replies to its own requests alone.
func (s signer) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request, payloadHash, service, region string, _ time.Time, opts ...func(*v4.SignerOptions)) error {
	at := s.clock.now()
	if st, ok := ctx.Value(sentKey{}).(*sent); ok {
		st.signed(c, at)
	}
	return s.inner.SignHTTP(ctx, c, r, payloadHash, service, region, at, opts...)
}

func (s *sent) signed(c aws.Credentials, at time.Time) {
	s.identity, s.temporary, s.signedAt, s.begun = identity(c), c.SessionToken != "", at, time.Now()
}
