package fakegcs

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// DefaultToken is accepted when Options name none.
const DefaultToken = "fakegcs-token" //nolint:gosec // it opens nothing but this fake

// Token is an OAuth access token that the server knows.
type Token struct {
	Value string
	// Expires is when the server's clock makes it invalid. Zero: never.
	Expires time.Time
	// Forbidden makes every request with it fail with 403.
	Forbidden bool
}

// SetTokens replaces the known tokens, as a rotation does.
func (s *Server) SetTokens(tokens ...Token) {
	tokens = slices.Clone(tokens)
	s.tokens.Store(&tokens)
}

// Authenticate implements fakehttp.Exchange.
func (c *call) Authenticate() *fakehttp.Answer {
	if err := c.authenticate(); err != nil {
		return c.refuse(err)
	}
	if c.bad != nil {
		return c.refuse(c.bad)
	}
	return nil
}

// authenticate checks the access token. Requests to a session need none: "the
// session URI acts as an authentication token" ("Resumable uploads"); one that
// is sent must be good.
func (c *call) authenticate() *apiError {
	header := c.Header.Get("Authorization")
	switch {
	case c.s.opts.Anonymous:
		return nil
	case header == "" && c.UploadID != "":
		return nil
	case header == "" && c.xml:
		return fail(http.StatusForbidden, "forbidden", "AccessDenied", "Access denied.")
	case header == "":
		return fail(http.StatusUnauthorized, "required", "AuthenticationRequired",
			"Anonymous caller does not have storage access to %s, or it may not exist.", c.Bucket).at("Authorization").
			with("WWW-Authenticate", `Bearer realm="https://accounts.google.com/"`)
	}
	value, _ := strings.CutPrefix(header, "Bearer ")
	for _, t := range *c.s.tokens.Load() {
		switch {
		case t.Value != value || !t.Expires.IsZero() && !c.s.Now().Before(t.Expires):
		case t.Forbidden:
			return fail(http.StatusForbidden, "forbidden", "AccessDenied", "The caller does not have access to the Google Cloud Storage bucket %s.", c.Bucket)
		default:
			return nil
		}
	}
	return fail(http.StatusUnauthorized, "authError", "AuthenticationRequired", "Invalid Credentials").at("Authorization").
		with("WWW-Authenticate", `Bearer realm="https://accounts.google.com/", error="invalid_token"`)
}
