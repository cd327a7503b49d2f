package diskcache

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

func FuzzDiskHeader(f *testing.F) {
	for _, n := range []int{0, 1, 5000, 100_000} {
		info := testInfo("a/b", "v1", n)
		h, err := encodeHeader(&info, 0, tiertest.Bytes(1, n), 4096)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(h, false)
		f.Add(h[:len(h)/2], true)
	}
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal && len(b) >= minHeader { // get past the checksum
			b = slices.Clone(b)
			sum := checksum(0, b[:len(b)-sumSize])
			for i := range sumSize {
				b[len(b)-sumSize+i] = byte(sum >> (8 * i))
			}
		}
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		if !validRun(h.info.Size, h.off, h.length, h.sumBlock) || int64(len(h.sums)) != sumSize*sumBlocks(h.length, h.sumBlock) || h.payload != int64(len(b)) {
			t.Errorf("%+v", h)
		}
	})
}

func TestDiskHeaderKeepsAllAndFindsEachBit(t *testing.T) {
	info := testInfo("a/b", "v1", 10_000)
	b, err := encodeHeader(&info, 4096, tiertest.Bytes(1, 5904), 4096)
	if err != nil {
		t.Fatal(err)
	}
	h, err := parseHeader(b)
	if err != nil || fmt.Sprint(h.info) != fmt.Sprint(info) || h.off != 4096 || h.length != 5904 || len(h.sums) != 8 {
		t.Fatalf("%+v, %v", h, err)
	}
	for i := range 8 * len(b) {
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		if _, err := parseHeader(c); err == nil {
			t.Errorf("bit %d of byte %d is not covered", i%8, i/8)
		}
	}
}

func TestDiskNamesAreTheirOwnInverse(t *testing.T) {
	r := &run{hash: hashKey("k"), ver: 1, off: 4096, length: 77, seq: 1 << 63}
	got, ok := parseName(r.name())
	if !ok || got.name() != r.name() || got.hash != r.hash || got.off != 4096 || got.length != 77 {
		t.Errorf("%s: %+v", r.name(), got)
	}
	for _, name := range []string{"", "README", r.name() + "-1", r.name() + "0x", "X" + r.name()[1:], r.name()[1:], "tmp-1"} {
		if _, ok := parseName(name); ok && name != r.name() {
			t.Errorf("%q taken for an entry", name)
		}
	}
}
