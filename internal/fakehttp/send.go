package fakehttp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// writeChunk is how much is written at a time; a cancelled client is noticed
// between two.
const writeChunk = 1 << 20

// send writes the answer, deformed as asked.
func (c *Call) send(w http.ResponseWriter, a *Answer, p plan) {
	c.x.Finish(a)
	if c.Method == http.MethodHead {
		a.Body = nil
	} else {
		a.Length = a.Body.Size()
	}
	c.gzip(a)
	c.Entry.Status = a.Status
	if c.Method != http.MethodHead {
		c.Entry.Sent = a.Body.Size() // corrected below if it turns out less
	}
	c.record()
	if p.cut != nil || c.LengthOff != 0 || c.Shape.Length == CloseDelimited {
		c.sendRaw(w, a, p)
		return
	}
	h := w.Header()
	for name, v := range a.Header {
		h[name] = v
	}
	if !c.chunked() && bodyAllowed(a.Status) {
		h.Set("Content-Length", strconv.FormatInt(a.Length, 10))
	}
	w.WriteHeader(a.Status)
	if c.chunked() {
		// Else net/http measures a small body and announces its length.
		_ = http.NewResponseController(w).Flush() // a client that has gone is noticed by the next write
	}
	c.sendBody(w, a)
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

func (c *Call) sendBody(w http.ResponseWriter, a *Answer) {
	if c.Method == http.MethodHead {
		return
	}
	rc := http.NewResponseController(w)
	for range c.Shape.Spaces {
		if _, err := io.WriteString(w, " "); err != nil || rc.Flush() != nil {
			return
		}
	}
	c.Entry.Sent = 0
	for _, b := range a.Body {
		n, err := c.writeAll(w, b)
		c.Entry.Sent += n
		if err != nil {
			return // the client has gone
		}
	}
}

func (c *Call) writeAll(w io.Writer, b []byte) (sent int64, err error) {
	size := writeChunk
	if c.Bandwidth > 0 {
		size = 64 << 10
	}
	for len(b) > 0 {
		n := min(len(b), size)
		c.Throttle(n)
		m, err := w.Write(b[:n])
		sent += int64(m)
		if err != nil {
			return sent, err
		}
		b = b[n:]
	}
	return sent, nil
}

// gzip compresses whole bodies as a proxy in the way does: the length is no
// longer known beforehand.
func (c *Call) gzip(a *Answer) {
	if !c.Shape.Gzip || a.Status != http.StatusOK || a.Length == 0 ||
		a.Header.Get("Content-Encoding") != "" || !hasToken(c.Header.Get("Accept-Encoding"), "gzip") {
		return
	}
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	for _, b := range a.Body {
		_, _ = z.Write(b) // a bytes.Buffer does not fail
	}
	_ = z.Close()
	a.Header.Set("Content-Encoding", "gzip")
	a.Body = Rope{buf.Bytes()}
	if c.Shape.Length == Announced {
		c.Shape.Length = Chunked
	}
}

// sendRaw writes the answer by hand: net/http would not send a length that is
// wrong or a body that ends early, and closes at moments of its own.
func (c *Call) sendRaw(w http.ResponseWriter, a *Answer, p plan) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	how := Close
	limit := a.Body.Size()
	if p.cut != nil {
		limit = min(limit, p.cut.At)
		over(&how, p.cut.How)
		c.Entry.Cut, c.Entry.Sent = true, limit
		c.record()
	}
	out := bufio.NewWriterSize(conn, 64<<10)
	c.rawHead(out, a)
	if c.Method != http.MethodHead {
		c.rawBody(out, a.Body.Slice(0, limit), p.cut == nil)
	}
	if out.Flush() == nil && how == Silence {
		c.silence(conn, p.hit)
	}
	c.finish(conn, how)
}

func (c *Call) rawHead(out *bufio.Writer, a *Answer) {
	proto := "HTTP/1.1"
	if c.Shape.Length == CloseDelimited {
		proto = "HTTP/1.0"
	}
	_, _ = fmt.Fprintf(out, "%s %d %s\r\n", proto, a.Status, http.StatusText(a.Status)) // as all errors here, kept for Flush
	switch {
	case !bodyAllowed(a.Status):
	case c.chunked():
		a.Header.Set("Transfer-Encoding", "chunked")
	case c.Shape.Length == Announced:
		a.Header.Set("Content-Length", strconv.FormatInt(a.Length+c.Shape.LengthOff, 10))
	}
	a.Header.Set("Connection", "close")
	_ = a.Header.Write(out)
	_, _ = out.WriteString("\r\n")
}

// chunked is whether an answer with a body is sent in the chunked coding.
func (c *Call) chunked() bool {
	return c.Shape.Length == Chunked || c.Shape.Length == Announced && c.Shape.Spaces > 0
}

func (c *Call) rawBody(out *bufio.Writer, body Rope, whole bool) {
	chunked := c.chunked()
	if c.Shape.Spaces > 0 {
		body = append(Rope{bytes.Repeat([]byte(" "), c.Shape.Spaces)}, body...)
	}
	for _, b := range body {
		if chunked && len(b) > 0 {
			_, _ = fmt.Fprintf(out, "%x\r\n", len(b))
		}
		_, _ = c.writeAll(out, b)
		if chunked && len(b) > 0 {
			_, _ = out.WriteString("\r\n")
		}
	}
	if chunked && whole {
		_, _ = out.WriteString("0\r\n\r\n")
	}
}

// silence waits on a hijacked connection until it is released or the client
// ends it.
func (c *Call) silence(conn net.Conn, by []*Injected) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn)
	}()
	for _, in := range by {
		select {
		case <-in.gate:
		case <-gone:
		case <-c.s.closing:
		}
	}
	_ = conn.Close()
	<-gone
}

// finish ends a hijacked connection.
func (c *Call) finish(conn net.Conn, how Ending) {
	if how == Reset {
		reset(conn)
	} else {
		_ = conn.Close()
	}
	c.s.conns.forget(conn)
}

func hasToken(list, token string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(t), token) {
			return true
		}
	}
	return false
}
