package s3blob

import (
	"context"
	"net/http"
	"sync"
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

// signer is the SDK's, and notes what each request was signed with.
type signer struct{ inner *v4.Signer }

func newSigner() signer {
	return signer{v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })} // S3 signs the path as it is sent
}

// SignHTTP implements s3.HTTPSignerV4.
func (s signer) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request, payloadHash, service, region string, at time.Time, opts ...func(*v4.SignerOptions)) error {
	if st, ok := ctx.Value(sentKey{}).(*sent); ok {
		st.identity, st.signedAt, st.begun = identity(c), at, time.Now()
	}
	return s.inner.SignHTTP(ctx, c, r, payloadHash, service, region, at, opts...)
}
