package fileblob

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// The format of an object's file, version 1, is described in docs/file-format.md: a header, then the payload to the
// end of the file.
const (
	magic        = "WHOLEBLB"
	formatV1     = 1
	fixedHeader  = 40
	headerSum    = 4
	maxHeader    = 4096 // the longest valid header has about 2.6 KiB
	minHeader    = fixedHeader + headerSum
	sizeOffset   = 16
	maxValueLen  = 1<<16 - 1
	maxNameLen   = 1<<8 - 1
	entryPrefix  = 3 // length of the name, length of the value
	offsetFormat = 8
	offsetLength = 12
	offsetTime   = 24
	offsetKey    = 32
	offsetType   = 34
	offsetMeta   = 36
	offsetZero   = 38
)

// errForeign marks a file that fileblob did not write, which is no key.
var errForeign = errors.New("not a file of fileblob")

// header is what a file says about its object.
type header struct {
	length      int64 // where the payload begins
	size        int64 // of the payload
	modTime     time.Time
	version     string
	key         string
	contentType string
	metadata    map[string]string // the caller's
}

func (h *header) info() blob.Info {
	return blob.Info{
		Key: h.key, Size: h.size, Version: h.version, ModTime: h.modTime,
		Metadata: h.metadata, ContentType: h.contentType,
	}
}

// encode returns the header's bytes. Their number does not depend on the size, which a stream tells last.
func (h *header) encode() ([]byte, error) {
	stored := blob.Stamp{Token: h.version}.Seal(h.metadata)
	b := make([]byte, fixedHeader, 512)
	copy(b, magic)
	le := binary.LittleEndian
	le.PutUint32(b[offsetFormat:], formatV1)
	le.PutUint64(b[sizeOffset:], uint64(h.size))
	le.PutUint64(b[offsetTime:], uint64(h.modTime.UnixNano()))
	if len(h.key) > maxHeader || len(h.contentType) > maxHeader {
		return nil, fmt.Errorf("%w: header of more than %d bytes", blob.ErrInvalidOption, maxHeader)
	}
	le.PutUint16(b[offsetKey:], uint16(len(h.key)))
	le.PutUint16(b[offsetType:], uint16(len(h.contentType)))
	le.PutUint16(b[offsetMeta:], uint16(len(stored)))
	b = append(append(b, h.key...), h.contentType...)
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		value := stored[name]
		if len(name) > maxNameLen || len(value) > maxValueLen {
			return nil, fmt.Errorf("%w: metadata %q is too long", blob.ErrInvalidOption, name)
		}
		b = append(b, byte(len(name)))
		b = le.AppendUint16(b, uint16(len(value)))
		b = append(append(b, name...), value...)
	}
	n := len(b) + headerSum
	if n > maxHeader {
		return nil, fmt.Errorf("%w: header of %d bytes, at most %d", blob.ErrInvalidOption, n, maxHeader)
	}
	le.PutUint32(b[offsetLength:], uint32(n))
	h.length = int64(n)
	return le.AppendUint32(b, castagnoli(b)), nil
}

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// parseHeader reads the header from the first bytes of a file, maxHeader of them or the whole file. A file
// that does not begin with the magic is errForeign; one that does was written by fileblob, and whatever else is
// wrong with it is damage: ErrTruncated, ErrCorrupt, or ErrUnsupported for a later format.
func parseHeader(b []byte) (*header, error) {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return nil, errForeign
	}
	if len(b) < minHeader {
		return nil, fmt.Errorf("%w: the file ends in its header", blob.ErrTruncated)
	}
	le := binary.LittleEndian
	if f := le.Uint32(b[offsetFormat:]); f != formatV1 {
		return nil, fmt.Errorf("%w: file format %d", blob.ErrUnsupported, f)
	}
	n := int64(le.Uint32(b[offsetLength:]))
	switch {
	case n < minHeader || n > maxHeader:
		return nil, fmt.Errorf("%w: header length %d", blob.ErrCorrupt, n)
	case n > int64(len(b)):
		return nil, fmt.Errorf("%w: the file ends in its header", blob.ErrTruncated)
	}
	b = b[:n]
	body, sum := b[:n-headerSum], le.Uint32(b[n-headerSum:])
	if got := castagnoli(body); got != sum {
		return nil, fmt.Errorf("%w: CRC32C of the header is %08x, want %08x", blob.ErrCorrupt, got, sum)
	}
	h := &header{
		length:  n,
		size:    int64(le.Uint64(b[sizeOffset:])),
		modTime: time.Unix(0, int64(le.Uint64(b[offsetTime:]))),
	}
	if h.size < 0 || le.Uint16(b[offsetZero:]) != 0 {
		return nil, fmt.Errorf("%w: impossible header", blob.ErrCorrupt)
	}
	if err := h.parseStrings(body); err != nil {
		return nil, err
	}
	return h, nil
}

// parseStrings reads what follows the fixed part and must fill the header exactly.
func (h *header) parseStrings(body []byte) error {
	le := binary.LittleEndian
	rest, ok := body[fixedHeader:], true
	take := func(n int) []byte {
		if n > len(rest) {
			ok, rest = false, nil
			return nil
		}
		p := rest[:n]
		rest = rest[n:]
		return p
	}
	h.key = string(take(int(le.Uint16(body[offsetKey:]))))
	h.contentType = string(take(int(le.Uint16(body[offsetType:]))))
	count := int(le.Uint16(body[offsetMeta:]))
	stored := make(map[string]string, min(count, len(rest)/entryPrefix))
	for range count {
		p := take(entryPrefix)
		if !ok {
			break
		}
		name := string(take(int(p[0])))
		stored[name] = string(take(int(le.Uint16(p[1:]))))
	}
	if !ok || len(rest) != 0 || len(stored) != count {
		return fmt.Errorf("%w: the header's lengths do not add up", blob.ErrCorrupt)
	}
	user, stamp := blob.Unseal(stored)
	if h.key == "" || stamp.Token == "" {
		return fmt.Errorf("%w: header without key or version", blob.ErrCorrupt)
	}
	h.metadata, h.version = user, stamp.Token
	return nil
}
