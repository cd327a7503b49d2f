// Package blobtest is the conformance suite of blob.Blob, and faults to put under whatever is built on one.
//
// # The suite
//
// Whoever writes a store runs the suite in the store's own tests:
//
//	func TestConformance(t *testing.T) {
//		blobtest.Run(t, func(t *testing.T) blob.Blob { return mystore.New(t.TempDir()) }, nil)
//	}
//
// Each sentence of the contract is a rule with a stable name and a subtest, such as "get/missing-key"; Rules
// lists them. A failure says which rule is broken and what it says. A rule whose sentence applies to other
// stores only, or needs a hook of Config that is nil, is logged as not run.
//
// Config adapts the suite to the store: sizes at which it changes its ways, hooks for what no method of blob.Blob can do, and
// the lists of rules that fail and may. They are lists of names, and they are checked: an excused rule runs all the same, and fails the test once it
// holds. Deviations are for good, of the server behind the store; Pending rules must fail with blob.ErrUnsupported; Racy ones, which the
// server breaks only now and then, are the one kind whose result is logged instead. A table
// of cases, such as the keys of "keys/round-trip", is a rule whose cases can be excused one by one, so that one of them hides no other.
//
// The suite needs no more than blob.Blob, so it runs over decorators and whole stacks just as well. It uses real time
// for its limits only, and asserts no durations.
//
// # Linearizability
//
// Linearizable checks a history of concurrent operations on several handles of one store against a model. The suite has a
// short run of it; a store with locks or caches of its own deserves longer ones.
//
// # Faults
//
// NewFaults wraps a Blob and makes calls go wrong by a plan: before they reach it, after they have happened (a
// lost reply), throttled, delayed, cut short or with a bit changed. What goes wrong depends on the plan and its seed alone, so
// a run can be repeated, and Replay turns what happened into a plan.
package blobtest
