package fakes3

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Credentials are one pair of keys that the server accepts.
type Credentials struct {
	AccessKey, SecretKey string
	// SessionToken must come with every request when it is set.
	SessionToken string
	// Expires is when the server's clock makes them ExpiredToken. Zero: never.
	Expires time.Time
}

// DefaultCredentials are accepted when Options name none.
func DefaultCredentials() Credentials {
	return Credentials{AccessKey: "fakes3access", SecretKey: "fakes3secret"}
}

// SetCredentials replaces the accepted credentials, as a rotation does.
func (s *Server) SetCredentials(creds ...Credentials) {
	creds = slices.Clone(creds)
	s.creds.Store(&creds)
}

// maxSkew is the difference between the clocks that S3 tolerates.
const maxSkew = 15 * time.Minute

const (
	amzDate         = "20060102T150405Z"
	signScheme      = "AWS4-HMAC-SHA256"
	unsignedPayload = "UNSIGNED-PAYLOAD"
	unsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	emptySHA256     = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// authorization is the parsed Authorization header.
type authorization struct {
	accessKey, day, region, service string
	signed                          []string
	signature                       string
}

func parseAuthorization(v string) (a authorization, ok bool) {
	rest, ok := strings.CutPrefix(v, signScheme)
	if !ok {
		return a, false
	}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Credential":
			scope := strings.Split(value, "/")
			if len(scope) < 5 || scope[len(scope)-1] != "aws4_request" {
				return a, false
			}
			n := len(scope)
			a.accessKey = strings.Join(scope[:n-4], "/")
			a.day, a.region, a.service = scope[n-4], scope[n-3], scope[n-2]
		case "SignedHeaders":
			a.signed = strings.Split(value, ";")
		case "Signature":
			a.signature = value
		}
	}
	return a, a.accessKey != "" && len(a.signed) > 0 && a.signature != ""
}

// authenticate checks the signature of a request, but for the payload, whose
// hash readBody compares with the signed header.
func (s *Server) authenticate(r *http.Request) *apiError {
	if s.opts.Anonymous {
		return nil
	}
	value := r.Header.Get("Authorization")
	if value == "" {
		return errDenied()
	}
	a, ok := parseAuthorization(value)
	if !ok {
		return fail(http.StatusBadRequest, "AuthorizationHeaderMalformed", "The authorization header is malformed.")
	}
	cred, err := s.credentials(a, r.Header)
	if err != nil {
		return err
	}
	if err := s.checkScope(a); err != nil {
		return err
	}
	date, err := s.checkDate(a, r.Header)
	if err != nil {
		return err
	}
	if err := checkSigned(a, r.Header); err != nil {
		return err
	}
	if err := checkPayloadHeader(r.Header); err != nil {
		return err
	}
	if want := sign(cred.SecretKey, date, a, canonicalRequest(r, a)); !hmac.Equal([]byte(want), []byte(a.signature)) {
		return fail(http.StatusForbidden, "SignatureDoesNotMatch",
			"The request signature we calculated does not match the signature you provided. Check your key and signing method.").
			elem("CanonicalRequest", canonicalRequest(r, a))
	}
	return nil
}

func (s *Server) credentials(a authorization, h http.Header) (Credentials, *apiError) {
	known := false
	token := h.Get("x-amz-security-token")
	for _, c := range *s.creds.Load() {
		if c.AccessKey != a.accessKey {
			continue
		}
		known = true
		if c.SessionToken != token {
			continue
		}
		if !c.Expires.IsZero() && !s.Now().Before(c.Expires) {
			return c, fail(http.StatusBadRequest, "ExpiredToken", "The provided token has expired.")
		}
		return c, nil
	}
	if known {
		return Credentials{}, fail(http.StatusBadRequest, "InvalidToken", "The provided token is malformed or otherwise invalid.")
	}
	return Credentials{}, fail(http.StatusForbidden, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
}

func (s *Server) checkScope(a authorization) *apiError {
	if a.service != "s3" {
		return fail(http.StatusBadRequest, "AuthorizationHeaderMalformed", "The authorization header is malformed; incorrect service %q.", a.service)
	}
	if a.region != s.opts.Region {
		return fail(http.StatusBadRequest, "AuthorizationHeaderMalformed",
			"The authorization header is malformed; the region '%s' is wrong; expecting '%s'", a.region, s.opts.Region).
			elem("Region", s.opts.Region).with("x-amz-bucket-region", s.opts.Region)
	}
	return nil
}

func (s *Server) checkDate(a authorization, h http.Header) (time.Time, *apiError) {
	date, err := time.Parse(amzDate, h.Get("x-amz-date"))
	if err != nil {
		return date, fail(http.StatusForbidden, "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header")
	}
	if date.Format("20060102") != a.day {
		return date, fail(http.StatusBadRequest, "AuthorizationHeaderMalformed", "The date of the credential scope is not that of x-amz-date.")
	}
	if skew := s.Now().Sub(date); skew > maxSkew || skew < -maxSkew {
		return date, fail(http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.").
			elem("RequestTime", date.Format(amzDate)).
			elem("ServerTime", s.Now().UTC().Format(time.RFC3339)).
			elem("MaxAllowedSkewMilliseconds", strconv.FormatInt(maxSkew.Milliseconds(), 10))
	}
	return date, nil
}

// checkSigned demands what the SigV4 documentation demands: the host, and
// every x-amz-* header that is present, are among the signed headers.
func checkSigned(a authorization, h http.Header) *apiError {
	if !slices.Contains(a.signed, "host") {
		return fail(http.StatusBadRequest, "AuthorizationHeaderMalformed", "'Host' must be a 'SignedHeader' in the AWS Authorization.")
	}
	for name := range h {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "x-amz-") && !slices.Contains(a.signed, name) {
			return fail(http.StatusForbidden, "AccessDenied", "There were headers present in the request which were not signed").
				elem("HeadersNotSigned", name)
		}
	}
	return nil
}

func checkPayloadHeader(h http.Header) *apiError {
	switch v := h.Get("x-amz-content-sha256"); {
	case v == unsignedPayload, v == unsignedTrailer:
		return nil
	case v == "":
		return errRequest("Missing required header for this request: x-amz-content-sha256")
	case strings.HasPrefix(v, "STREAMING-"):
		return errNotImplemented(v)
	case len(v) != 64:
		return errArgument("x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER or a valid sha256 value.")
	}
	return nil
}

// canonicalRequest is the text that is signed. The path is the one on the
// wire, byte for byte: a client that encodes a key one way for the signature
// and another way for the request line must fail here.
func canonicalRequest(r *http.Request, a authorization) string {
	var b strings.Builder
	path, query, _ := strings.Cut(r.RequestURI, "?")
	b.WriteString(r.Method + "\n" + path + "\n" + canonicalQuery(query) + "\n")
	for _, name := range a.signed {
		b.WriteString(name + ":" + canonicalHeader(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(a.signed, ";") + "\n")
	b.WriteString(r.Header.Get("x-amz-content-sha256"))
	return b.String()
}

func canonicalHeader(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length": // net/http takes it out of the header
		return strconv.FormatInt(r.ContentLength, 10)
	}
	values := slices.Clone(r.Header.Values(name))
	for i, v := range values {
		values[i] = strings.Join(strings.Fields(v), " ")
	}
	return strings.Join(values, ",")
}

func canonicalQuery(raw string) string {
	if raw == "" {
		return ""
	}
	type pair struct{ k, v string }
	var pairs []pair
	for field := range strings.SplitSeq(raw, "&") {
		k, v, _ := strings.Cut(field, "=")
		pairs = append(pairs, pair{uriEncode(unescape(k)), uriEncode(unescape(v))})
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.k, b.k), cmp.Compare(a.v, b.v))
	})
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.k + "=" + p.v)
	}
	return b.String()
}

func unescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

// uriEncode is the UriEncode of the SigV4 documentation, slashes included.
func uriEncode(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

func sign(secret string, date time.Time, a authorization, canonical string) string {
	hashed := sha256.Sum256([]byte(canonical))
	scope := a.day + "/" + a.region + "/" + a.service + "/aws4_request"
	text := signScheme + "\n" + date.Format(amzDate) + "\n" + scope + "\n" + hex.EncodeToString(hashed[:])
	key := []byte("AWS4" + secret)
	for _, part := range []string{a.day, a.region, a.service, "aws4_request", text} {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(part))
		key = m.Sum(nil)
	}
	return hex.EncodeToString(key)
}
