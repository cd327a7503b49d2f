package transfer

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/wholeblob/wholeblob/blob"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// running is the CRC-32C of a source from its start, as far as it has been needed. Each byte is read for it once, before it is sent: a
// source that has changed by then, or between two attempts, is refused by the service instead of stored.
type running struct {
	src blob.Source
	to  int64 // summed so far
	crc uint32
}

// sumStep is how much is summed between two looks at the context: about a millisecond's worth.
const sumStep = 8 << 20

// extend sums the source up to byte to, if the service of w compares sums at all.
func (r *running) extend(ctx context.Context, w *write, to int64) error {
	for w.s.traits.Sums && r.to < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(sumStep, to-r.to)
		if err := r.add(r.src.Section(r.to, n)); err != nil {
			return err
		}
		r.to += n
	}
	return nil
}

func (r *running) add(section io.Reader) error {
	if mem, ok := section.(*bytes.Reader); ok {
		_, err := mem.WriteTo(r) // one Write, of the caller's own bytes
		return err
	}
	buf := chunkBuffers.Get().(*[64 << 10]byte)
	defer chunkBuffers.Put(buf)
	_, err := io.CopyBuffer(r, section, buf[:])
	return err
}

// Write implements io.Writer.
func (r *running) Write(p []byte) (int, error) {
	r.crc = crc32.Update(r.crc, castagnoli, p)
	return len(p), nil
}

// of returns the sum for a service that compares it, once all of size bytes are in it.
func (r *running) of(t Traits, size int64) Sum {
	if !t.Sums || r.to != size {
		return Sum{}
	}
	return Sum{CRC32C: r.crc, Has: true}
}

// wholeSum takes the sum of the whole source.
func (w *write) wholeSum(ctx context.Context) (Sum, error) {
	r := running{src: w.src}
	if err := r.extend(ctx, w, w.src.Size()); err != nil {
		return Sum{}, err
	}
	return r.of(w.s.traits, w.src.Size()), nil
}

// errDamaged is the error of a read whose bytes do not have the sum that the service states.
var errDamaged = fmt.Errorf("%w: not the bytes that the store has the sum of", blob.ErrCorrupt)

// verify compares what was read with the sum that the service states, and with what the caller's manifest says. A sum is of the whole
// object, so only a whole object has one; and where both say the same, it is taken once.
//
// The stored sum comes first: bytes that do not have it may have been damaged on the way, and are worth another read. Bytes that
// have it, and are not what the manifest says, will be the same next time.
func (r *read) verify() error {
	want, head := r.o.Want, r.pin.get()
	if head.HasCRC32C && r.lo == 0 && r.hi == r.total {
		if got := crc32.Checksum(r.buf, castagnoli); got != head.CRC32C {
			return &blob.Error{
				Kind: blob.ErrCorrupt, Outcome: blob.NotApplied, Exhausted: true,
				Err: fmt.Errorf("%w: CRC32C is %08x, the store states %08x", errDamaged, got, head.CRC32C),
			}
		}
		if want.HasCRC32C && want.CRC32C == head.CRC32C {
			want.CRC32C, want.HasCRC32C = 0, false
		}
	}
	if err := want.Verify(r.total, r.lo, r.buf); err != nil {
		return r.notWanted(err)
	}
	return nil
}
