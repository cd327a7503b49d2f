package gcsblob

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/oauth2adapt"
	"cloud.google.com/go/storage"

	"github.com/wholeblob/wholeblob/blob"
)

const userAgent = "wholeblob"

// cloudPlatform and the full control of storage are the scopes that Google's client asks for; what may be done is up to IAM.
const cloudPlatform = "https://www.googleapis.com/auth/cloud-platform"

// identity puts on each request who sends it. A token is put on when a request is sent, so that the last chunk of an upload that takes
// hours has a token of that time.
type identity struct {
	rt      http.RoundTripper
	tokens  *tokens // nil: anonymous
	project string  // to bill, or ""
}

// identity returns the round tripper that o asks for. It fails if there are no credentials where some are needed.
func (o *Options) identity(rt http.RoundTripper) (*identity, error) {
	id := &identity{rt: rt, project: o.QuotaProject}
	open := o.opener()
	if open == nil {
		return id, nil
	}
	creds, err := open()
	if err != nil {
		return nil, err
	}
	if id.project == "" {
		if id.project, err = creds.QuotaProjectID(context.Background()); err != nil {
			return nil, err
		}
	}
	id.tokens = newTokens(creds, open)
	return id, nil
}

// RoundTrip implements http.RoundTripper.
func (id *identity) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	st, _ := ctx.Value(sentKey{}).(*sent)
	header := req.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	if id.tokens != nil {
		value, err := id.tokens.get(ctx)
		if st != nil {
			st.token, st.tokenErr = value, err
		}
		if err != nil {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, err
		}
		header.Set("Authorization", "Bearer "+value)
	}
	if id.project != "" {
		header.Set("X-Goog-User-Project", id.project)
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", userAgent)
	}
	req = req.WithContext(ctx) // a copy
	req.Header = header
	return id.rt.RoundTrip(req)
}

// opener returns what opens the credentials anew, without anything that has been cached of them, or nil for none.
func (o *Options) opener() func() (*auth.Credentials, error) {
	detect := credentials.DetectOptions{Scopes: []string{storage.ScopeFullControl, cloudPlatform}}
	fromJSON := func(data []byte) (*auth.Credentials, error) {
		var file struct {
			Type credentials.CredType `json:"type"`
		}
		if json.Unmarshal(data, &file) != nil || file.Type == "" {
			return nil, invalid("the credentials are no JSON object with a type")
		}
		opts := detect
		return credentials.NewCredentialsFromJSON(file.Type, data, &opts)
	}
	switch {
	case o.Anonymous:
		return nil
	case o.TokenSource != nil:
		return func() (*auth.Credentials, error) {
			provider := oauth2adapt.TokenProviderFromTokenSource(o.TokenSource)
			return auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: provider}), nil
		}
	case len(o.CredentialsJSON) > 0:
		return func() (*auth.Credentials, error) { return fromJSON(o.CredentialsJSON) }
	case o.CredentialsFile != "":
		return func() (*auth.Credentials, error) {
			data, err := os.ReadFile(o.CredentialsFile)
			if err != nil {
				return nil, err
			}
			return fromJSON(data)
		}
	case o.google():
		return func() (*auth.Credentials, error) {
			opts := detect
			return credentials.DetectDefault(&opts)
		}
	}
	return nil // nobody's tokens go to a server that is not Google's unless the caller says so
}

// maxEarly is how long before its end a token is replaced, at most: the service's clock may be ahead. Google's libraries have the same.
const maxEarly = 225 * time.Second

// tokens provides access tokens, each of which is fetched once for all requests that need it. It fetches a new one too when the
// service refuses one before its time.
type tokens struct {
	open func() (*auth.Credentials, error)
	turn chan struct{} // holds an element while somebody fetches

	mu struct {
		sync.Mutex
		source  auth.TokenProvider // nil: to be opened
		value   string
		until   time.Time // zero: for ever
		refused string    // the token the service has refused
		same    bool      // it was fetched anew and is still that one
	}
}

func newTokens(first auth.TokenProvider, open func() (*auth.Credentials, error)) *tokens {
	t := &tokens{open: open, turn: make(chan struct{}, 1)}
	t.mu.source = first
	return t
}

// get returns a token. Those who wait for another's fetch stop when their own context ends, and if the other gives up the next one
// fetches.
func (t *tokens) get(ctx context.Context) (string, error) {
	if value, ok := t.current(); ok {
		return value, nil
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-t.turn }()
	if value, ok := t.current(); ok {
		return value, nil
	}
	return t.fetch(ctx)
}

func (t *tokens) current() (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.value, t.mu.value != "" && (t.mu.until.IsZero() || time.Now().Before(t.mu.until))
}

// fetch is called by whoever has the turn.
func (t *tokens) fetch(ctx context.Context) (string, error) {
	t.mu.Lock()
	source := t.mu.source
	t.mu.Unlock()
	if source == nil {
		creds, err := t.open()
		if err != nil {
			return "", err
		}
		source = creds
	}
	token, err := source.Token(ctx)
	if err != nil {
		return "", err
	}
	if token.Value == "" {
		return "", errors.New("gcsblob: an empty token")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.source = source
	t.mu.value, t.mu.until = token.Value, time.Time{}
	if !token.Expiry.IsZero() {
		t.mu.until = token.Expiry.Add(-min(maxEarly, time.Until(token.Expiry)/4))
	}
	t.mu.same = t.mu.value == t.mu.refused
	return token.Value, nil
}

// wrong is told that the service refused a token. It reports whether another attempt may have another one. Of many requests
// refused together the first one throws the token away; the rest find it gone.
func (t *tokens) wrong(value string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case value != t.mu.value && t.mu.value != "": // replaced since that request was sent
		return true
	case value == t.mu.refused && !t.mu.same: // thrown away, and not fetched yet
		return true
	case value == t.mu.refused: // fetched, and no better: not for this request, but the next one asks anew
		t.drop()
		return false
	}
	t.mu.refused, t.mu.same = value, false
	t.drop()
	return true
}

func (t *tokens) drop() { t.mu.value, t.mu.source = "", nil }

// tokenKind is the kind of an error that kept a request from getting a token: a refusal lasts, all else may pass.
func tokenKind(err error) error {
	var refusal *auth.Error
	if errors.As(err, &refusal) && refusal.Response != nil {
		if s := refusal.Response.StatusCode; s >= 500 || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout {
			return blob.ErrUnavailable
		}
		return blob.ErrPermission
	}
	var network net.Error
	if errors.As(err, &network) {
		return blob.ErrUnavailable
	}
	return blob.ErrPermission
}
