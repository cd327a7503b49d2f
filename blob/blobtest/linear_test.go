package blobtest

import (
	"math"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

func op(in linInput, out linOutput, call, ret int64) porcupine.Operation {
	return porcupine.Operation{Input: in, Output: out, Call: call, Return: ret}
}

func TestModelTellsLegalHistoriesFromOthers(t *testing.T) {
	create := func(id uint64) linInput { return linInput{op: linCreate, id: id} }
	replace := func(id, expect uint64) linInput { return linInput{op: linReplace, id: id, expect: expect} }
	remove := func(expect uint64) linInput { return linInput{op: linDelete, expect: expect} }
	read := linInput{op: linGet}
	ok, refused, unknown := linOutput{}, linOutput{result: linRefused}, linOutput{result: linUnknown}
	saw := func(id uint64) linOutput { return linOutput{id: id} }
	for name, c := range map[string]struct {
		legal bool
		ops   []porcupine.Operation
	}{
		"create and read":                   {true, []porcupine.Operation{op(create(1), ok, 1, 2), op(read, saw(1), 3, 4)}},
		"a read misses what was created":    {false, []porcupine.Operation{op(create(1), ok, 1, 2), op(read, saw(0), 3, 4)}},
		"two creators win":                  {false, []porcupine.Operation{op(create(1), ok, 1, 4), op(create(2), ok, 2, 3)}},
		"one creator wins":                  {true, []porcupine.Operation{op(create(1), refused, 1, 4), op(create(2), ok, 2, 3)}},
		"nobody is there and one loses":     {false, []porcupine.Operation{op(create(1), refused, 1, 4)}},
		"two replace one version":           {false, []porcupine.Operation{op(create(1), ok, 1, 2), op(replace(2, 1), ok, 3, 6), op(replace(3, 1), ok, 4, 5)}},
		"a chain":                           {true, []porcupine.Operation{op(create(1), ok, 1, 2), op(replace(2, 1), ok, 3, 4), op(replace(3, 2), ok, 5, 6), op(read, saw(3), 7, 8)}},
		"an old version is read":            {false, []porcupine.Operation{op(create(1), ok, 1, 2), op(replace(2, 1), ok, 3, 4), op(read, saw(1), 5, 6)}},
		"delete of a missing key":           {true, []porcupine.Operation{op(remove(1), ok, 1, 2), op(create(1), ok, 3, 4)}},
		"delete of another version":         {false, []porcupine.Operation{op(create(1), ok, 1, 2), op(remove(7), ok, 3, 4)}},
		"delete that did not delete":        {false, []porcupine.Operation{op(create(1), ok, 1, 2), op(remove(1), ok, 3, 4), op(read, saw(1), 5, 6)}},
		"unknown that happened":             {true, []porcupine.Operation{op(create(1), unknown, 1, math.MaxInt64), op(read, saw(1), 3, 4)}},
		"unknown that did not":              {true, []porcupine.Operation{op(create(1), unknown, 1, math.MaxInt64), op(read, saw(0), 3, 4)}},
		"unknown that happened late":        {true, []porcupine.Operation{op(create(1), unknown, 1, math.MaxInt64), op(read, saw(0), 3, 4), op(read, saw(1), 5, 6)}},
		"unknown that happened and did not": {false, []porcupine.Operation{op(create(1), unknown, 1, math.MaxInt64), op(read, saw(1), 3, 4), op(read, saw(0), 5, 6)}},
	} {
		if got := porcupine.CheckOperations(linModel(), c.ops); got != c.legal {
			t.Errorf("%s: legal is %v, want %v:\n%s", name, got, c.legal, describe(c.ops))
		}
	}
}

func TestLinearizableOverSeveralHandlesWithLostReplies(t *testing.T) {
	inner := memblob.New(nil)
	var stores []blob.Blob
	for i := range uint64(3) {
		stores = append(stores, NewFaults(inner,
			Fault{Do: FailAfter, Op: blob.OpSet, Chance: 0.2}, Fault{Do: FailBefore, Chance: 0.1}, Fault{Do: FailAfter, Op: blob.OpDelete, Chance: 0.2},
		).Seed(i+1))
	}
	Linearizable(t, stores, &LinearOptions{Deletes: true, Tolerate: true})
}

func TestAnOutcomeThatLiesIsNotLinearizable(t *testing.T) {
	b := newBroken(memblob.New(nil))
	lose := NewFaults(b.inner, Fault{Do: FailAfter, Op: blob.OpSet, Chance: 0.3})
	b.set = lose.Set
	honest := LinearOptions{Tolerate: true, Seed: 1, Clients: 4}
	if err := honest.check(t.Context(), []blob.Blob{b}); err != nil {
		t.Fatalf("with honest outcomes: %v", err)
	}
	b.set = notApplied(lose.Set)
	for round := range uint64(50) {
		lying := LinearOptions{Tolerate: true, Seed: round + 1, Clients: 4, Prefix: string(rune('a' + round))}
		if err := lying.check(t.Context(), []blob.Blob{b}); err != nil {
			if !strings.Contains(err.Error(), "no order explains") {
				t.Errorf("unexpected text: %v", err)
			}
			return
		}
	}
	t.Error("writes that happened were reported as NotApplied, and no history shows it")
}
