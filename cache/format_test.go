package cache

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

func FuzzDiskHeader(f *testing.F) {
	for _, n := range []int{0, 1, 5000, 100_000} {
		info := diskInfo("a/b", "v1", n)
		h, err := encodeDiskHeader(&info, 0, diskBytes(1, n), 4096)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(h, false)
		f.Add(h[:len(h)/2], true)
	}
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal && len(b) >= diskMinHeader { // get past the checksum
			b = slices.Clone(b)
			sum := diskSum(0, b[:len(b)-diskSumSize])
			for i := range diskSumSize {
				b[len(b)-diskSumSize+i] = byte(sum >> (8 * i))
			}
		}
		h, err := parseDiskHeader(b)
		if err != nil {
			return
		}
		if !validRun(h.info.Size, h.off, h.length, h.sumBlock) || int64(len(h.sums)) != diskSumSize*sumBlocks(h.length, h.sumBlock) || h.payload != int64(len(b)) {
			t.Errorf("%+v", h)
		}
	})
}

func TestDiskHeaderKeepsAllAndFindsEachBit(t *testing.T) {
	info := diskInfo("a/b", "v1", 10_000)
	b, err := encodeDiskHeader(&info, 4096, diskBytes(1, 5904), 4096)
	if err != nil {
		t.Fatal(err)
	}
	h, err := parseDiskHeader(b)
	if err != nil || fmt.Sprint(h.info) != fmt.Sprint(info) || h.off != 4096 || h.length != 5904 || len(h.sums) != 8 {
		t.Fatalf("%+v, %v", h, err)
	}
	for i := range 8 * len(b) {
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		if _, err := parseDiskHeader(c); err == nil {
			t.Errorf("bit %d of byte %d is not covered", i%8, i/8)
		}
	}
}

func TestDiskNamesAreTheirOwnInverse(t *testing.T) {
	r := &diskRun{hash: hashDiskKey("k"), ver: 1, off: 4096, length: 77, seq: 1 << 63}
	got, ok := parseDiskName(r.name())
	if !ok || got.name() != r.name() || got.hash != r.hash || got.off != 4096 || got.length != 77 {
		t.Errorf("%s: %+v", r.name(), got)
	}
	for _, name := range []string{"", "README", r.name() + "-1", r.name() + "0x", "X" + r.name()[1:], r.name()[1:], "tmp-1"} {
		if _, ok := parseDiskName(name); ok && name != r.name() {
			t.Errorf("%q taken for an entry", name)
		}
	}
}
