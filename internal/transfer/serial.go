package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// serial is an upload whose parts, here called chunks, go in order, one at a time. The last chunk is sent by the commit, and sending it
// is the commit: a source that fails before never makes an object.
//
// What counts is what the service says that it holds (received), not what was sent: it may keep less of a chunk. After an
// attempt of which nobody knows what became, the next one first asks. That brings one of these answers:
//
//   - More than before: progress, and the sending goes on from there.
//   - All of it, committed: success. The session itself is the proof that the write is ours, since it commits once; so a lost reply
//     can be made good for a conditional write too, and one that is to happen at most once.
//   - Less than it has confirmed, more than it was sent, or no such session: the upload is used up. See multipart.
//
// Requests are bounded by the policy: an attempt is a question, if one is due, and the chunk if that is answered. So without progress a
// chunk is sent at most Policy.Attempts times, and asked about at most as often.
type serial struct {
	w     *write
	up    Upload
	total int64
	size  int64 // of a chunk, but for the last
	last  int64 // where the last chunk begins

	number   int
	received int64   // from the start, as the service has confirmed
	sent     int64   // from the start, that the service can have
	tries    int     // requests with bytes since received grew
	ask      bool    // what became of the last one is not known
	whole    bool    // a last chunk was handed over whole: the service can have all bytes
	doubt    bool    // an attempt of the commit may have happened, or may yet
	sum      running // of the bytes from the start
}

// errEarly says that a service has made an object of an upload whose last chunk it has not got.
var errEarly = errors.New("the service has committed an upload that is not complete")

// errBehind says that the service holds all bytes and has not committed them yet. Asking again is all one can do.
var errBehind = errors.New("the service holds all bytes, but has not committed them")

func newSerial(w *write, up Upload) *serial {
	u := &serial{w: w, up: up, total: w.src.Size(), size: w.partSize(), sum: running{src: w.src}}
	u.last = max(0, ceilDiv(u.total, u.size)-1) * u.size
	return u
}

// send implements sender: all chunks but the last.
func (u *serial) send(ctx context.Context) error {
	for {
		end, ok := u.next()
		if !ok {
			return lastChunk(u.received, u.total, u.size)
		}
		if err := u.chunk(ctx, end); err != nil {
			return err
		}
	}
}

// next returns where the chunk at received ends: on the next border, so that what follows is as it would have been. The length of a
// chunk is what services ask to be a multiple; one that keeps an odd number of bytes gets a longer chunk. ok is false if
// what is left is for the commit.
func (u *serial) next() (end int64, ok bool) {
	if u.received >= u.last {
		return u.total, false
	}
	end = min(u.last, (u.received/u.size+1)*u.size)
	if m := u.w.s.traits.PartMultiple; m > 0 {
		end = u.received + ceilDiv(end-u.received, m)*m
	}
	return end, end < u.total
}

// lastChunk is the barrier before the commit: what the service has confirmed and the last chunk are the whole, and that chunk is not
// empty, but for an object that is.
func lastChunk(received, total, size int64) error {
	if rest := total - received; received < 0 || rest < 0 || rest == 0 && total > 0 || rest >= 2*size {
		return badReply(fmt.Errorf("%w: the service holds %d bytes of %d before a last chunk of at most %d", blob.ErrCorrupt, received, total, size))
	}
	return nil
}

// chunk brings the service to hold the bytes up to end.
func (u *serial) chunk(ctx context.Context, end int64) error {
	if err := u.sum.extend(ctx, u.w, end); err != nil {
		return err
	}
	u.number++
	c := call{op: blob.OpSet, key: u.w.key, bytes: end - u.received, effect: retry.None}
	return u.w.s.do(ctx, c, func(ctx context.Context, a attempt) error {
		if u.ask {
			if _, err := u.progress(ctx, a); err != nil {
				return err
			}
		}
		for u.received < end { // a service that keeps a piece gets the rest at once
			if e, ok := u.next(); !ok || e != end {
				return nil // it keeps odd pieces: the rest is another chunk
			}
			if err := u.part(ctx, a, end); err != nil {
				return err
			}
		}
		return nil
	})
}

func (u *serial) part(ctx context.Context, a attempt, end int64) error {
	req := u.request(a, end)
	p, err := u.w.s.r.Part(ctx, u.up, req)
	if err != nil {
		return u.failed(a, err, blob.ErrNotFound)
	}
	u.ask = false
	if p.Received == u.received {
		err := fmt.Errorf("the service kept nothing of a chunk of %d bytes", req.Size)
		return u.failed(a, &blob.Error{Kind: blob.ErrUnavailable, Outcome: blob.NotApplied, Err: err})
	}
	return u.confirmed(a, p.Received)
}

// request is the chunk from what is received up to end. What becomes of it is not known until an answer says so.
func (u *serial) request(a attempt, end int64) PartRequest {
	a.w.sent(0) // the wait for an answer begins anew: another request of this attempt may have come before
	u.ask, u.sent = true, max(u.sent, end)
	u.tries++
	n := end - u.received
	return PartRequest{Number: u.number, Off: u.received, Size: n, Total: u.total, Body: a.w.body(u.w.src, u.received, n)}
}

// failed is the error of a request with bytes. An attempt that learned of progress before it failed does not count for the loop, but
// its chunk does: it is sent as often as the policy says, and no more.
func (u *serial) failed(a attempt, err error, kinds ...error) error {
	if u.tries >= u.w.s.o.Policy.Attempts {
		a.Final()
	}
	return spent(a, err, kinds...)
}

// confirmed notes what the service says that it holds.
func (u *serial) confirmed(a attempt, received int64) error {
	if received < u.received || received > u.sent {
		err := fmt.Errorf("the service says that it holds %d bytes, had confirmed %d, and was sent %d", received, u.received, u.sent)
		return spent(a, &blob.Error{Kind: blob.ErrNotFound, Outcome: blob.NotApplied, Err: err}, blob.ErrNotFound)
	}
	if received > u.received {
		a.Progress()
		u.received, u.tries = received, 0
	}
	return nil
}

// progress asks what the service holds, and notes the answer. Asking applies nothing, unless the service has all bytes: then
// the question may commit them.
func (u *serial) progress(ctx context.Context, a attempt) (Progress, error) {
	a.w.sent(0)
	p, err := u.w.s.r.Progress(ctx, u.up, u.total)
	err = onKey(u.w.o.If, err)
	switch {
	case err != nil && u.whole:
		return p, spent(a, err, blob.ErrNotFound)
	case err != nil:
		return p, notApplied(spent(a, err, blob.ErrNotFound))
	case p.Done && !u.whole:
		a.Final()
		return p, &blob.Error{Kind: blob.ErrCorrupt, Err: fmt.Errorf("%w: of %d bytes it was sent %d", errEarly, u.total, u.sent)}
	case !p.Done:
		err = u.confirmed(a, p.Received)
	}
	u.ask = false
	return p, err
}

// onKey turns the refusal of a question that would have committed into what the write's condition means; the question itself has none.
func onKey(cond blob.Condition, err error) error {
	e, ok := err.(*blob.Error) //nolint:errorlint // Requests return it unwrapped
	if !ok || e.Kind != blob.ErrPrecondition || !cond.Absent() {
		return err
	}
	c := *e
	c.Kind = blob.ErrExists
	return &c
}

// commit implements sender: the last chunk. It may be sent again whatever the write's conditions, since the session cannot commit twice.
func (u *serial) commit(ctx context.Context) (done Written, err error) {
	if err := u.sum.extend(ctx, u.w, u.total); err != nil {
		return done, notApplied(err)
	}
	u.number++
	c := call{op: blob.OpSet, key: u.w.key, bytes: u.total - u.received, effect: retry.AtLeastOnce}
	err = u.w.s.do(ctx, c, func(ctx context.Context, a attempt) error {
		done, err = u.tryCommit(ctx, a)
		u.doubt = u.doubt || unknown(err)
		return err
	})
	return done, err
}

func (u *serial) tryCommit(ctx context.Context, a attempt) (Written, error) {
	if u.ask {
		if p, err := u.progress(ctx, a); err != nil || p.Done {
			return p.Written, err
		}
	}
	if u.received == u.total && u.total > 0 { // never an empty last chunk
		u.ask = true
		return Written{}, &blob.Error{Kind: blob.ErrUnavailable, Err: errBehind}
	}
	done, err := u.w.s.r.Commit(ctx, u.up, CommitRequest{
		Last: u.request(a, u.total), Size: u.total, Cond: u.w.o.If, Sum: u.sum.of(u.w.s.traits, u.total), Meta: u.w.meta,
	})
	if err == nil {
		return done, nil
	}
	u.whole = u.whole || u.total == 0 || a.w.whole.Load()
	if u.doubt && (errors.Is(err, blob.ErrExists) || errors.Is(err, blob.ErrPrecondition)) {
		// An attempt before may have landed only now, and a service may compare conditions first: it must not be told of its own object.
		if p, lost := u.progress(ctx, a); lost != nil || p.Done {
			return p.Written, lost
		}
	}
	return Written{}, u.failed(a, err, blob.ErrNotFound, blob.ErrConflict)
}
