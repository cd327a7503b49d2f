package azblob

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// connect returns the SDK's client of one container, whose requests go through do.
func (o *Options) connect(name string, do *doer) (*container.Client, error) {
	address := o.Endpoint + "/" + url.PathEscape(name)
	co := o.clientOptions(do)
	switch {
	case o.AccountKey != "":
		key, err := container.NewSharedKeyCredential(o.Account, o.AccountKey)
		if err != nil {
			return nil, err
		}
		return container.NewClientWithSharedKeyCredential(address, key, co)
	case o.SAS != "":
		return container.NewClientWithNoCredential(address+"?"+o.SAS, co)
	case o.Anonymous:
		return container.NewClientWithNoCredential(address, co)
	}
	inner, err := o.credential()
	if err != nil {
		return nil, err
	}
	do.tokens = newTokens(inner)
	co.PerCallPolicies = append(co.PerCallPolicies, do.tokens)
	return container.NewClient(address, do.tokens, co)
}

// credential returns what provides tokens. It does not retry by itself: a token that cannot be had fails the attempt, and the engine
// makes another.
func (o *Options) credential() (azcore.TokenCredential, error) {
	if o.Credential != nil {
		return o.Credential, nil
	}
	co := azcore.ClientOptions{Cloud: authority(o.Endpoint), Retry: policy.RetryOptions{MaxRetries: -1}}
	if o.ManagedIdentity {
		mo := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: co}
		if o.ClientID != "" {
			mo.ID = azidentity.ClientID(o.ClientID)
		}
		return azidentity.NewManagedIdentityCredential(mo)
	}
	return azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: co})
}

// authority is the cloud whose directory gives out tokens for the endpoint. The zero Configuration leaves it to the SDK.
func authority(endpoint string) cloud.Configuration {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
	case strings.HasSuffix(u.Hostname(), ".usgovcloudapi.net"):
		return cloud.AzureGovernment
	case strings.HasSuffix(u.Hostname(), ".chinacloudapi.cn"):
		return cloud.AzureChina
	}
	return cloud.Configuration{}
}

// storageScope is the permission that tokens are for, in every cloud ("Authorize with Microsoft Entra ID").
const storageScope = "https://storage.azure.com/.default"

// early is how long before its end a token is renewed, so that it does not end on the way.
const early = 5 * time.Minute

// tokens keeps the token of one credential: many requests that need a new one wait for one request, each no longer than its own context.
//
// It is in the pipeline twice. As the first policy it gets the token while waiting can still be ended by the context; as the credential
// of the SDK's own policy, which would wait without, it then has it ready. That policy asks anew after each reply of 401.
type tokens struct {
	inner azcore.TokenCredential
	turn  chan struct{} // holds one element while nobody asks inner

	mu struct { // never held while waiting
		sync.Mutex
		tokenState
	}
}

type tokenState struct {
	token   azcore.AccessToken
	refused string // the service has called this token invalid
	same    bool   // and inner gave out the same once more
}

func newTokens(inner azcore.TokenCredential) *tokens {
	t := &tokens{inner: inner, turn: make(chan struct{}, 1)}
	t.turn <- struct{}{}
	return t
}

func (t *tokens) state() tokenState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.tokenState
}

func (s tokenState) valid(margin time.Duration) bool {
	return s.token.Token != "" && (s.token.Token != s.refused || s.same) && time.Until(s.token.ExpiresOn) > margin
}

// Do implements policy.Policy.
func (t *tokens) Do(req *policy.Request) (*http.Response, error) {
	if _, err := t.GetToken(req.Raw().Context(), policy.TokenRequestOptions{Scopes: []string{storageScope}}); err != nil {
		return nil, err
	}
	return req.Next()
}

// GetToken implements azcore.TokenCredential.
func (t *tokens) GetToken(ctx context.Context, opts policy.TokenRequestOptions) (azcore.AccessToken, error) {
	s := t.state()
	if s.valid(early) {
		return s.token, nil
	}
	if s.valid(0) {
		select {
		case <-t.turn: // this one renews it
		default: // somebody does already
			return s.token, nil
		}
	} else {
		select {
		case <-t.turn:
		case <-ctx.Done():
			return azcore.AccessToken{}, ctx.Err()
		}
	}
	defer func() { t.turn <- struct{}{} }()
	if s = t.state(); s.valid(early) {
		return s.token, nil // renewed while this one waited
	}
	// Without claims: those of a challenge are not passed on, see doer.
	token, err := t.inner.GetToken(ctx, policy.TokenRequestOptions{Scopes: opts.Scopes, TenantID: opts.TenantID})
	switch {
	case err == nil:
		t.mu.Lock()
		t.mu.token, t.mu.same = token, token.Token == t.mu.refused
		t.mu.Unlock()
	case s.valid(0):
		return s.token, nil // it was only to be renewed early
	}
	return token, err
}

// expired is told that the service refused a token. It reports whether another attempt may have another: not if the one that was fetched
// anew is the same, and not twice for one.
func (t *tokens) expired(token string) (again bool) {
	if t == nil || token == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.mu.token.Token != token: // replaced since that request was made
		return true
	case t.mu.refused == token && t.mu.same: // no better: not for this request, but the next one asks anew
		t.mu.same = false
		return false
	}
	t.mu.refused, t.mu.same = token, false
	return true
}
