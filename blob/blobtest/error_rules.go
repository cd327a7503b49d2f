package blobtest

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

func errorRules() []rule {
	return []rule{
		{name: "errors/not-found", says: "ErrNotFound also matches fs.ErrNotExist, and no other kind.", run: errorsNotFound},
		{name: "errors/typed", says: "Every error is a *blob.Error with Op, Store, Key and a Kind that KindOf finds.", run: errorsTyped},
		{name: "errors/text", says: "The text of an error names the operation and the key in one line.", run: errorsText},
		{name: "errors/no-data", says: "A read returns bytes or an error, never both.", run: errorsNoData},
	}
}

func errorsNotFound(e *env) {
	k := e.key("missing")
	_, err := e.store.Get(e.ctx, k, nil)
	if !errors.Is(err, fs.ErrNotExist) {
		e.Errorf("Get of a missing key does not match fs.ErrNotExist: %v", err)
	}
	_, err = e.store.Stat(e.ctx, k)
	if !errors.Is(err, fs.ErrNotExist) {
		e.Errorf("Stat of a missing key does not match fs.ErrNotExist: %v", err)
	}
	for _, other := range []error{blob.ErrNoContainer, blob.ErrInvalidKey, blob.ErrPrecondition, blob.ErrUnavailable} {
		if errors.Is(err, other) {
			e.Errorf("Stat of a missing key matches %v too", other)
		}
	}
}

// sampleErrors calls f with errors of every kind that is easy to have.
func (e *env) sampleErrors(f func(err error, op, key string, kind error)) {
	k, missing := e.key("x"), e.key("missing")
	e.mustSet(k, e.data("x", 10), nil)
	_, err := e.store.Get(e.ctx, missing, nil)
	f(err, blob.OpGet, missing, blob.ErrNotFound)
	_, err = e.store.Get(e.ctx, k, &blob.GetOptions{Range: blob.From(11)})
	f(err, blob.OpGet, k, blob.ErrInvalidRange)
	_, err = e.store.Get(e.ctx, k, &blob.GetOptions{Range: blob.From(-1)})
	f(err, blob.OpGet, k, blob.ErrInvalidOption)
	_, err = e.store.Get(e.ctx, k, &blob.GetOptions{If: blob.IfVersion("some-version")})
	f(err, blob.OpGet, k, blob.ErrPrecondition)
	_, err = e.store.GetRanges(e.ctx, missing, []blob.Range{{}}, nil)
	f(err, blob.OpGetRanges, missing, blob.ErrNotFound)
	_, err = e.store.Stat(e.ctx, missing)
	f(err, blob.OpStat, missing, blob.ErrNotFound)
	_, err = e.store.Set(e.ctx, k+".", blob.Bytes(nil), nil)
	f(err, blob.OpSet, k+".", blob.ErrInvalidKey)
	_, err = e.store.Set(e.ctx, k, blob.Source{}, nil)
	f(err, blob.OpSet, k, blob.ErrInvalidOption)
	err = e.store.Delete(e.ctx, k, &blob.DeleteOptions{If: blob.IfAbsent()})
	f(err, blob.OpDelete, k, blob.ErrInvalidOption)
	_, err = e.store.Restore(e.ctx, missing)
	f(err, blob.OpRestore, missing, e.restoreKind())
}

func errorsTyped(e *env) {
	e.sampleErrors(func(err error, op, key string, kind error) {
		e.refused(err, op, key, kind)
		if got := blob.KindOf(err); got != kind {
			e.Errorf("%s(%q): KindOf is %v, want %v: %v", op, key, got, kind, err)
		}
	})
}

func errorsText(e *env) {
	e.sampleErrors(func(err error, op, key string, _ error) {
		if err == nil {
			e.Errorf("%s(%q) succeeded", op, key)
			return
		}
		text := err.Error()
		if !strings.Contains(text, op) || !strings.Contains(text, key) || strings.Contains(text, "\n") {
			e.Errorf("%s(%q): the error does not name them in one line: %s", op, key, text)
		}
	})
}

func errorsNoData(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 100), nil)
	for _, o := range []*blob.GetOptions{
		{If: blob.IfVersion("some-version")}, {Want: blob.Want{Size: 99, HasSize: true}},
		{Want: blob.Want{HasCRC32C: true}}, {Range: blob.From(101), Dst: make([]byte, 10)},
	} {
		got, err := e.store.Get(e.ctx, k, o)
		if err == nil || len(got.Data) != 0 {
			e.Errorf("Get %+v returns %d bytes, %v", *o, len(got.Data), err)
		}
		if o.Dst != nil {
			continue
		}
		o.Range = blob.Range{}
		os, err := e.store.GetRanges(e.ctx, k, []blob.Range{{}, blob.Span(0, 5)}, o)
		if err == nil || len(os) != 0 {
			e.Errorf("GetRanges %+v returns %d objects, %v", *o, len(os), err)
		}
	}
}
