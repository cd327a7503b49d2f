package blobtest

import "github.com/wholeblob/wholeblob/blob"

func linearRules() []rule {
	return []rule{
		{name: "linear/sets", says: "Conditional Sets and reads are linearizable.", needs: needsConditions, run: func(e *env) { e.linear(false) }},
		{name: "linear/sets-and-deletes", says: "Conditional Sets, conditional Deletes and reads are linearizable.", needs: needsConditions, run: func(e *env) { e.linear(true) }},
	}
}

func (e *env) linear(deletes bool) {
	for round := range uint64(2) {
		o := LinearOptions{
			Prefix: e.key(string(rune('a'+round))) + "/", Clients: min(e.Racers, 8), Ops: 25, Size: 2*e.PartSize + 1,
			Deletes: deletes, Seed: e.Seed + round,
		}
		if err := o.check(e.ctx, []blob.Blob{e.store}); err != nil {
			e.Errorf("%v", err)
		}
	}
}
