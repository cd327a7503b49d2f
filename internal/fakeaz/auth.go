package fakeaz

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxSkew is the age of a request that the service tolerates ("Authorize with Shared Key").
const maxSkew = 15 * time.Minute

type kind int

const (
	byNobody kind = iota
	byKey
	byToken
	bySAS
)

// principal is who a request comes from.
type principal struct {
	kind        kind
	permissions string // of a SAS
	types       string // of an account SAS: s, c, o; else empty
}

func errAuth(detail string) *apiError {
	return fail(http.StatusForbidden, "AuthenticationFailed",
		"Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.").
		elem("AuthenticationErrorDetail", detail)
}

func challenge(e *apiError) *apiError {
	return e.with("WWW-Authenticate", "Bearer authorization_uri=https://login.microsoftonline.com/fake/oauth2/authorize resource_id=https://storage.azure.com")
}

// authenticate finds out who a request comes from ("Authorize requests to Azure Storage").
func (s *Server) authenticate(r *request) (principal, *apiError) {
	if s.opts.Anonymous {
		return principal{}, nil
	}
	value := r.header.Get("Authorization")
	scheme, rest, _ := strings.Cut(value, " ")
	switch {
	case value == "" && r.query.Get("sig") != "":
		return s.authenticateSAS(r)
	case value == "":
		return principal{}, challenge(fail(http.StatusUnauthorized, "NoAuthenticationInformation",
			"Server failed to authenticate the request. Please refer to the information in the www-authenticate header."))
	case r.header.Get("x-ms-version") == "" && !r.part: // "Required for all authorized requests"
		return principal{}, errMissingHeader("x-ms-version")
	case scheme == "SharedKey":
		return s.authenticateKey(r, rest)
	case scheme == "Bearer":
		return s.authenticateToken(r, rest)
	}
	return principal{}, fail(http.StatusBadRequest, "InvalidAuthenticationInfo", "Authentication information is not given in the correct format. Check the value of Authorization header.")
}

func (s *Server) authenticateToken(r *request, token string) (principal, *apiError) {
	if !r.tls {
		return principal{}, errAuth("Authentication scheme Bearer is not supported over HTTP.")
	}
	if !s.knowsToken(token) {
		return principal{}, challenge(fail(http.StatusUnauthorized, "InvalidAuthenticationInfo",
			"Server failed to authenticate the request. Please refer to the information in the www-authenticate header."))
	}
	if r.account != s.opts.Account {
		return principal{}, errAuth("unknown account")
	}
	return principal{kind: byToken}, nil
}

func (s *Server) authenticateKey(r *request, value string) (principal, *apiError) {
	account, signature, ok := strings.Cut(value, ":")
	if !ok {
		return principal{}, fail(http.StatusBadRequest, "InvalidAuthenticationInfo", "Authentication information is not given in the correct format. Check the value of Authorization header.")
	}
	if account != s.opts.Account || r.account != s.opts.Account {
		return principal{}, errAuth("unknown account")
	}
	date := r.header.Get("x-ms-date")
	if date == "" {
		date = r.header.Get("Date")
	}
	t, err := http.ParseTime(date)
	if err != nil {
		return principal{}, errAuth("The Date header in the request is incorrect or missing.")
	}
	if skew := s.now().Sub(t); skew > maxSkew || skew < -maxSkew {
		return principal{}, errAuth("The Date header in the request is incorrect: Request date header too old or too new: '" + date + "'")
	}
	text := stringToSign(r, account)
	if !s.signed(text, signature) {
		return principal{}, errAuth("The MAC signature found in the HTTP request '" + signature +
			"' is not the same as any computed signature. Server used following string to sign: '" + text + "'.")
	}
	return principal{kind: byKey}, nil
}

// signed is whether one of the account's keys made the signature.
func (s *Server) signed(text, signature string) bool {
	for _, key := range *s.keys.Load() {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		if hmac.Equal([]byte(base64.StdEncoding.EncodeToString(m.Sum(nil))), []byte(signature)) {
			return true
		}
	}
	return false
}

// stringToSign is that of "Authorize with Shared Key" for version 2015-02-21 and later. The path is the one on the wire,
// byte for byte: a client that encodes a name one way for the signature and another way for the request line must fail
// here. Path-style the account comes twice.
func stringToSign(r *request, account string) string {
	length := ""
	if r.length > 0 {
		length = strconv.FormatInt(r.length, 10)
	}
	date := r.header.Get("Date")
	if r.header.Get("x-ms-date") != "" {
		date = ""
	}
	get := r.header.Get
	lines := []string{
		r.method, get("Content-Encoding"), get("Content-Language"), length, get("Content-MD5"), get("Content-Type"), date,
		get("If-Modified-Since"), get("If-Match"), get("If-None-Match"), get("If-Unmodified-Since"), get("Range"),
	}
	return strings.Join(lines, "\n") + "\n" + canonicalHeaders(r.header) + canonicalResource(r, account)
}

func canonicalHeaders(h http.Header) string {
	values := map[string]string{}
	for name, v := range h {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			values[lower] = strings.Join(v, ",") // net/http has taken the space around them
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(name + ":" + values[name] + "\n")
	}
	return b.String()
}

func canonicalResource(r *request, account string) string {
	var b strings.Builder
	b.WriteString("/" + account + r.rawPath)
	params := map[string][]string{}
	for name, v := range r.query {
		lower := strings.ToLower(name)
		params[lower] = append(params[lower], v...)
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		b.WriteString("\n" + name + ":" + strings.Join(slices.Sorted(slices.Values(params[name])), ","))
	}
	return b.String()
}
