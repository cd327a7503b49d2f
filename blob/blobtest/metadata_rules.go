package blobtest

import (
	"fmt"
	"maps"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
)

func metadataRules() []rule {
	return []rule{
		{name: "metadata/round-trip", says: "Metadata come back as they were set, from Get and Stat, for every size of object.", run: metadataRoundTrip},
		{name: "metadata/none", says: "An object set without metadata has none: entries of the library itself are hidden.", run: metadataNone},
		{name: "metadata/replaced", says: "A Set replaces the metadata whole, with nothing left of the old.", run: metadataReplaced},
		{name: "metadata/values", says: "A value keeps every printable ASCII character.", run: metadataValues},
		{name: "metadata/limits", says: "Names of 32 bytes and 512 bytes in all are kept; more is ErrInvalidOption.", run: metadataLimits},
		{name: "metadata/refused", says: "Names and values that some store would change are ErrInvalidOption before any I/O, and so are reserved names.", run: metadataRefused},
	}
}

// keepsMetadata sets m on objects of one request and of several parts and reads it back.
func (e *env) keepsMetadata(label string, m map[string]string) {
	for _, size := range []int64{0, 10, 3*e.PartSize + 1} {
		k := e.key(fmt.Sprint(label, size))
		_, err := e.store.Set(e.ctx, k, blob.Bytes(e.data(k, size)), &blob.SetOptions{Metadata: m})
		if err != nil {
			e.Errorf("Set of %d bytes with %d metadata entries: %v", size, len(m), err)
			continue
		}
		if got := e.mustStat(k).Metadata; !maps.Equal(got, m) {
			e.Errorf("%d bytes: Stat returns metadata %q, want %q", size, got, m)
		}
		if got := e.mustGet(k, nil).Metadata; !maps.Equal(got, m) {
			e.Errorf("%d bytes: Get returns metadata %q, want %q", size, got, m)
		}
	}
}

func metadataRoundTrip(e *env) {
	e.keepsMetadata("one", map[string]string{"a": "1"})
	e.keepsMetadata("some", map[string]string{"owner": "blobtest", "format": "7", "x9": "A b  c", "upper": "MiXed"})
}

func metadataNone(e *env) {
	e.keepsMetadata("nil", nil)
	e.keepsMetadata("empty", map[string]string{})
}

func metadataReplaced(e *env) {
	k := e.key("x")
	for _, m := range []map[string]string{{"a": "1", "b": "2"}, {"b": "3", "c": "4"}, nil, {"d": "5"}} {
		e.mustSet(k, e.data("x", 10), &blob.SetOptions{Metadata: m})
		if got := e.mustStat(k).Metadata; !maps.Equal(got, m) {
			e.Errorf("Stat returns metadata %q, want %q", got, m)
		}
	}
}

func metadataValues(e *env) {
	m := map[string]string{}
	for c := rune(0x21); c <= 0x7E; c++ {
		m[fmt.Sprintf("c%02x", c)] = string(c)
		if len(m) == 40 { // 4 bytes each: well below the limit
			e.keepsMetadata(fmt.Sprint("upto", c), m)
			m = map[string]string{}
		}
	}
	e.keepsMetadata("rest", m)
	e.keepsMetadata("mixed", map[string]string{"v": `a, b; c="d" e:f=g %20 \n <x> & +`})
}

func metadataLimits(e *env) {
	name := "a" + strings.Repeat("9", blob.MaxMetadataKey-1)
	full := map[string]string{name: strings.Repeat("v", blob.MaxMetadata-blob.MaxMetadataKey)}
	e.keepsMetadata("full", full)
	many := map[string]string{}
	for i := range blob.MaxMetadata / 8 {
		many[fmt.Sprintf("k%03d", i)] = fmt.Sprintf("%04d", i)
	}
	e.keepsMetadata("many", many)

	full[name] += "v"
	e.refusesMetadata(full)
	e.refusesMetadata(map[string]string{name + "9": "v"})
	many["k"] = "v"
	e.refusesMetadata(many)
}

func (e *env) refusesMetadata(m map[string]string) {
	k := e.key("refused")
	e.noRequests("Set with bad metadata", func() {
		_, err := e.store.Set(e.ctx, k, blob.Bytes(nil), &blob.SetOptions{Metadata: m})
		e.refused(err, blob.OpSet, k, blob.ErrInvalidOption)
	})
}

func metadataRefused(e *env) {
	for _, name := range []string{"", "A", "aB", "a_b", "a-b", "9a", "a.b", "a b", "é", "a\n", "wholeblob", "wholeblobtoken", "wholeblobx"} {
		e.refusesMetadata(map[string]string{name: "v"})
	}
	for _, value := range []string{"", " v", "v ", "a\nb", "a\x00b", "a\x7fb", "é", "a\tb", " "} {
		e.refusesMetadata(map[string]string{"a": value})
	}
	e.absent(e.key("refused"))
}
