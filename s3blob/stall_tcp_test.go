package s3blob_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// A peer that takes the beginning of a body and then reads no more, with the connection open: once the kernel's buffers are full nothing
// moves, the attempt is ended after Stall, and the next one goes over another connection.
func TestPeerThatStopsReadingABodyIsGivenUp(t *testing.T) {
	for name, edit := range map[string]func(*s3blob.Options){
		"one request": func(o *s3blob.Options) { o.PartSize, o.Threshold = 64<<20, 64<<20 },
		"parts":       func(o *s3blob.Options) { o.PartSize, o.Threshold = 16<<20, 16<<20 },
	} {
		t.Run(name, func(t *testing.T) {
			srv := fake(t, fakes3.Options{FastETag: true})
			peer := deafPeer(t, srv)
			data := content(32 << 20) // more than a send buffer holds (tcp(7), tcp_wmem)
			st := open(t, srv, func(o *s3blob.Options) {
				edit(o)
				o.Endpoint, o.Stall, o.Concurrency = "http://"+peer.Addr().String(), time.Second, 1
				o.Retry.Attempts, o.UnsignedPayload = 8, true
			})
			if _, err := st.Set(t.Context(), "k", blob.Bytes(data), nil); err != nil {
				t.Fatal(err)
			}
			if obj, ok := srv.Object("b", "k"); !ok || string(obj.Bytes()) != string(data) {
				t.Error("the object is not what was set")
			}
			if !peer.deaf.Load() {
				t.Error("no connection was let stall")
			}
		})
	}
}

// deaf is a listener in front of a server. The first connection that brings more than a mebibyte is read no further.
type deaf struct {
	net.Listener
	deaf atomic.Bool
}

func deafPeer(t *testing.T, srv *fakes3.Server) *deaf {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	d := &deaf{Listener: ln}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = ln.Close()
		<-done
	})
	go func() {
		defer close(done)
		var conns []net.Conn
		for {
			c, err := ln.Accept()
			if err != nil {
				for _, c := range conns {
					_ = c.Close()
				}
				return
			}
			up, err := srv.Dial(t.Context())
			if err != nil {
				t.Error(err)
				_ = c.Close()
				continue
			}
			_ = c.(*net.TCPConn).SetReadBuffer(64 << 10) // a kernel that sizes it by itself may take a whole part without anyone reading
			conns = append(conns, c, up)
			go func() { _, _ = io.Copy(c, up); _ = c.Close() }()
			go d.forward(up, c)
		}
	}()
	return d
}

func (d *deaf) forward(up, c net.Conn) {
	const ear = 1 << 20
	if n, _ := io.CopyN(up, c, ear); n == ear && d.deaf.CompareAndSwap(false, true) {
		return // with both connections open
	}
	_, _ = io.Copy(up, c)
	_ = up.Close()
}
