package blobtest

import (
	"bytes"
	"fmt"
	"io"
	"testing/iotest"

	"github.com/wholeblob/wholeblob/blob"
)

func streamRules() []rule {
	return []rule{
		{name: "stream/known-length", says: "A Stream of declared length is stored exactly, at every size around the multiples of a part.", run: func(e *env) {
			e.sizes(func(d []byte) blob.Source { return blob.Stream(bytes.NewReader(d), int64(len(d))) })
		}},
		{name: "stream/unknown-length", says: "A Stream of unknown length is stored exactly, at every size around the multiples of a part.", run: func(e *env) {
			e.sizes(func(d []byte) blob.Source { return blob.Stream(onlyReader{bytes.NewReader(d)}, -1) })
		}},
		{name: "stream/readers", says: "A Stream may bring its bytes in any portions, and io.EOF with the last of them.", run: streamReaders},
		{name: "stream/short", says: "A Stream of fewer bytes than declared is ErrSourceLength, and nothing becomes visible.", run: func(e *env) {
			e.badSource(blob.ErrSourceLength, func(d []byte) blob.Source { return blob.Stream(bytes.NewReader(d[:len(d)-1]), int64(len(d))) })
		}},
		{name: "stream/long", says: "A Stream of more bytes than declared is ErrSourceLength, and nothing becomes visible.", run: func(e *env) {
			e.badSource(blob.ErrSourceLength, func(d []byte) blob.Source {
				return blob.Stream(io.MultiReader(bytes.NewReader(d), bytes.NewReader([]byte{1})), int64(len(d)))
			})
		}},
		{name: "stream/fails", says: "A Stream that fails, of known or unknown length, is an error that wraps its own, and nothing becomes visible.", run: func(e *env) {
			e.badStream(errSource, returnsErrSource)
		}},
		{name: "stream/unexpected-eof", says: "io.ErrUnexpectedEOF of a Stream is a failure, never the end of a short object.", run: func(e *env) {
			e.badStream(io.ErrUnexpectedEOF, func() (int, error) { return 0, io.ErrUnexpectedEOF })
		}},
		{name: "stream/panics", says: "A Stream that panics fails the Set, not the program, and nothing becomes visible.", run: func(e *env) { e.badStream(nil, panics) }},
		{name: "stream/used-twice", says: "A Stream serves one Set; a second is ErrInvalidOption before any I/O.", run: streamTwice},
		{name: "stream/conditions", says: "Conditions mean the same for a Stream.", needs: needsConditions, run: streamConditions},
		{name: "stream/metadata", says: "Metadata and content type are kept with a Stream too.", run: streamMetadata},
	}
}

// onlyReader hides every method but Read, so that no store finds out the length by other means.
type onlyReader struct{ r io.Reader }

// Read implements io.Reader.
func (o onlyReader) Read(p []byte) (int, error) { return o.r.Read(p) }

func (e *env) badStream(kind error, fail func() (int, error)) {
	for _, declared := range []bool{true, false} {
		e.badSource(kind, func(d []byte) blob.Source {
			size := int64(-1)
			if declared {
				size = int64(len(d))
			}
			return blob.Stream(streamFailsAt(d, int64(len(d))*6/10, fail), size)
		})
	}
}

func streamReaders(e *env) {
	size := 2*e.PartSize + 7
	d := e.data("x", size)
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"one-byte": iotest.OneByteReader, "half": iotest.HalfReader, "data-with-eof": iotest.DataErrReader,
		"one-byte-data-with-eof": func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.OneByteReader(r)) },
		"empty-reads":            emptyReads,
	} {
		for _, declared := range []int64{size, -1} {
			k := e.key(fmt.Sprint(name, declared))
			if _, err := e.store.Set(e.ctx, k, blob.Stream(wrap(bytes.NewReader(d)), declared), nil); err != nil {
				e.Errorf("Set of a %s stream, declared %d: %v", name, declared, err)
				continue
			}
			e.holds(k, d)
		}
	}
}

// emptyReads returns r with a read of no bytes and no error, which io.Reader allows, before each one.
func emptyReads(r io.Reader) io.Reader {
	empty := false
	return readerFunc(func(p []byte) (int, error) {
		if empty = !empty; empty {
			return 0, nil
		}
		return r.Read(p)
	})
}

func streamTwice(e *env) {
	k, d := e.key("x"), e.data("x", 100)
	for _, size := range []int64{100, -1} {
		src := blob.Stream(bytes.NewReader(d), size)
		if _, err := e.store.Set(e.ctx, k, src, nil); err != nil {
			e.Fatalf("Set of a Stream: %v", err)
		}
		e.noRequests("second Set of a Stream", func() {
			_, err := e.store.Set(e.ctx, e.key("second"), src, nil)
			e.refused(err, blob.OpSet, e.key("second"), blob.ErrInvalidOption)
		})
		e.holds(k, d)
	}
	e.absent(e.key("second"))
}

func streamConditions(e *env) {
	for _, size := range []int64{100, 3*e.PartSize + 1} {
		k := e.key(fmt.Sprint(size))
		set := func(label string, c blob.Condition) (blob.Info, error) {
			return e.store.Set(e.ctx, k, blob.Stream(bytes.NewReader(e.data(label, size)), -1), &blob.SetOptions{If: c})
		}
		info, err := set("first", blob.IfAbsent())
		if err != nil {
			e.Fatalf("IfAbsent of an absent key: %v", err)
		}
		_, err = set("second", blob.IfAbsent())
		e.refused(err, blob.OpSet, k, blob.ErrExists)
		_, err = set("second", blob.IfVersion("some-version"))
		e.refused(err, blob.OpSet, k, blob.ErrPrecondition)
		e.holds(k, e.data("first", size))
		if _, err = set("second", blob.IfVersion(info.Version)); err != nil {
			e.Fatalf("IfVersion of the current version: %v", err)
		}
		e.holds(k, e.data("second", size))
	}
}

func streamMetadata(e *env) {
	for _, size := range []int64{100, 3*e.PartSize + 1} {
		k := e.key(fmt.Sprint(size))
		o := &blob.SetOptions{Metadata: map[string]string{"owner": "blobtest"}, ContentType: "text/plain"}
		if _, err := e.store.Set(e.ctx, k, blob.Stream(bytes.NewReader(e.data(k, size)), -1), o); err != nil {
			e.Fatalf("Set: %v", err)
		}
		if s := e.mustStat(k); s.Metadata["owner"] != "blobtest" || len(s.Metadata) != 1 || s.ContentType != "text/plain" {
			e.Errorf("%d bytes: metadata %v, content type %q", size, s.Metadata, s.ContentType)
		}
	}
}
