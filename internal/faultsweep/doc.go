// Package faultsweep proves the promises of a cloud store by failing its requests, one by one and in every way, on the fake of its
// service. It is test support: a store hands over a [Target] and calls the functions of this package from its tests.
//
// The promise is the same for every store. Whichever request of whichever operation fails, and however: the operation ends in the
// right result, or in an error that says what is known; nothing half-written is ever visible; no upload is left that Close does
// not name; and no goroutine, connection or request outlives Close. An error that another attempt would have mended is a
// fault too, and so is success where nobody repeated what had failed.
//
// [Sweep], [SweepTCP] and [SweepPairs] fail request i, for i = 0, 1, 2 ... until the operation comes to its end before. The others look
// at one thing each: [Bodies], [Commits], [Changes], [Pages], [Leaks], [Attempts].
//
// With a [Target.Over], a cache in front of the store, the same holds of the whole, and more: after whatever failed, every read says
// what the store says ([Agree]). [Calls] is the sweep for stores without requests: it fails what a decorator calls. [Stack] and [Tiers] are
// the stacks that are swept.
//
// Targets differ in what their services have: parts in any order or one after the other, an abort or none, a batch of deletes or none,
// something that can be restored or nothing. A Target says so, and names the requests; see [Kind].
package faultsweep
