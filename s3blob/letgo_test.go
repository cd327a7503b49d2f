package s3blob

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// reading is a context in which a transport goes on reading whenever it is asked for its end.
type reading struct {
	context.Context
	body *wire.Body
}

func (r reading) Err() error {
	_, _ = io.Copy(io.Discard, r.body)
	return nil
}

// A transport may go on with a body after it has failed. What is said not to have been sent whole never is.
func TestWhatWasNotSentWholeNeverWillBe(t *testing.T) {
	st := &sent{}
	st.Body = wire.NewBody(strings.NewReader("12345"), 5)
	st.Enter()
	if _, err := io.ReadFull(st.Body, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	e := fault(reading{t.Context(), st.Body}, errors.New("lost"), st)
	if e.Outcome == blob.NotApplied && st.Body.Complete() {
		t.Errorf("sent whole, and %v", e)
	}
}
