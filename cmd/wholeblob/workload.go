package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
)

// object is one object of the run. Its key is relative to the run's own prefix, so
// that the same seed makes the same contents in every run.
type object struct {
	key  string
	size int64
}

func makeObjects(size int64, dir string, count int) []object {
	objects := make([]object, count)
	for i := range objects {
		objects[i] = object{key: fmt.Sprintf("%s%06d", dir, i), size: size} // padded: listed in this order
	}
	return objects
}

// shuffled returns the objects in an order that depends on the seed only.
func shuffled(objects []object, seed uint64) []object {
	order := append([]object(nil), objects...)
	r := rand.New(rand.NewPCG(seed, uint64(len(order))))
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// content is the bytes of one object: incompressible, different for every seed and key, and
// computed at any offset without those before, so that neither sending nor checking needs a
// second copy. Word i, little endian, is the SplitMix64 generator (Steele, Lea, Flood 2014) at step i+1:
// no word depends on the one before, which lets the processor work on several at once.
type content struct {
	start uint64
	size  int64
}

func newContent(seed uint64, obj object) content {
	h := fnv.New64a()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	_, _ = h.Write(b[:]) // a hash never fails
	_, _ = h.Write([]byte(obj.key))
	return content{start: mix(h.Sum64()), size: obj.size}
}

const gamma = 0x9e3779b97f4a7c15

func (c content) word(i int64) uint64 { return mix(c.start + (uint64(i)+1)*gamma) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fill writes the content from offset off, which is a multiple of 8.
func (c content) fill(p []byte, off int64) {
	i := off / 8
	for ; len(p) >= 8; p, i = p[8:], i+1 {
		binary.LittleEndian.PutUint64(p, c.word(i))
	}
	if len(p) > 0 {
		copy(p, c.tail(i))
	}
}

func (c content) tail(i int64) []byte {
	return binary.LittleEndian.AppendUint64(nil, c.word(i))
}

// check returns the offset of the first byte of p that is not the content's, or -1. The
// caller has checked the length.
func (c content) check(p []byte) int64 {
	rest, i := p, int64(0)
	for len(rest) >= 8 && binary.LittleEndian.Uint64(rest) == c.word(i) {
		rest, i = rest[8:], i+1
	}
	if len(rest) == 0 {
		return -1
	}
	n := min(len(rest), 8)
	want := c.tail(i)[:n]
	if bytes.Equal(rest[:n], want) {
		return -1 // the last bytes, fewer than a word
	}
	for j := range n {
		if rest[j] != want[j] {
			return i*8 + int64(j)
		}
	}
	return -1
}

// ReadAt implements io.ReaderAt over the whole content.
func (c content) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= c.size {
		return 0, io.EOF
	}
	var end error
	if int64(len(p)) >= c.size-off {
		p, end = p[:c.size-off], io.EOF
	}
	n := 0
	if skip := off % 8; skip != 0 {
		n = copy(p, c.tail(off / 8)[skip:])
	}
	if n < len(p) {
		c.fill(p[n:], off+int64(n))
	}
	return len(p), end
}

// Mismatch is a reply of the store that is no error and wrong all the same: what the
// bench is there to find. The first one ends the run.
type Mismatch struct {
	Phase  string `json:"phase"`
	Key    string `json:"key"`
	Offset int64  `json:"offset"` // of the first wrong byte; -1 if it is not the content that is wrong
	Want   string `json:"want"`
	Got    string `json:"got"`
}

// Error names the key, the offset and both values.
func (m *Mismatch) Error() string {
	at := ""
	if m.Offset >= 0 {
		at = fmt.Sprintf(" at byte %d", m.Offset)
	}
	return fmt.Sprintf("MISMATCH: %s %q%s: want %s, got %s", m.Phase, m.Key, at, m.Want, m.Got)
}

// mismatchShown is how many bytes a Mismatch shows of each side.
const mismatchShown = 16

func (c content) mismatch(phase string, obj object, data []byte, off int64) *Mismatch {
	got := data[off:min(off+mismatchShown, int64(len(data)))]
	want := make([]byte, len(got))
	_, _ = c.ReadAt(want, off) // io.EOF at the end is none
	return &Mismatch{Phase: phase, Key: obj.key, Offset: off, Want: fmt.Sprintf("%x", want), Got: fmt.Sprintf("%x", got)}
}
