package diskcache

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// The tier against a model: a hit is what was put last, all of it was put, and nothing that was dropped is found, whatever the order
// and however often it is closed and opened.
func TestDiskModel(t *testing.T) {
	const block = 4096
	type object struct {
		version string
		data    []byte
	}
	parent, lives := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		lives++
		dir := filepath.Join(parent, fmt.Sprint(lives))
		open := func() *Tier {
			d, err := Open(dir, Options{Size: 256 << 10})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		d := open()
		defer func() { _ = d.Close(context.Background()) }()
		model := map[string]object{}
		versions := 0
		key := func() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key") }
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k := key()
				versions++
				n := rapid.IntRange(0, 5*block).Draw(t, "size")
				d.Drop(k)
				model[k] = object{fmt.Sprint("v", versions), tiertest.Bytes(uint64(versions), n)}
			},
			"put": func(t *rapid.T) {
				k := key()
				o, ok := model[k]
				if !ok {
					return
				}
				first := rapid.IntRange(0, len(o.data)/block).Draw(t, "first") * block
				end := min(len(o.data), first+rapid.IntRange(1, 4).Draw(t, "blocks")*block)
				d.Put(testInfo(k, o.version, len(o.data)), int64(first), o.data[first:end])
			},
			"read": func(t *rapid.T) {
				k := key()
				o, ok := model[k]
				if !ok {
					return
				}
				off := rapid.IntRange(0, len(o.data)).Draw(t, "off")
				dst := make([]byte, rapid.IntRange(0, len(o.data)-off).Draw(t, "len"))
				if d.Read(k, o.version, int64(off), dst) && !bytes.Equal(dst, o.data[off:off+len(dst)]) {
					t.Fatalf("%s [%d, +%d): other bytes", k, off, len(dst))
				}
			},
			"drop": func(*rapid.T) {
				k := key()
				d.Drop(k)
				delete(model, k)
			},
			"restart": func(t *rapid.T) {
				if err := d.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
				d = open()
			},
			"": func(t *rapid.T) {
				for _, k := range []string{"a", "b", "c"} {
					info, ok := d.Lookup(k)
					if o, known := model[k]; ok && (!known || info.Version != o.version || info.Size != int64(len(o.data))) {
						t.Fatalf("%s: found %q of %d bytes, the model has %q", k, info.Version, info.Size, o.version)
					}
				}
				if s := d.Stats(); s.Damaged != 0 || s.Faults != 0 || s.Resets != 0 {
					t.Fatalf("%+v", s)
				}
			},
		})
	})
}
