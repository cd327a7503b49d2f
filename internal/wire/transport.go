package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// NewTransport returns a transport for many parallel requests to one host. HTTP/1.1 only: one connection per
// request in flight is what the services scale with, and one slow stream must not hold up the others.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial(&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}),
		MaxIdleConnsPerHost:   256, // the default of 2 would redial for each part
		IdleConnTimeout:       30 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // a transport that unpacks loses the stored length
		ReadBufferSize:        64 << 10,
		WriteBufferSize:       64 << 10,
	}
}

// dial returns a dialer whose plain TCP connections take bodies in chunks.
func dial(d *net.Dialer) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			return conn{tcp}, nil
		}
		return c, err
	}
}

// conn is a TCP connection that net/http copies bodies to.
type conn struct{ *net.TCPConn }

// ReadFrom implements io.ReaderFrom. net/http hands a body over as a reader limited to the announced length.
func (c conn) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		return c.TCPConn.ReadFrom(r)
	}
	body, ok := limited.R.(carried)
	if !ok || !body.chunks() {
		return c.TCPConn.ReadFrom(r)
	}
	n, err := body.writeTo(c.TCPConn, limited.N)
	limited.N -= n
	return n, err
}

// Once keeps net/http from sending a request without a body again by itself. It does so with a GET or HEAD whose kept connection ended
// before the reply began, as often as it has such connections, and the service would see more attempts than the policy
// allows. With a body that it cannot rewind it does not; this one is empty, and by the identity coding nothing tells of it on the wire.
func Once(req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return
	}
	req.Body, req.TransferEncoding = io.NopCloser(strings.NewReader("")), []string{"identity"}
}
