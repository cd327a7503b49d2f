package diskcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// document reads an entry with what docs/disk-cache.md says and nothing else: no constant and no function of the package.
type document struct {
	t    *testing.T
	b    []byte // what is yet to be read
	file []byte
}

func (d *document) take(n uint64) []byte {
	d.t.Helper()
	if n > uint64(len(d.b)) {
		d.t.Fatalf("%d bytes wanted at %d of %d", n, len(d.file)-len(d.b), len(d.file))
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *document) number(bytes uint64) (n uint64) {
	d.t.Helper()
	for i, b := range d.take(bytes) {
		n |= uint64(b) << (8 * i)
	}
	return n
}

func (d *document) text(n uint64) string { d.t.Helper(); return string(d.take(n)) }

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// entry reads the entry in path below the tier's directory, and returns what the object is said to be, and the run of it.
func (d *document) entry(path string) (info blob.Info, off uint64, payload []byte) {
	t := d.t
	t.Helper()
	want := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s: %v, want %v", path, what, got, want)
		}
	}
	want("magic", d.text(8), "WBLBCACH")
	want("format", d.number(4), uint64(1))
	header := d.number(4)
	info.Size = int64(d.number(8))
	off, length := d.number(8), d.number(8)
	modified := int64(d.number(8))
	block := d.number(4)
	sum := uint32(d.number(4))
	flags := d.number(2)
	key, version, content, entries := d.number(2), d.number(2), d.number(2), d.number(2)
	want("what is zero", d.text(6), strings.Repeat("\x00", 6))
	want("the fixed part", len(d.file)-len(d.b), 72)
	want("checksum block", block, uint64(4096))
	want("flags", flags&^3, uint64(0))
	if flags&1 != 0 {
		info.CRC32C, info.HasCRC32C = sum, true
	}
	if flags&2 != 0 {
		info.ModTime = time.Unix(0, modified)
	}
	info.Key, info.Version, info.ContentType = d.text(key), d.text(version), d.text(content)
	info.Metadata = map[string]string{}
	var names []string
	for range entries {
		name, value := d.number(2), d.number(2)
		names = append(names, d.text(name))
		info.Metadata[names[len(names)-1]] = d.text(value)
	}
	want("order of the metadata", slices.IsSorted(names), true)
	payload = d.file[header:]
	want("length of the payload", uint64(len(payload)), length)
	want("begin of the run", off%block, uint64(0))
	if end := off + length; end != uint64(info.Size) {
		want("end of the run", end%block, uint64(0))
	}
	for p := range slices.Chunk(payload, int(block)) {
		want("a checksum", uint32(d.number(4)), castagnoli(p))
	}
	padding := d.take(header - 4 - uint64(len(d.file)-len(d.b)))
	want("padding", len(bytes.Trim(padding, "\x00")), 0)
	if length >= 64<<10 {
		want("begin of the payload", header%4096, uint64(0))
	} else {
		want("padding", len(padding), 0)
	}
	want("checksum of the header", uint32(d.number(4)), castagnoli(d.file[:header-4]))
	d.name(path, info, off, length)
	return info, off, payload
}

// name checks path: gen-<32 hex digits>/<2 hex digits>/<hash>-<version>-<offset>-<length>-<number>.
func (d *document) name(path string, info blob.Info, off, length uint64) {
	d.t.Helper()
	hash, v := sha256.Sum256([]byte(info.Key)), fnv.New64a()
	_, _ = v.Write([]byte(info.Version))
	want := fmt.Sprintf("/%x/%x-%x-%s-%s-", hash[:1], hash[:16], binary.BigEndian.AppendUint64(nil, v.Sum64()), strconv.FormatUint(off, 16), strconv.FormatUint(length, 16))
	if !regexp.MustCompile(`^gen-[0-9a-f]{32}` + want + `[0-9a-f]{1,16}$`).MatchString(path) {
		d.t.Errorf("%s: want %s", path, want)
	}
}

// What other programs know of the files is docs/disk-cache.md.
func TestDiskFilesAreWhatTheDocumentSays(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	data := tiertest.Bytes(1, 200_000)
	put := map[string]blob.Info{}
	for _, size := range []int{0, 1, 4096, 4097, 65535, 65536, 200_000} {
		for i, info := range []blob.Info{{}, testInfo("", "", 0), {Metadata: map[string]string{"a": strings.Repeat("x", 60_000), "": "y"}, ModTime: time.Unix(-5, 1)}} {
			info.Key, info.Version, info.Size = fmt.Sprintf("a/%d/\x80/%d", size, i), fmt.Sprint("v", size), int64(size)
			mustPut(t, d, info, 0, data[:size])
			put[info.Key] = info
			if size == 200_000 { // and as runs
				info.Key += "/runs"
				mustPut(t, d, info, 0, data[:8192])
				mustPut(t, d, info, 126_976, data[126_976:])
				put[info.Key] = info
			}
		}
	}
	wantState(t, dir, "open")
	closeTier(t, d)
	wantState(t, dir, "closed")
	found := 0
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.Contains(path, "/") {
			return err
		}
		found++
		file, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		info, off, payload := (&document{t, file, file}).entry(path)
		want, ok := put[info.Key]
		if !ok || info.Size != want.Size || info.Version != want.Version || info.ContentType != want.ContentType || !info.ModTime.Equal(want.ModTime) ||
			info.CRC32C != want.CRC32C || info.HasCRC32C != want.HasCRC32C || !maps.Equal(info.Metadata, want.Metadata) {
			t.Errorf("%s: %+.200v, want %+.200v", path, info, want)
		}
		if !bytes.Equal(payload, data[off:][:len(payload)]) {
			t.Errorf("%s: other bytes", path)
		}
		return nil
	})
	if err != nil || found != len(put)+3 {
		t.Errorf("%d entries, %v, want %d", found, err, len(put)+3)
	}
}

// wantState checks the text of state, and of lock.
func wantState(t *testing.T, dir, end string) {
	t.Helper()
	for name, want := range map[string]string{
		"state": `^wholeblob disk cache, state 1\ngeneration gen-[0-9a-f]{32}\nboot [^\n]*\n` + end + `\n$`,
		"lock":  fmt.Sprintf(`^pid %d\n$`, os.Getpid()),
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !regexp.MustCompile(want).Match(b) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
