package faultsweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

// lostOf reports whether a request of one of the kinds got no answer that tells its fate.
func (r *run) lostOf(kinds ...Kind) bool {
	return slices.ContainsFunc(r.hits, func(h hit) bool { return h.lost && slices.Contains(kinds, h.kind) })
}

// commitLost reports whether a request that changes what is stored got no answer that tells its fate.
func (r *run) commitLost() bool { return r.lostOf(r.op.commits...) }

// mustSucceed reports whether nothing happened that the policy does not mend. The session of a serial upload is the proof of
// its own commit, so that one may be asked about, or repeated, whatever the conditions.
func (r *run) mustSucceed() bool {
	for _, h := range r.hits {
		once := r.op.once && h.lost && slices.Contains(r.op.commits, h.kind) && (h.kind != Commit || !r.Serial)
		if once || h.final || !r.retries {
			return false
		}
	}
	return true
}

func (r *run) judge(s Service, err error) error {
	if errors.Is(err, errWrong) {
		return err
	}
	if err != nil && r.mustSucceed() {
		return errors.New("an error that another attempt would have mended")
	}
	if err == nil && len(r.hits) == 1 && !r.hits[0].mild && !r.mustSucceed() && !r.forgiven() {
		return errors.New("no error, though a request failed that nobody repeated")
	}
	if bad := r.judgeError(err); bad != nil {
		return bad
	}
	if r.op.judge != nil {
		return r.op.judge(s, err, r.commitLost())
	}
	return r.judgeState(s, err)
}

func (r *run) judgeState(s Service, err error) error {
	state := r.op.state(s)
	if r.op.keeps && state == before && s.Kept(theKey) != r.kept {
		state = fmt.Sprintf("%s kept, before it was %s", s.Kept(theKey), r.kept) // half of what is to be undone has been
	}
	unknown := err != nil && blob.OutcomeOf(err) == blob.Unknown
	if unknown {
		r.tally.unknown++
	}
	halfway := unknown && r.op.halfway && state != before
	want := before
	if err == nil && r.op.commits != nil {
		want = after
	}
	switch {
	case unknown && !halfway && !r.commitLost():
		return errors.New("an unknown outcome, though no request was lost that could have had an effect")
	case state != before && state != after && !halfway:
		return fmt.Errorf("the server holds %s", state)
	case !unknown && state != want:
		return fmt.Errorf("the server holds the state %s", state)
	}
	return nil
}

// forgiven reports whether the failure need not be the operation's: of an upload's clean-up, of a request given up, or of one that has a
// substitute; or it may be known that the request was not handled, since the connection ended before the whole body had been handed over.
func (r *run) forgiven() bool {
	h := r.hits[0]
	return h.kind == Abort || r.op.restarts || h.final && slices.Contains(r.Fallbacks, h.op) || r.retries && h.fault.Before != 0
}

// judgeError checks that every error is typed, and of the kind of a mishap that happened.
func (r *run) judgeError(err error) error {
	if err == nil {
		return nil
	}
	if de := (*blob.DeleteError)(nil); errors.As(err, &de) {
		for _, f := range de.Failed {
			if bad := r.judgeError(f.Err); bad != nil {
				return bad
			}
		}
		return nil
	}
	e, ok := err.(*blob.Error) //nolint:errorlint // the outermost must be one
	if !ok || e.Kind == nil || e.Store != r.Store || e.Op == "" || e.Attempts < 1 || e.Attempts > r.policy.WithDefaults().Attempts {
		return fmt.Errorf("badly typed: %w", err)
	}
	for _, h := range r.hits {
		if slices.ContainsFunc(h.kinds, func(k error) bool { return errors.Is(err, k) }) {
			return nil
		}
	}
	return fmt.Errorf("of kind %v", e.Kind)
}

// judgeUploads checks that what is left on the server is named by Close, and that a second Close removes it. Two kinds nobody can
// name or remove: an upload whose id was in a lost reply, and one whose commit may yet happen.
func (r *run) judgeUploads(ctx context.Context, s Service, st blob.Blob, closeErr error) error {
	owed := new(blob.OwedError)
	if closeErr != nil && !errors.As(closeErr, &owed) {
		return fmt.Errorf("close: %w", closeErr)
	}
	orphans := 0
	for _, h := range r.hits {
		if h.lost && (h.kind == Begin || h.kind == Commit) {
			orphans++
		}
	}
	left := 0
	names := slices.Clone(owed.Uploads)
	for _, up := range uploads(s) {
		i := slices.IndexFunc(names, func(name string) bool {
			return name == up.Name || up.Name == "" && strings.HasPrefix(name, up.Key+" ")
		})
		if i < 0 {
			left++
			continue
		}
		names = slices.Delete(names, i, i+1)
	}
	r.tally.orphans += left
	if left > orphans {
		return fmt.Errorf("%d uploads left, at most %d explained, owed: %v", left, orphans, owed.Uploads)
	}
	if closeErr != nil && len(r.hits) < 2 {
		return fmt.Errorf("close: %w", closeErr)
	}
	if err := st.Close(ctx); err != nil {
		return fmt.Errorf("second close: %w", err)
	}
	if n := len(uploads(s)); n > left {
		return fmt.Errorf("%d uploads left after a second close", n)
	}
	return nil
}

// uploads are those that are not another process's.
func uploads(s Service) []Upload {
	return slices.DeleteFunc(s.Uploads(), func(u Upload) bool { return u.Key == leftKey })
}
