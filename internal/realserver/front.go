package realserver

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// TLSFront returns s as it is reached over TLS, through a reverse proxy that ends with the test, and an HTTP client's transport that
// trusts the proxy's certificate. Clients send checksums in trailers over TLS only. seen, if not nil, is called with each request
// before it goes on.
//
// The proxy leaves the Host header as it is: it is part of what clients sign.
func (s *S3) TLSFront(t testing.TB, seen func(*http.Request)) (*S3, *http.Transport) {
	t.Helper()
	target, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	onward := &http.Transport{DisableCompression: true}
	proxy := &httputil.ReverseProxy{
		Transport: onward,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
	}
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen != nil {
			seen(r)
		}
		proxy.ServeHTTP(w, r)
	}))
	transport := front.Client().Transport.(*http.Transport)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		front.Close()
		onward.CloseIdleConnections()
	})
	over := *s
	over.Endpoint = front.URL
	over.Note += ", over TLS"
	return &over, transport
}
