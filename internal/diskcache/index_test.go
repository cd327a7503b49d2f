package diskcache

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestFindIsThatOfLookingAtAllRuns(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		o := &object{}
		for range 1 + rnd.IntN(30) {
			o.insert(&run{off: rnd.Int64N(100), length: 1 + rnd.Int64N(1+rnd.Int64N(60)), dead: rnd.IntN(5) == 0})
		}
		if rnd.IntN(2) == 0 { // as after a removal, and as after a start
			i := rnd.IntN(len(o.runs))
			o.runs = slices.Delete(o.runs, i, i+1)
		} else {
			o.reached(0)
		}
		for off := range int64(170) {
			end := int64(-1)
			for _, r := range o.runs {
				if !r.dead && r.off <= off && off < r.end() {
					end = max(end, r.end())
				}
			}
			got := int64(-1)
			if r := o.find(off); r != nil {
				got = r.end()
			}
			if got != end {
				t.Fatalf("at %d: a run to %d, want %d", off, got, end)
			}
		}
	}
	if o := (&object{}); o.find(0) != nil {
		t.Error("a run of nothing")
	}
	empty := &object{}
	empty.insert(&run{})
	if empty.find(0) == nil {
		t.Error("the run of an empty object is not found")
	}
}
