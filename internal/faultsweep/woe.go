package faultsweep

import (
	"context"
	"errors"
	"hash/crc32"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
)

// errWoe is the value of the panics of a store in woe.
var errWoe = errors.New("faultsweep: a panic on purpose")

// woe is a way in which a call of a store fails: as do says, by a lie, or, without both, by a panic when it has been done.
type woe struct {
	name string
	do   blobtest.Action
	lie  func(*blob.Object) // changes the answer to a read
	// Some lies can be told from the truth only if a version was asked for, or if all of an object came.
	pinned, whole bool
}

func (w woe) panics() bool { return w.do == blobtest.Delay || w.do == 0 && w.lie == nil }

// woes are all of them. The first hits every call. A lie that nobody could see is none of them: bytes changed without a checksum, or an older version where
// any will do.
func woes() []woe {
	return []woe{
		{name: "fails before", do: blobtest.FailBefore},
		{name: "throttles", do: blobtest.Throttle},
		{name: "fails after", do: blobtest.FailAfter},
		{name: "panics before", do: blobtest.Delay},
		{name: "panics after"},
		{name: "short", lie: func(o *blob.Object) { o.Data = o.Data[:max(0, len(o.Data)-1)] }},
		{name: "empty", lie: func(o *blob.Object) { o.Data = nil }},
		{name: "long", lie: func(o *blob.Object) { o.Data = append(o.Data[:len(o.Data):len(o.Data)], 0) }},
		{name: "from elsewhere", lie: func(o *blob.Object) { o.Offset++ }},
		{name: "of another key", lie: func(o *blob.Object) { o.Key = otherKey }},
		{name: "without a version", lie: func(o *blob.Object) { o.Version = "" }},
		{name: "other than its checksum", whole: true, lie: func(o *blob.Object) {
			o.CRC32C, o.HasCRC32C = crc32.Checksum(o.Data, crc32.MakeTable(crc32.Castagnoli)), true
			o.Data = append([]byte{^o.Data[0]}, o.Data[1:]...)
		}},
		{name: "of another version", pinned: true, lie: func(o *blob.Object) { o.Version += "x" }},
		{name: "of another size", pinned: true, lie: func(o *blob.Object) { o.Size++ }},
	}
}

// wreck is a store of which one call goes wrong while it is armed.
type wreck struct {
	*blobtest.Faulty
	woe   woe
	at    int64
	armed atomic.Bool
	n     atomic.Int64
	hit   atomic.Bool
}

// wreck makes the i-th call of st go wrong.
func (w woe) wreck(st blob.Blob, i int) *wreck {
	k := &wreck{woe: w, at: int64(i)}
	fault := blobtest.Fault{Do: w.do, Key: func(string) bool { return k.strikes() }}
	if w.do == blobtest.Delay {
		fault.Wait = func(context.Context, string, string) { panic(errWoe) }
	}
	if w.do == 0 {
		fault.Key = func(string) bool { return false }
	}
	k.Faulty = blobtest.NewFaults(st, fault)
	return k
}

// strikes counts a call, and reports whether it is the one.
func (k *wreck) strikes() bool {
	if !k.armed.Load() || k.n.Add(1) != k.at {
		return false
	}
	k.hit.Store(true)
	return true
}

// looks is how many calls read makes that ask the store for an object.
func (k *wreck) looks(read func()) int {
	before := k.Calls(blob.OpStat) + k.Calls(blob.OpGet)
	read()
	return k.Calls(blob.OpStat) + k.Calls(blob.OpGet) - before
}

func sum(data []byte) uint32 { return crc32.ChecksumIEEE(data) }

// lies changes an answer to a read, and tells no lie about nothing.
func (k *wreck) lies(obj *blob.Object, cond blob.Condition) {
	_, pinned := cond.Version()
	if k.woe.lie == nil || len(obj.Data) == 0 || k.woe.pinned && !pinned || k.woe.whole && int64(len(obj.Data)) < obj.Size {
		return
	}
	if k.strikes() {
		k.woe.lie(obj)
	}
}

// Get implements blob.Blob.
func (k *wreck) Get(ctx context.Context, key string, o *blob.GetOptions) (blob.Object, error) {
	obj, err := k.Faulty.Get(ctx, key, o)
	if err == nil && o != nil {
		k.lies(&obj, o.If)
	}
	return obj, err
}

// panicsAfter ends a call that has been done.
func (k *wreck) panicsAfter() {
	if k.woe.do == 0 && k.woe.lie == nil && k.strikes() {
		panic(errWoe)
	}
}

// Set implements blob.Blob.
func (k *wreck) Set(ctx context.Context, key string, src blob.Source, o *blob.SetOptions) (blob.Info, error) {
	defer k.panicsAfter()
	return k.Faulty.Set(ctx, key, src, o)
}

// Delete implements blob.Blob.
func (k *wreck) Delete(ctx context.Context, key string, o *blob.DeleteOptions) error {
	defer k.panicsAfter()
	return k.Faulty.Delete(ctx, key, o)
}

// DeleteAll implements blob.Blob.
func (k *wreck) DeleteAll(ctx context.Context, keys []string) error {
	defer k.panicsAfter()
	return k.Faulty.DeleteAll(ctx, keys)
}

// Restore implements blob.Blob.
func (k *wreck) Restore(ctx context.Context, key string) (blob.Info, error) {
	defer k.panicsAfter()
	return k.Faulty.Restore(ctx, key)
}
