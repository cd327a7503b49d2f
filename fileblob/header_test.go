package fileblob

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

func sampleHeader() *header {
	return &header{
		key: "a/b", size: 1234, version: strings.Repeat("0a", 16), modTime: time.Unix(1700000000, 123456789),
		contentType: "text/plain", metadata: map[string]string{"origin": "flush", "n": "1"},
	}
}

func sameHeader(a, b *header) bool {
	return a.key == b.key && a.size == b.size && a.version == b.version && a.modTime.Equal(b.modTime) &&
		a.contentType == b.contentType && a.length == b.length && maps.Equal(a.metadata, b.metadata)
}

func TestHeaderRoundTrips(t *testing.T) {
	longest := &header{
		key: strings.Repeat("k", blob.MaxKey+blob.MaxPrefix), version: blob.NewToken(), modTime: time.Now(),
		contentType: strings.Repeat("c", 255), metadata: map[string]string{},
	}
	for i := range blob.MaxMetadata / 3 { // as many entries as fit
		longest.metadata[string(rune('a'+i%26))+string(rune('a'+i/26))] = "v"
	}
	for _, h := range []*header{sampleHeader(), longest, {key: "k", version: blob.NewToken(), modTime: time.Unix(0, 0)}} {
		b, err := h.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseHeader(append(b, "payload"...))
		if err != nil || !sameHeader(got, h) || got.length != int64(len(b)) {
			t.Errorf("%+v came back as %+v, %v", h, got, err)
		}
	}
}

func TestHeaderLengthDoesNotDependOnTheSize(t *testing.T) {
	h := sampleHeader()
	a, _ := h.encode()
	h.size = 1 << 62
	b, _ := h.encode()
	if len(a) != len(b) {
		t.Errorf("%d and %d bytes", len(a), len(b))
	}
}

func TestDamagedHeaderIsLoud(t *testing.T) {
	b, err := sampleHeader().encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for bit := range 8 {
			bad := []byte(string(b))
			bad[i] ^= 1 << bit
			h, err := parseHeader(bad)
			switch {
			case err == nil:
				t.Fatalf("bit %d of byte %d flipped: read as %+v", bit, i, h)
			case i < len(magic) != errors.Is(err, errForeign):
				t.Fatalf("bit %d of byte %d flipped: %v", bit, i, err)
			}
		}
		_, err := parseHeader(b[:i])
		if want := errForeign; i < len(magic) && !errors.Is(err, want) || i >= len(magic) && !errors.Is(err, blob.ErrTruncated) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	b, _ := sampleHeader().encode()
	f.Add(b)
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		// With the right checksum, so that what lies behind it is reached.
		if len(b) >= minHeader && len(b) <= maxHeader {
			copy(b, magic)
			b[offsetFormat], b[offsetFormat+1], b[offsetFormat+2], b[offsetFormat+3] = formatV1, 0, 0, 0
			n := len(b)
			b[offsetLength], b[offsetLength+1], b[offsetLength+2], b[offsetLength+3] = byte(n), byte(n>>8), 0, 0
			sum := castagnoli(b[:n-headerSum])
			for i := range headerSum {
				b[n-headerSum+i] = byte(sum >> (8 * i))
			}
		}
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		if h.key == "" || h.version == "" || h.size < 0 || h.length > int64(len(b)) {
			t.Errorf("accepted %+v", h)
		}
	})
}
