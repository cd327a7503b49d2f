package transfer

import (
	"errors"

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
