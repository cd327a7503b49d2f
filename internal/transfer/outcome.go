package transfer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/wholeblob/wholeblob/blob"
)

// errSpent says that no further attempt with the same upload can succeed, but one with a new upload may.
var errSpent = errors.New("the upload is used up")

// spent ends the attempts of a request if its error is of one of kinds, which tell that the upload is used up. That counts as a
// conflict.
func spent(a attempt, err error, kinds ...error) error {
	e, ok := err.(*blob.Error) //nolint:errorlint // Requests return it unwrapped
	if !ok || !slices.Contains(kinds, e.Kind) {
		return err
	}
	a.Final()
	c := *e
	c.Kind, c.Err = blob.ErrConflict, errSpent
	if e.Err != nil {
		c.Err = fmt.Errorf("%w: %w", errSpent, e.Err)
	}
	return &c
}

// unknown reports whether err leaves open what became of a mutation.
func unknown(err error) bool { return err != nil && blob.OutcomeOf(err) == blob.Unknown }

// notApplied marks an error of a request that cannot make the object visible.
func notApplied(err error) error { return withOutcome(err, blob.NotApplied) }

// inDoubt marks the error of an operation of which an earlier request may have had, or has had, an effect.
func inDoubt(err error) error { return withOutcome(err, blob.Unknown) }

// withOutcome returns err with that outcome. Of an error that carries both a kind and that of a context the kind counts, as in blob.KindOf.
func withOutcome(err error, o blob.Outcome) error {
	if err == nil {
		return nil
	}
	e, ok := err.(*blob.Error) //nolint:errorlint // only the outermost carries the outcome
	if !ok {
		return blob.Fail("", "", "", o, err)
	}
	c := *e
	c.Outcome = o
	return &c
}
