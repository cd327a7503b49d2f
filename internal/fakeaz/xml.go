package fakeaz

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// xmlHead begins with a byte order mark, as the documents of the service do.
const xmlHead = "\ufeff" + `<?xml version="1.0" encoding="utf-8"?>`

// xmlDoc writes answers.
type xmlDoc struct {
	buf  bytes.Buffer
	open []string
}

func newDoc(root string, attrs ...attr) *xmlDoc {
	d := &xmlDoc{}
	d.buf.WriteString(xmlHead)
	d.begin(root, attrs...)
	return d
}

// attr is an attribute of an element.
type attr struct{ name, value string }

func (d *xmlDoc) begin(name string, attrs ...attr) {
	d.buf.WriteString("<" + name)
	for _, a := range attrs {
		d.buf.WriteString(" " + a.name + `="`)
		escapeXML(&d.buf, a.value)
		d.buf.WriteByte('"')
	}
	d.buf.WriteByte('>')
	d.open = append(d.open, name)
}

func (d *xmlDoc) end() {
	name := d.open[len(d.open)-1]
	d.open = d.open[:len(d.open)-1]
	d.buf.WriteString("</" + name + ">")
}

func (d *xmlDoc) text(name, value string) {
	d.buf.WriteString("<" + name + ">")
	escapeXML(&d.buf, value)
	d.buf.WriteString("</" + name + ">")
}

// some writes the element unless the value is empty.
func (d *xmlDoc) some(name, value string) {
	if value != "" {
		d.text(name, value)
	}
}

func (d *xmlDoc) number(name string, n int64)   { d.text(name, strconv.FormatInt(n, 10)) }
func (d *xmlDoc) flag(name string, b bool)      { d.text(name, strconv.FormatBool(b)) }
func (d *xmlDoc) date(name string, t time.Time) { d.text(name, httpDate(t)) }
func (d *xmlDoc) bytes() []byte {
	for len(d.open) > 0 {
		d.end()
	}
	return d.buf.Bytes()
}

// name writes a blob's name or a prefix. "List Blobs", from 2021-02-12 on: a name with characters that are not valid in
// XML (U+FFFE or U+FFFF are named) is percent-encoded, and the element says so.
func (d *xmlDoc) name(value string) {
	if strings.ContainsFunc(value, invalidXML) {
		d.begin("Name", attr{"Encoded", "true"})
		d.buf.WriteString(url.PathEscape(value))
		d.end()
		return
	}
	d.text("Name", value)
}

func invalidXML(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

func escapeXML(b *bytes.Buffer, s string) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&quot;")
		case r == '\t' || r == '\n' || r == '\r': // else a parser folds them
			fmt.Fprintf(b, "&#x%X;", r)
		case invalidXML(r):
			b.WriteString("\ufffd")
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
}

// errorDoc is the form of "Status and error codes". The message ends in the id and the time of the request.
func errorDoc(e *apiError, id string, now time.Time) []byte {
	d := newDoc("Error")
	d.text("Code", e.code)
	d.text("Message", fmt.Sprintf("%s\nRequestId:%s\nTime:%s", e.msg, id, now.UTC().Format(stampFormat)))
	for _, x := range e.extra {
		d.text(x[0], x[1])
	}
	return d.bytes()
}

// HTMLPage is what a proxy in the way answers.
const HTMLPage = "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>\n"

// newReader reads a document of a client, past its byte order mark.
func newReader(data []byte) io.Reader {
	return bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff")))
}

func docResponse(d *xmlDoc) *response {
	r := newResponse(http.StatusOK)
	r.Set("Content-Type", "application/xml")
	r.Body = rope{d.bytes()}
	return r
}
