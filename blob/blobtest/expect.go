package blobtest

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

// key returns a key of this rule's own.
func (e *env) key(name string) string { return e.prefix + name }

// mustSet stores data and returns the Info of Set.
func (e *env) mustSet(key string, data []byte, opts *blob.SetOptions) blob.Info {
	info, err := e.store.Set(e.ctx, key, blob.Bytes(data), opts)
	if err != nil {
		e.Fatalf("Set(%q) of %d bytes: %v", key, len(data), err)
	}
	return info
}

func (e *env) mustGet(key string, opts *blob.GetOptions) blob.Object {
	o, err := e.store.Get(e.ctx, key, opts)
	if err != nil {
		e.Fatalf("Get(%q): %v", key, err)
	}
	return o
}

func (e *env) mustStat(key string) blob.Info {
	info, err := e.store.Stat(e.ctx, key)
	if err != nil {
		e.Fatalf("Stat(%q): %v", key, err)
	}
	return info
}

func (e *env) mustDelete(key string) {
	if err := e.store.Delete(e.ctx, key, nil); err != nil {
		e.Fatalf("Delete(%q): %v", key, err)
	}
}

// holds checks that key has exactly the content want.
func (e *env) holds(key string, want []byte) {
	o, err := e.store.Get(e.ctx, key, nil)
	if err != nil {
		e.Errorf("Get(%q) of an object of %d bytes: %v", key, len(want), err)
		return
	}
	e.isPart(o, key, want, 0, int64(len(want)))
}

// absent checks that key does not exist, for Get and Stat alike.
func (e *env) absent(key string) {
	_, err := e.store.Get(e.ctx, key, nil)
	e.refused(err, blob.OpGet, key, blob.ErrNotFound)
	_, err = e.store.Stat(e.ctx, key)
	e.refused(err, blob.OpStat, key, blob.ErrNotFound)
}

// isPart checks that o is [off, off+n) of the object key, whose whole content is.
func (e *env) isPart(o blob.Object, key string, whole []byte, off, n int64) {
	want := whole[off : off+n]
	if !bytes.Equal(o.Data, want) {
		e.Errorf("Get(%q): data of [%d, %d): %s", key, off, off+n, diff(o.Data, want))
	}
	if o.Offset != off {
		e.Errorf("Get(%q): Offset is %d, want %d", key, o.Offset, off)
	}
	if o.Size != int64(len(whole)) {
		e.Errorf("Get(%q): Info.Size is %d, want the object's total %d", key, o.Size, len(whole))
	}
	if o.HasCRC32C && o.CRC32C != castagnoli(whole) {
		e.Errorf("Get(%q): Info.CRC32C is %08x, the object's is %08x", key, o.CRC32C, castagnoli(whole))
	}
	e.isInfo(o.Info, key, int64(len(whole)))
}

// isInfo checks what every Info of an object has.
func (e *env) isInfo(info blob.Info, key string, size int64) {
	if info.Key != key {
		e.Errorf("Info.Key is %q, want %q", info.Key, key)
	}
	if info.Size != size {
		e.Errorf("%q: Info.Size is %d, want %d", key, info.Size, size)
	}
	if info.IsPrefix {
		e.Errorf("%q: Info.IsPrefix is set on an object", key)
	}
	if info.Version == "" && e.caps.Conditions {
		e.Errorf("%q: Info.Version is empty on a store that honours conditions", key)
	}
	for name := range info.Metadata {
		if strings.HasPrefix(strings.ToLower(name), "wholeblob") {
			e.Errorf("%q: metadata %q is the library's own and must be hidden", key, name)
		}
	}
}

// refused checks that err is the *blob.Error of an operation that did not happen, of the given kind (a
// sentinel of package blob, or an error that it must wrap).
func (e *env) refused(err error, op, key string, kind error) {
	e.hasKind(err, op, key, kind)
	if err != nil && blob.OutcomeOf(err) != blob.NotApplied {
		e.Errorf("%s(%q): the outcome is %v, want %v: %v", op, key, blob.OutcomeOf(err), blob.NotApplied, err)
	}
}

// hasKind is refused without a demand on the outcome.
func (e *env) hasKind(err error, op, key string, kind error) {
	if err == nil {
		e.Errorf("%s(%q) succeeded, want %v", op, key, kind)
		return
	}
	if !errors.Is(err, kind) {
		e.Errorf("%s(%q): error is %v, want one that matches %q", op, key, err, kind)
		return
	}
	e.isTyped(err, op, key)
}

// isTyped checks the fields of a *blob.Error.
func (e *env) isTyped(err error, op, key string) {
	var t *blob.Error
	if !errors.As(err, &t) {
		e.Errorf("%s(%q): the error is a %T, want a *blob.Error: %v", op, key, err, err)
		return
	}
	if t.Op != op {
		e.Errorf("%s(%q): Error.Op is %q: %v", op, key, t.Op, err)
	}
	if t.Key != key {
		e.Errorf("%s(%q): Error.Key is %q: %v", op, key, t.Key, err)
	}
	if t.Store != e.caps.Store {
		e.Errorf("%s(%q): Error.Store is %q, want %q as in Capabilities: %v", op, key, t.Store, e.caps.Store, err)
	}
}

// list returns what a listing yields and the error it ends in, and checks what holds for every listing: an error
// is the last element and comes with a zero Info.
func (e *env) list(ctx context.Context, prefix string, opts *blob.ListOptions) (infos []blob.Info, err error) {
	for info, ierr := range e.store.List(ctx, prefix, opts) {
		if err != nil {
			e.Errorf("List(%q): an element after the error %v: %q, %v", prefix, err, info.Key, ierr)
			return infos, err
		}
		if ierr != nil {
			if !isZeroInfo(info) {
				e.Errorf("List(%q): Info %+v beside the error %v, want a zero Info", prefix, info, ierr)
			}
			err = ierr
			continue
		}
		infos = append(infos, info)
		if len(infos) > 1<<20 {
			e.Fatalf("List(%q) does not end: %d elements so far", prefix, len(infos))
		}
	}
	return infos, err
}

func isZeroInfo(i blob.Info) bool {
	return i.Key == "" && i.Size == 0 && i.Version == "" && i.ModTime.IsZero() && len(i.Metadata) == 0 &&
		i.ContentType == "" && i.CRC32C == 0 && !i.HasCRC32C && !i.IsPrefix
}

// keys returns the keys that a listing of prefix yields, which are cut off at the front by the rule's own prefix.
func (e *env) keys(prefix string, opts *blob.ListOptions) []string {
	infos, err := e.list(e.ctx, prefix, opts)
	if err != nil {
		e.Fatalf("List(%q): %v", prefix, err)
	}
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = strings.TrimPrefix(info.Key, e.prefix)
	}
	return names
}

// noRequests checks that f makes the store send no request, where that can be counted.
func (e *env) noRequests(what string, f func()) { e.requests(what, 0, f) }

// requests checks that f makes the store send at most n requests, where that can be counted.
func (e *env) requests(what string, n int64, f func()) {
	if e.Requests == nil {
		f()
		return
	}
	before := e.Requests(e.store)
	f()
	if got := e.Requests(e.store) - before; got > n {
		e.Errorf("%s: %d requests, want at most %d", what, got, n)
	}
}
