package azblob_test

import (
	"errors"
	"testing"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// A commit that was done, whose reply was lost, and whose object somebody has replaced before it is repeated: the repetition finds none of its
// blocks. That refusal is no proof that nothing happened.
func TestLostCommitThatIsOverwritten(t *testing.T) {
	for name, cond := range map[string]func(blob.Info) blob.Condition{
		"no condition": func(blob.Info) blob.Condition { return blob.Condition{} },
		"if absent":    func(blob.Info) blob.Condition { return blob.IfAbsent() },
		"if version":   func(i blob.Info) blob.Condition { return blob.IfVersion(i.Version) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := fake(t, fakeaz.Options{})
			st := open(t, srv, func(o *azblob.Options) { small(o); o.Restarts = -1 })
			var old blob.Info
			if name == "if version" {
				old = set(t, st, "k", []byte("old"), nil)
			}
			in := srv.Inject(fakehttp.Fault{Op: "PutBlockList", After: fakehttp.Reset, Then: func() { srv.PutBlob("box", "k", []byte("other"), nil) }})
			_, err := st.Set(t.Context(), "k", blob.Bytes(content(2*smallPart)), &blob.SetOptions{If: cond(old)})
			if in.Hits() != 1 {
				t.Fatal("no reply was lost")
			}
			t.Logf("%v, outcome %v\n%s", err, blob.OutcomeOf(err), srv.Log())
			if err != nil && blob.OutcomeOf(err) != blob.Unknown || errors.Is(err, blob.ErrExists) {
				t.Errorf("%v, outcome %v", err, blob.OutcomeOf(err))
			}
		})
	}
}
