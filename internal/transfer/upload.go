package transfer

import (
	"context"
	"errors"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// sender brings the bytes of a source to an upload: parallel or serial, as the service has it.
type sender interface {
	// send returns when nothing is in flight any more. After nil the service has accepted every byte but those that
	// the commit carries.
	send(ctx context.Context) error
	// commit makes the object visible. Its outcome is that of the upload.
	commit(ctx context.Context) (Written, error)
}

// multipart sends the source in parts. A commit that met another operation in flight has used up its upload, and so has
// one whose upload somebody aborted: the whole is sent again, a bounded number of times ("CompleteMultipartUpload", Amazon S3
// API Reference, on 409; "Put Block List" of Azure, whose blocks another writer's commit discards; "Resumable uploads" of Cloud
// Storage, on 404 and 410).
func (w *write) multipart(ctx context.Context) (Written, error) {
	most := min(w.s.o.Restarts, w.s.o.Policy.Attempts-1)
	doubt := false // a commit before may have happened, or may yet
	for restarts := 0; ; restarts++ {
		done, err := w.upload(ctx)
		if err != nil && doubt {
			err = inDoubt(err)
		}
		again := blob.OutcomeOf(err) == blob.NotApplied || retry.Mutation(w.o.If, w.o.AtMostOnce) == retry.AtLeastOnce
		if !errors.Is(err, errSpent) || !again || restarts >= most || ctx.Err() != nil {
			return done, err
		}
		doubt = doubt || unknown(err)
	}
}

// upload is one try. INVARIANT: commit is reached only after the service has accepted every byte of the source but those that the
// commit itself carries, and an upload that did not reach it is aborted, after its last part has ended.
func (w *write) upload(ctx context.Context) (Written, error) {
	up, err := w.begin(ctx)
	if err != nil {
		return Written{}, err
	}
	var u sender = &parallel{w: w, up: up}
	if w.s.traits.SerialParts {
		u = newSerial(w, up)
	}
	switch err := u.send(ctx); {
	case errors.Is(err, errEarly):
		w.s.clean.doubt(up)
		return Written{}, inDoubt(err)
	case err != nil:
		w.s.clean.abort(ctx, up)
		return Written{}, notApplied(err)
	}
	done, err := u.commit(ctx)
	switch {
	case err == nil:
		w.s.clean.ended(up)
	case blob.OutcomeOf(err) == blob.NotApplied:
		w.s.clean.abort(ctx, up)
	default:
		w.s.clean.doubt(up) // no abort while the commit may still land
	}
	return done, err
}

// begin may be repeated after a lost reply: the upload nobody knows holds no bytes, and nothing is visible of it.
func (w *write) begin(ctx context.Context) (up Upload, err error) {
	over := w.s.clean.beginning(w.s.full(w.key))
	defer over()
	err = w.s.do(ctx, call{op: blob.OpSet, key: w.key, effect: retry.None}, func(ctx context.Context, _ attempt) error {
		up, err = w.s.r.Begin(ctx, BeginRequest{Key: w.s.full(w.key), Size: w.src.Size(), Cond: w.o.If, Meta: w.meta})
		if unknown(err) && w.s.traits.sweeps() {
			w.s.o.Logger.Warn("an upload may have begun whose id was lost: only a sweep finds it", "key", w.key, "error", err)
		}
		return err
	})
	if err == nil {
		w.s.clean.begun(up)
	}
	return up, notApplied(err)
}

// partSize returns the size of all parts but the last.
func (w *write) partSize() int64 { return w.s.traits.partSize(w.src.Size(), w.s.o.PartSize) }
