package faultsweep

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// Commits shows that a commit with a good status that does not say it is done is no success (apache/arrow-rs-object-store #122): either
// the store finds out, or it says that it does not know; and it never aborts an upload whose commit may have been done.
func Commits(t *testing.T, target *Target) {
	for name, f := range target.NoAnswers {
		for _, done := range []bool{false, true} {
			for _, times := range []int{1, -1} {
				for _, cond := range []blob.Condition{{}, blob.IfAbsent()} {
					t.Run(fmt.Sprintf("%s/done %t/%d times/%v", name, done, times, cond), func(t *testing.T) {
						target.noAnswer(t, f, done, times, cond)
					})
				}
			}
		}
	}
}

func (target *Target) noAnswer(t *testing.T, f fakehttp.Fault, done bool, times int, cond blob.Condition) {
	s := target.start(t, Setup{})
	reply := *f.Reply
	reply.Commit = done
	s.HTTP().Inject(fakehttp.Fault{Match: target.match(Commit), Times: times, Reply: &reply, Shape: f.Shape})
	data := content(3 * target.PartSize)
	store, st := target.openBoth(t, s, Config{})
	info, err := st.Set(t.Context(), theKey, blob.Bytes(data), &blob.SetOptions{If: cond})
	s.HTTP().ClearFaults()
	log := s.HTTP().Log()
	if target.Over != nil {
		if bad := Agree(t.Context(), st, store, theKey); bad != nil {
			t.Errorf("after %v: %v", err, bad)
		}
	}
	obj, there := s.Object(theKey)
	switch {
	case err == nil && (!there || obj.Version != info.Version || string(obj.Data) != string(data)):
		t.Errorf("success, there: %t\n%s", there, log)
	case err != nil && (!errors.Is(err, blob.ErrUnavailable) || blob.OutcomeOf(err) != blob.Unknown || there != done):
		t.Errorf("%v, outcome %v, there: %t\n%s", err, blob.OutcomeOf(err), there, log)
	case err != nil && times == 1 && target.Serial:
		t.Errorf("an error that another attempt would have mended: %v\n%s", err, log)
	}
	if n := target.count(log, Commit); n > 3 || n > 1 && !cond.IsZero() && !target.Serial {
		t.Errorf("%d commits", n)
	}
	if n := target.count(log, Abort); n > 0 {
		t.Error("an upload was aborted whose commit may have been done")
	}
}

// Pages shows that pages of a listing which lead nowhere are errors and not its end, and that an empty page which leads on is not its end
// (kvcache-ai/Mooncake #2782).
func Pages(t *testing.T, target *Target) {
	want := []string{"00", "01", "02", "03", "04"}
	for name, odd := range target.Pages {
		s := target.start(t, Setup{PageSize: 2})
		for _, k := range want {
			s.Put(k, nil, nil)
		}
		s.HTTP().Inject(fakehttp.Fault{Match: target.match(List), Times: odd.Times, Shape: fakehttp.Shape{List: odd.Page}})
		var got []string
		var last error
		for info, err := range target.open(t, s, Config{}).List(t.Context(), "", nil) {
			if last = err; err == nil {
				got = append(got, info.Key)
			}
		}
		if odd.Want == nil && (last != nil || !slices.Equal(got, want)) || odd.Want != nil && !errors.Is(last, odd.Want) {
			t.Errorf("%s: %q, %v\n%s", name, got, last, s.HTTP().Log())
		}
		if n := len(s.HTTP().Log()); n > 6 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}
