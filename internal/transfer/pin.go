package transfer

import "sync"

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
		ok := sameVersion(h, p.head)
		if ok && h.HasCRC32C && h.Version != "" && h.Version == p.head.Version { // only the version itself vouches for the sum of another reply
			p.head.CRC32C, p.head.HasCRC32C = h.CRC32C, true
		}
		return ok
	}
	p.head, p.ok = h, true
	return p.want == "" || h.Version == "" || h.Version == p.want
}

// sameVersion compares what two replies say. Without versions in both, the time of the last change stands in; without
// that either, only the total and the length protect the read. Two sums are two contents in any case.
func sameVersion(a, b Head) bool {
	if a.HasCRC32C && b.HasCRC32C && a.CRC32C != b.CRC32C {
		return false
	}
	if a.Version != "" && b.Version != "" {
		return a.Version == b.Version
	}
	return a.ModTime.IsZero() || b.ModTime.IsZero() || a.ModTime.Equal(b.ModTime)
}
