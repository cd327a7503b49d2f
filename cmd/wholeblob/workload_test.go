package main

import (
	"bytes"
	"compress/flate"
	"io"
	"slices"
	"testing"
	"testing/iotest"
)

func TestContentIsTheSameHoweverItIsRead(t *testing.T) {
	for _, size := range []int64{0, 1, 7, 8, 9, 4096, 10_001} {
		c := newContent(1, object{key: "a", size: size})
		want := make([]byte, size)
		c.fill(want, 0)
		if err := iotest.TestReader(io.NewSectionReader(c, 0, size), want); err != nil {
			t.Errorf("size %d: %v", size, err)
		}
		for off := range min(size, 20) {
			for n := range min(size-off, 20) {
				p := make([]byte, n)
				if got, err := c.ReadAt(p, off); got != int(n) || err != nil || !bytes.Equal(p, want[off:off+n]) {
					t.Fatalf("size %d: ReadAt of %d bytes at %d: %d, %v, %x", size, n, off, got, err, p)
				}
			}
		}
	}
}

func TestCheckFindsTheFirstWrongByte(t *testing.T) {
	for _, size := range []int64{0, 1, 7, 8, 9, 23, 4096} {
		c := newContent(1, object{key: "a", size: size})
		p := make([]byte, size)
		c.fill(p, 0)
		if at := c.check(p); at != -1 {
			t.Errorf("size %d: right content is wrong at %d", size, at)
		}
		for i := range p {
			p[i] ^= 0x40
			last := p[size-1]
			p[size-1] ^= 1 // a later fault must not hide it
			if at := c.check(p); at != int64(i) {
				t.Fatalf("size %d: byte %d is wrong, check says %d", size, i, at)
			}
			p[size-1] = last
			p[i] ^= 0x40
		}
	}
}

func TestContentIsIncompressibleAndItsOwn(t *testing.T) {
	fill := func(seed uint64, key string) []byte {
		p := make([]byte, 1<<20)
		newContent(seed, object{key: key, size: 1 << 20}).fill(p, 0)
		return p
	}
	a := fill(1, "a")
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression)
	_, _ = w.Write(a)
	_ = w.Close()
	if packed.Len() < len(a) {
		t.Errorf("1 MiB was packed into %d bytes", packed.Len())
	}
	for _, other := range [][]byte{fill(2, "a"), fill(1, "b")} {
		for at := 0; at < len(other); at += 4096 {
			if bytes.Contains(a, other[at:at+16]) {
				t.Fatal("another seed or key has bytes in common")
			}
		}
	}
	if !bytes.Equal(a, fill(1, "a")) {
		t.Error("the same seed and key gave other bytes")
	}
}

func TestShuffledDependsOnTheSeedOnly(t *testing.T) {
	objects := makeObjects(1, "1/", 100)
	a, b, c := shuffled(objects, 1), shuffled(objects, 1), shuffled(objects, 2)
	if !slices.Equal(a, b) || slices.Equal(a, c) || slices.Equal(a, objects) {
		t.Error("want the same order for one seed, another for another, and none like the listing")
	}
	slices.SortFunc(a, func(x, y object) int { return bytes.Compare([]byte(x.key), []byte(y.key)) })
	if !slices.Equal(a, objects) {
		t.Error("objects were lost, repeated, or are not in byte order")
	}
}

func BenchmarkFill(b *testing.B) {
	p := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		newContent(1, object{key: "a", size: 1 << 20}).fill(p, 0)
	}
}

func BenchmarkCheck(b *testing.B) {
	p := make([]byte, 1<<20)
	c := newContent(1, object{key: "a", size: 1 << 20})
	c.fill(p, 0)
	b.SetBytes(1 << 20)
	for b.Loop() {
		if c.check(p) != -1 {
			b.Fatal("wrong")
		}
	}
}
