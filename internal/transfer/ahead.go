package transfer

import (
	"errors"
	"sync"

	"github.com/wholeblob/wholeblob/blob"
)

// canReadAhead reports whether all segments of a read can begin at once: its caller's manifest states the total, and there is more than
// one segment to read.
func (s *Store) canReadAhead(o blob.GetOptions, mode readMode) bool {
	if !o.Want.HasSize || mode == plain {
		return false
	}
	_, n, err := o.Range.Resolve(o.Want.Size)
	return err == nil && n > s.o.Segment
}

// readAhead plans all segments from what the manifest says, without waiting for a first reply. Every reply still states the
// total and the version, and is compared; which version is read is decided by the reply that comes first, and resumed
// requests ask for it.
func (r *read) readAhead() error {
	if r.mode == byPart {
		r.mode = byRange
	}
	if v, ok := r.o.If.Version(); ok {
		r.pin.expect(v)
	}
	if err := r.resolve(Head{}, r.o.Want.Size); err != nil {
		return err
	}
	r.rest = planRest(r.lo, r.hi, r.lo, r.lo, r.total, r.s.o.Segment, 0)
	r.startWorkers()
	return nil
}

// mayMend reports whether the failure of a read ahead may have another reason than it seems: a manifest that is wrong about the
// total makes a range impossible, and a service that ignores ranges has to be asked in another way.
func mayMend(err error) bool { return errors.Is(err, errVersion) || errors.Is(err, errStepDown) }

// pin is the version that all segments of a read must have. INVARIANT: once set it never changes.
type pin struct {
	mu   sync.Mutex
	head Head
	ok   bool   // head is set
	want string // a version that the head must have, or ""
}

func (p *pin) expect(version string) { p.want = version }

func (p *pin) set(h Head) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.head, p.ok = h, true
}

// get returns the head, as far as it is known: without one only the version that was expected.
func (p *pin) get() Head {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ok {
		return Head{Version: p.want}
	}
	return p.head
}

// same reports whether h is of the version that is read; the first h decides that.
func (p *pin) same(h Head) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ok {
		return sameVersion(h, p.head)
	}
	p.head, p.ok = h, true
	return p.want == "" || h.Version == "" || h.Version == p.want
}
