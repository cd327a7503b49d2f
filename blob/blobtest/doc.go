// Package blobtest is the conformance suite of blob.Blob, and faults to put under whatever is built on one.
//
// Whoever writes a store runs the suite in the store's own tests:
//
//	func TestStore(t *testing.T) {
//		blobtest.Run(t, func(t *testing.T) blob.Blob { return mystore.New(t.TempDir()) }, nil)
//	}
//
// Each sentence of the contract is a rule with a stable name and a subtest, such as
// "get/missing-key"; Rules lists them. A failure says which rule is broken and what it says. Config adapts the suite: sizes at which
// the store changes its ways, rules that the server behind it breaks (Deviations), rules that the store does
// not keep yet (Pending), hooks for what no method of blob.Blob can do.
package blobtest
