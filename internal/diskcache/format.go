package diskcache

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// The format of an entry's file, version 1, is described in docs/disk-cache.md: a header, then the payload to the end of
// the file.
const (
	magic         = "WBLBCACH"
	formatVersion = 1
	fixedHeader   = 72 // bytes of the fixed part
	sumSize       = 4
	minHeader     = fixedHeader + sumSize
	page          = 4096

	// alignFrom is the payload from which on the header is padded to whole pages: a copy out of the page cache that begins
	// in the middle of a page is slower, and what the padding costs is under a sixteenth.
	alignFrom = 16 * page

	minSumBlock = 512
	maxSumBlock = 1 << 20
	maxRunLen   = 1 << 30   // bytes of payload in one file
	maxHeader   = 1<<32 - 1 // what the field of its length can say
	maxStrings  = 1<<16 - 1 // of a key, version, content type, or metadata name or value

	flagHasCRC  = 1 << 0
	flagModTime = 1 << 1

	atFormat      = 8
	atHeaderLen   = 12
	atObjectSize  = 16
	atRunOffset   = 24
	atRunLength   = 32
	atModTime     = 40
	atSumBlock    = 48
	atObjectCRC   = 52
	atFlags       = 56
	atKeyLen      = 58
	atVersionLen  = 60
	atTypeLen     = 62
	atMetaCount   = 64
	atZero        = 66
	metaPrefixLen = 4 // lengths of the name and the value
)

// entryHeader is what a file says about itself: the bytes [off, off+length) of one version of an object.
type entryHeader struct {
	info        blob.Info
	off, length int64
	sumBlock    int
	sums        []byte // CRC32C of each block of sumBlock bytes, 4 bytes little-endian each; the last block may be short
	payload     int64  // where the payload begins in the file
}

func checksum(sum uint32, b []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
}

// validSumBlock: a power of two, so that blocks of an object nest.
func validSumBlock(n int) bool {
	return n >= minSumBlock && n <= maxSumBlock && bits.OnesCount(uint(n)) == 1
}

// sumBlocks is the number of checksum blocks in length bytes.
func sumBlocks(length int64, sumBlock int) int64 {
	return (length + int64(sumBlock) - 1) / int64(sumBlock)
}

// encodeHeader returns the header of a file with data at offset off of the object.
func encodeHeader(info *blob.Info, off int64, data []byte, sumBlock int) ([]byte, error) {
	b := make([]byte, fixedHeader, fixedHeader+512+sumSize*int(sumBlocks(int64(len(data)), sumBlock)))
	le := binary.LittleEndian
	copy(b, magic)
	le.PutUint32(b[atFormat:], formatVersion)
	le.PutUint64(b[atObjectSize:], uint64(info.Size))
	le.PutUint64(b[atRunOffset:], uint64(off))
	le.PutUint64(b[atRunLength:], uint64(len(data)))
	le.PutUint32(b[atSumBlock:], uint32(sumBlock))
	var flags uint16
	if info.HasCRC32C {
		flags |= flagHasCRC
		le.PutUint32(b[atObjectCRC:], info.CRC32C)
	}
	if !info.ModTime.IsZero() {
		flags |= flagModTime
		le.PutUint64(b[atModTime:], uint64(info.ModTime.UnixNano()))
	}
	le.PutUint16(b[atFlags:], flags)
	for at, s := range map[int]string{atKeyLen: info.Key, atVersionLen: info.Version, atTypeLen: info.ContentType} {
		if len(s) > maxStrings {
			return nil, fmt.Errorf("%w: a string of %d bytes", blob.ErrTooLarge, len(s))
		}
		le.PutUint16(b[at:], uint16(len(s)))
	}
	if len(info.Metadata) > maxStrings {
		return nil, fmt.Errorf("%w: %d metadata entries", blob.ErrTooLarge, len(info.Metadata))
	}
	le.PutUint16(b[atMetaCount:], uint16(len(info.Metadata)))
	b = append(append(append(b, info.Key...), info.Version...), info.ContentType...)
	for _, name := range slices.Sorted(maps.Keys(info.Metadata)) {
		value := info.Metadata[name]
		if len(name) > maxStrings || len(value) > maxStrings {
			return nil, fmt.Errorf("%w: metadata %.40q", blob.ErrTooLarge, name)
		}
		b = le.AppendUint16(le.AppendUint16(b, uint16(len(name))), uint16(len(value)))
		b = append(append(b, name...), value...)
	}
	for block := range slices.Chunk(data, sumBlock) {
		b = le.AppendUint32(b, checksum(0, block))
	}
	if len(data) >= alignFrom {
		pad := -(len(b) + sumSize) & (page - 1)
		b = append(b, make([]byte, pad)...)
	}
	le.PutUint32(b[atHeaderLen:], uint32(len(b)+sumSize))
	return le.AppendUint32(b, checksum(0, b)), nil
}

// headerLen returns the length of the header that begins with b, at least fixedHeader bytes.
func headerLen(b []byte) (int64, error) {
	le := binary.LittleEndian
	switch {
	case len(b) < minHeader:
		return 0, fmt.Errorf("%w: the file ends in its header", blob.ErrTruncated)
	case string(b[:len(magic)]) != magic:
		return 0, fmt.Errorf("%w: not a file of the cache", blob.ErrCorrupt)
	case le.Uint32(b[atFormat:]) != formatVersion:
		return 0, fmt.Errorf("%w: format %d", blob.ErrUnsupported, le.Uint32(b[atFormat:]))
	}
	n := int64(le.Uint32(b[atHeaderLen:]))
	if n < minHeader {
		return 0, fmt.Errorf("%w: header length %d", blob.ErrCorrupt, n)
	}
	return n, nil
}

// parseHeader reads a header, the whole of it and nothing more. What it returns shares no memory with b but the sums.
func parseHeader(b []byte) (*entryHeader, error) {
	n, err := headerLen(b)
	if err != nil {
		return nil, err
	}
	if n != int64(len(b)) {
		return nil, fmt.Errorf("%w: header of %d bytes, want %d", blob.ErrTruncated, len(b), n)
	}
	le := binary.LittleEndian
	body := b[:n-sumSize]
	if got, want := checksum(0, body), le.Uint32(b[n-sumSize:]); got != want {
		return nil, fmt.Errorf("%w: CRC32C of the header is %08x, want %08x", blob.ErrCorrupt, got, want)
	}
	h := &entryHeader{
		info:     blob.Info{Size: int64(le.Uint64(b[atObjectSize:]))},
		off:      int64(le.Uint64(b[atRunOffset:])),
		length:   int64(le.Uint64(b[atRunLength:])),
		sumBlock: int(le.Uint32(b[atSumBlock:])),
		payload:  n,
	}
	flags := le.Uint16(b[atFlags:])
	if flags&flagHasCRC != 0 {
		h.info.HasCRC32C, h.info.CRC32C = true, le.Uint32(b[atObjectCRC:])
	}
	if flags&flagModTime != 0 {
		h.info.ModTime = time.Unix(0, int64(le.Uint64(b[atModTime:]))).UTC()
	}
	if !validSumBlock(h.sumBlock) || !validRun(h.info.Size, h.off, h.length, h.sumBlock) {
		return nil, fmt.Errorf("%w: impossible header", blob.ErrCorrupt)
	}
	if err := h.parseStrings(body); err != nil {
		return nil, err
	}
	return h, nil
}

// validRun reports whether [off, off+length) is a run that a file may hold: aligned, and nothing of it past the end of the
// object. Only the last run may be short.
func validRun(size, off, length int64, sumBlock int) bool {
	end := off + length
	return off >= 0 && length >= 0 && length <= maxRunLen && end >= off && end <= size &&
		off%int64(sumBlock) == 0 && (end == size || end%int64(sumBlock) == 0) && (length > 0 || size == 0)
}

// parseStrings reads what follows the fixed part; all but padding must be accounted for.
func (h *entryHeader) parseStrings(body []byte) error {
	le := binary.LittleEndian
	rest, ok := body[fixedHeader:], true
	take := func(n int64) []byte {
		if n > int64(len(rest)) {
			ok, rest = false, nil
			return nil
		}
		p := rest[:n]
		rest = rest[n:]
		return p
	}
	h.info.Key = string(take(int64(le.Uint16(body[atKeyLen:]))))
	h.info.Version = string(take(int64(le.Uint16(body[atVersionLen:]))))
	h.info.ContentType = string(take(int64(le.Uint16(body[atTypeLen:]))))
	count := int(le.Uint16(body[atMetaCount:]))
	if count > 0 {
		h.info.Metadata = make(map[string]string, min(count, len(rest)/metaPrefixLen))
	}
	for range count {
		p := take(metaPrefixLen)
		if !ok {
			break
		}
		name := string(take(int64(le.Uint16(p))))
		h.info.Metadata[name] = string(take(int64(le.Uint16(p[2:]))))
	}
	h.sums = take(sumSize * sumBlocks(h.length, h.sumBlock))
	if !ok || len(h.info.Metadata) != count || len(rest) >= page || h.info.Key == "" {
		return fmt.Errorf("%w: the header's lengths do not add up", blob.ErrCorrupt)
	}
	return nil
}
