package fakes3

import (
	"bytes"
	"encoding/xml"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	xmlHead      = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	s3Namespace  = "http://s3.amazonaws.com/doc/2006-03-01/"
	iso8601Milli = "2006-01-02T15:04:05.000Z"
)

// xmlDoc writes answers. It is not encoding/xml because that replaces control
// characters, which S3 sends as (invalid) character references instead.
type xmlDoc struct {
	buf  bytes.Buffer
	open []string
}

func newDoc(root string) *xmlDoc {
	d := &xmlDoc{}
	d.buf.WriteString(xmlHead)
	d.buf.WriteString("<" + root + ` xmlns="` + s3Namespace + `">`)
	d.open = append(d.open, root)
	return d
}

func (d *xmlDoc) begin(name string) {
	d.buf.WriteString("<" + name + ">")
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

func (d *xmlDoc) number(name string, n int64) { d.text(name, strconv.FormatInt(n, 10)) }
func (d *xmlDoc) flag(name string, b bool)    { d.text(name, strconv.FormatBool(b)) }
func (d *xmlDoc) time(name string, t time.Time) {
	d.text(name, t.UTC().Format(iso8601Milli))
}

func (d *xmlDoc) bytes() []byte {
	for len(d.open) > 0 {
		d.end()
	}
	return d.buf.Bytes()
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
		case r < 0x20:
			b.WriteString("&#x" + strconv.FormatInt(int64(r), 16) + ";")
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
}

// listEncode is the encoding-type=url of listings: form encoding (a space is
// "+"), with slashes left alone.
func listEncode(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/")
}

func errorDoc(e *apiError, resource, requestID string) []byte {
	d := &xmlDoc{}
	d.buf.WriteString(xmlHead)
	d.begin("Error")
	d.text("Code", e.code)
	d.text("Message", e.msg)
	for _, x := range e.extra {
		d.text(x[0], x[1])
	}
	d.some("Resource", resource)
	d.some("RequestId", requestID)
	return d.bytes()
}

// ErrorXML is the error document that S3 sends for code, for use as the body
// of a Reply with status 200.
func ErrorXML(code, message string) string {
	return string(errorDoc(&apiError{code: code, msg: message}, "", "0000000000000000"))
}

type xmlDelete struct {
	Quiet   bool
	Objects []struct {
		Key       string
		VersionID string `xml:"VersionId"`
		ETag      string
	} `xml:"Object"`
}

type xmlComplete struct {
	Parts []xmlPart `xml:"Part"`
}

type xmlPart struct {
	PartNumber        int
	ETag              string
	ChecksumCRC32     string
	ChecksumCRC32C    string
	ChecksumCRC64NVME string
	ChecksumSHA1      string
	ChecksumSHA256    string
}

func (p xmlPart) sum(alg string) string {
	switch alg {
	case "crc32":
		return p.ChecksumCRC32
	case "crc32c":
		return p.ChecksumCRC32C
	case "crc64nvme":
		return p.ChecksumCRC64NVME
	case "sha1":
		return p.ChecksumSHA1
	case "sha256":
		return p.ChecksumSHA256
	}
	return ""
}

type xmlVersioning struct {
	Status string
}

func parseXML(data []byte, into any) *apiError {
	if err := xml.Unmarshal(data, into); err != nil {
		return errMalformedXML()
	}
	return nil
}
