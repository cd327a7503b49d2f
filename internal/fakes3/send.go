package fakes3

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
func (c *call) send(w http.ResponseWriter, resp *response, id string, p plan) {
	resp.header.Set("x-amz-request-id", id)
	resp.header.Set("x-amz-id-2", "fakes3-"+id)
	resp.header.Set("Server", "AmazonS3")
	resp.header.Set("Date", c.s.now().UTC().Format(http.TimeFormat))
	c.entry.Status = resp.status
	c.gzip(resp)
	if c.Method != http.MethodHead {
		c.entry.Sent = resp.body.size() // corrected below if it turns out less
	}
	c.record()
	if p.cut != nil || c.shape.LengthOff != 0 || c.shape.Length == CloseDelimited {
		c.sendRaw(w, resp, p)
		return
	}
	h := w.Header()
	for name, v := range resp.header {
		h[name] = v
	}
	if !c.chunked() && bodyAllowed(resp.status) {
		h.Set("Content-Length", strconv.FormatInt(resp.length, 10))
	}
	w.WriteHeader(resp.status)
	if c.chunked() {
		// Else net/http measures a small body and announces its length.
		_ = http.NewResponseController(w).Flush() // a client that has gone is noticed by the next write
	}
	c.sendBody(w, resp)
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

func (c *call) sendBody(w http.ResponseWriter, resp *response) {
	if c.Method == http.MethodHead {
		return
	}
	rc := http.NewResponseController(w)
	for range c.shape.Spaces {
		if _, err := io.WriteString(w, " "); err != nil || rc.Flush() != nil {
			return
		}
	}
	c.entry.Sent = 0
	for _, b := range resp.body {
		n, err := c.writeAll(w, b)
		c.entry.Sent += n
		if err != nil {
			return // the client has gone
		}
	}
}

func (c *call) writeAll(w io.Writer, b []byte) (sent int64, err error) {
	size := writeChunk
	if c.knobs.Bandwidth > 0 {
		size = 64 << 10
	}
	for len(b) > 0 {
		n := min(len(b), size)
		c.throttle(n)
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
func (c *call) gzip(resp *response) {
	if !c.shape.Gzip || resp.status != http.StatusOK || resp.length == 0 ||
		resp.header.Get("Content-Encoding") != "" || !hasToken(c.Header.Get("Accept-Encoding"), "gzip") {
		return
	}
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	for _, b := range resp.body {
		_, _ = z.Write(b) // a bytes.Buffer does not fail
	}
	_ = z.Close()
	resp.header.Set("Content-Encoding", "gzip")
	resp.body = rope{buf.Bytes()}
	if c.shape.Length == Announced {
		c.shape.Length = Chunked
	}
}

// sendRaw writes the answer by hand: net/http would not send a length that is
// wrong or a body that ends early, and closes at moments of its own.
func (c *call) sendRaw(w http.ResponseWriter, resp *response, p plan) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	how := Close
	limit := resp.body.size()
	if p.cut != nil {
		limit = min(limit, p.cut.At)
		over(&how, p.cut.How)
		c.entry.Cut, c.entry.Sent = true, limit
		c.record()
	}
	out := bufio.NewWriterSize(conn, 64<<10)
	c.rawHead(out, resp)
	if c.Method != http.MethodHead {
		c.rawBody(out, resp.body.slice(0, limit), p.cut == nil)
	}
	if out.Flush() == nil && how == Silence {
		c.silence(conn, p.hit)
	}
	c.finish(conn, how)
}

func (c *call) rawHead(out *bufio.Writer, resp *response) {
	proto := "HTTP/1.1"
	if c.shape.Length == CloseDelimited {
		proto = "HTTP/1.0"
	}
	_, _ = fmt.Fprintf(out, "%s %d %s\r\n", proto, resp.status, http.StatusText(resp.status)) // as all errors here, kept for Flush
	switch {
	case !bodyAllowed(resp.status):
	case c.chunked():
		resp.header.Set("Transfer-Encoding", "chunked")
	case c.shape.Length == Announced:
		resp.header.Set("Content-Length", strconv.FormatInt(resp.length+c.shape.LengthOff, 10))
	}
	resp.header.Set("Connection", "close")
	_ = resp.header.Write(out)
	_, _ = out.WriteString("\r\n")
}

// chunked is whether an answer with a body is sent in the chunked coding.
func (c *call) chunked() bool {
	return c.shape.Length == Chunked || c.shape.Length == Announced && c.shape.Spaces > 0
}

func (c *call) rawBody(out *bufio.Writer, body rope, whole bool) {
	chunked := c.chunked()
	if c.shape.Spaces > 0 {
		body = append(rope{bytes.Repeat([]byte(" "), c.shape.Spaces)}, body...)
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
func (c *call) silence(conn net.Conn, by []*Injected) {
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
func (c *call) finish(conn net.Conn, how Ending) {
	if how == Reset {
		reset(conn)
	} else {
		_ = conn.Close()
	}
	c.s.conns.forget(conn)
}

// quoted puts quotes around an ETag given without.
func quoted(etag string) string {
	if strings.HasPrefix(etag, `"`) || strings.HasPrefix(etag, "W/") {
		return etag
	}
	return `"` + etag + `"`
}
