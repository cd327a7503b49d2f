package blob

import (
	"errors"
	"hash/crc32"
	"strings"
	"testing"
)

// refusal is one bad call and what Check must say about it.
type refusal struct {
	name string
	err  error
	op   string
	key  string
	kind error
	says string // what the text must contain: the name of what is wrong
}

// checkRefusals checks that each is a *Error whose outcome is certain and whose text names the mistake.
func checkRefusals(t *testing.T, list []refusal) {
	t.Helper()
	for _, c := range list {
		e, ok := c.err.(*Error) //nolint:errorlint // unwrapped
		if !ok {
			t.Errorf("%s: %v is no *Error", c.name, c.err)
			continue
		}
		if e.Op != c.op || e.Key != c.key || e.Kind != c.kind || e.Outcome != NotApplied || e.Store != "" {
			t.Errorf("%s: %+v", c.name, *e)
		}
		if !errors.Is(e, c.kind) || !strings.Contains(e.Error(), c.says) {
			t.Errorf("%s: %v, want a text with %q", c.name, e, c.says)
		}
	}
}

func TestCheckGetNamesWhatIsWrong(t *testing.T) {
	get := func(key string, o GetOptions) error { _, err := CheckGet(key, &o); return err }
	ranges := func(key string, o GetOptions, rs ...Range) error { _, err := CheckGetRanges(key, rs, &o); return err }
	var list []refusal
	for _, c := range []struct {
		name string
		key  string
		o    GetOptions
		kind error
		says string
	}{
		{"no key", "", GetOptions{}, ErrInvalidKey, "it is empty"},
		{"no key and a bad option", "", GetOptions{If: IfAbsent()}, ErrInvalidKey, "it is empty"},
		{"IfAbsent", "k", GetOptions{If: IfAbsent()}, ErrInvalidOption, "a read with IfAbsent"},
		{"empty version", "k", GetOptions{If: IfVersion("")}, ErrInvalidOption, "IfVersion of an empty version"},
		{"bad range", "k", GetOptions{Range: Span(0, -1)}, ErrInvalidOption, "Span(0, -1) has a negative number"},
		{"negative size", "k", GetOptions{Want: Want{Size: -1, HasSize: true}}, ErrInvalidOption, "Want.Size is negative: -1"},
		{"size without HasSize", "k", GetOptions{Want: Want{Size: 5}}, ErrInvalidOption, "Want.Size is 5 but HasSize is false"},
		{"checksum without HasCRC32C", "k", GetOptions{Want: Want{CRC32C: 5}}, ErrInvalidOption, "Want.CRC32C is set but HasCRC32C is false"},
	} {
		list = append(list,
			refusal{"get: " + c.name, get(c.key, c.o), OpGet, c.key, c.kind, c.says},
			refusal{"getranges: " + c.name, ranges(c.key, c.o), OpGetRanges, c.key, c.kind, c.says})
	}
	list = append(list,
		refusal{"range option", ranges("k", GetOptions{Range: Last(0)}), OpGetRanges, "k", ErrInvalidOption, "GetRanges with Range Last(0)"},
		refusal{"Dst", ranges("k", GetOptions{Dst: []byte{}}), OpGetRanges, "k", ErrInvalidOption, "GetRanges with Dst"},
		refusal{"one bad range of many", ranges("k", GetOptions{}, From(0), Last(3), Span(-2, 1)), OpGetRanges, "k", ErrInvalidOption, "Span(-2, 1) has a negative number"})
	checkRefusals(t, list)
}

func TestCheckSetNamesWhatIsWrong(t *testing.T) {
	set := func(key string, src Source, o SetOptions) error { _, err := CheckSet(key, src, &o); return err }
	used := Stream(strings.NewReader("x"), 1)
	_ = used.Reader()
	ok := Bytes(nil)
	checkRefusals(t, []refusal{
		{"no key", set("", ok, SetOptions{}), OpSet, "", ErrInvalidKey, "it is empty"},
		{"bad key", set("a/../b", ok, SetOptions{}), OpSet, "a/../b", ErrInvalidKey, "segment ends in a dot"},
		{"zero source", set("k", Source{}, SetOptions{}), OpSet, "k", ErrInvalidOption, "the zero Source"},
		{"used stream", set("k", used, SetOptions{}), OpSet, "k", ErrInvalidOption, "a Stream serves one Set"},
		{"nil reader", set("k", ReaderAt(nil, 1), SetOptions{}), OpSet, "k", ErrInvalidOption, "nil reader"},
		{"empty version", set("k", ok, SetOptions{If: IfVersion("")}), OpSet, "k", ErrInvalidOption, "IfVersion of an empty version"},
		{"metadata", set("k", ok, SetOptions{Metadata: map[string]string{"a_b": "v"}}), OpSet, "k", ErrInvalidOption, `metadata key "a_b"`},
		{"control in content type", set("k", ok, SetOptions{ContentType: "a\nb"}), OpSet, "k", ErrInvalidOption, `content type "a\nb"`},
		{"space at the end of content type", set("k", ok, SetOptions{ContentType: "a "}), OpSet, "k", ErrInvalidOption, `content type "a "`},
		{"long content type", set("k", ok, SetOptions{ContentType: strings.Repeat("c", 256)}), OpSet, "k", ErrInvalidOption, "at most 255 bytes"},
	})
}

func TestTheOtherChecksNameWhatIsWrong(t *testing.T) {
	del := func(key string, o DeleteOptions) error { _, err := CheckDelete(key, &o); return err }
	list := func(prefix string, o ListOptions) error { _, err := CheckList(prefix, &o); return err }
	_, badPrefix := Prefixed(nil, "a/../b")
	checkRefusals(t, []refusal{
		{"delete: no key", del("", DeleteOptions{}), OpDelete, "", ErrInvalidKey, "it is empty"},
		{"delete: IfAbsent", del("k", DeleteOptions{If: IfAbsent()}), OpDelete, "k", ErrInvalidOption, "a delete with IfAbsent"},
		{"delete: empty version", del("k", DeleteOptions{If: IfVersion("")}), OpDelete, "k", ErrInvalidOption, "IfVersion of an empty version"},
		{"deleteall: an empty key", CheckDeleteAll([]string{"a", ""}), OpDeleteAll, "", ErrInvalidKey, "key 1 of 2 is empty"},
		{"stat: no key", CheckName(OpStat, ""), OpStat, "", ErrInvalidKey, "it is empty"},
		{"restore: no key", CheckName(OpRestore, ""), OpRestore, "", ErrInvalidKey, "it is empty"},
		{"list: prefix", list("\xff", ListOptions{}), OpList, "\xff", ErrInvalidOption, `prefix "\xff" is not valid UTF-8`},
		{"list: start", list("p", ListOptions{StartAfter: "\xff", Delimiter: "\xfe"}), OpList, "p", ErrInvalidOption, `StartAfter "\xff" is not valid UTF-8`},
		{"list: delimiter", list("p", ListOptions{Delimiter: "\xfe"}), OpList, "p", ErrInvalidOption, `Delimiter "\xfe" is not valid UTF-8`},
		{"a view", badPrefix, OpOpen, "a/../b", ErrInvalidOption, `prefix "a/../b/": segment ends in a dot`},
	})
}

func TestNilOptionsAreTheZeroValue(t *testing.T) {
	if o, err := CheckGet("k", nil); err != nil || !o.Range.IsWhole() || !o.If.IsZero() || o.Dst != nil || o.SkipCache || o.Want != (Want{}) {
		t.Errorf("get: %+v, %v", o, err)
	}
	if _, err := CheckGetRanges("k", nil, nil); err != nil {
		t.Errorf("getranges: %v", err)
	}
	if o, err := CheckSet("k", Bytes(nil), nil); err != nil || o.ContentType != DefaultContentType || o.Metadata != nil || !o.If.IsZero() {
		t.Errorf("set: %+v, %v", o, err)
	}
	if o, err := CheckDelete("k", nil); err != nil || o != (DeleteOptions{}) {
		t.Errorf("delete: %+v, %v", o, err)
	}
	if o, err := CheckList("", nil); err != nil || o != (ListOptions{}) {
		t.Errorf("list: %+v, %v", o, err)
	}
	if err := CheckDeleteAll(nil); err != nil {
		t.Errorf("deleteall: %v", err)
	}
}

// Whatever another program stored can be read, deleted and found, though Set refuses its key.
func TestOnlySetChecksTheRulesOfKeys(t *testing.T) {
	for _, key := range []string{"..", "a\x00", "\xff", strings.Repeat("k", 5000)} {
		_, get := CheckGet(key, nil)
		_, ranges := CheckGetRanges(key, []Range{From(0)}, nil)
		_, del := CheckDelete(key, nil)
		if err := firstError(get, ranges, del, CheckDeleteAll([]string{key}), CheckName(OpStat, key), CheckName(OpRestore, key)); err != nil {
			t.Errorf("%.20q: %v", key, err)
		}
	}
}

func TestChecksLeaveTheCallersOptionsAlone(t *testing.T) {
	set := SetOptions{If: IfVersion("v"), Metadata: map[string]string{"a": "1"}, SHA256: true, AtMostOnce: true}
	o, err := CheckSet("k", Bytes(nil), &set)
	if err != nil || set.ContentType != "" || o.ContentType != DefaultContentType || o.If != set.If || !o.SHA256 || !o.AtMostOnce || o.Metadata["a"] != "1" {
		t.Errorf("%+v from %+v, %v", o, set, err)
	}
	set.ContentType = strings.Repeat("c", 255)
	if o, err := CheckSet("k", Bytes(nil), &set); err != nil || o.ContentType != set.ContentType {
		t.Errorf("%+v, %v", o, err)
	}
	get := GetOptions{Range: Last(3), If: IfVersion("v"), Want: Want{Size: 3, HasSize: true}, Dst: make([]byte, 3), SkipCache: true}
	if o, err := CheckGet("k", &get); err != nil || o.Range != get.Range || o.If != get.If || o.Want != get.Want || len(o.Dst) != 3 || !o.SkipCache {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestWantVerifies(t *testing.T) {
	data := []byte("0123456789")
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	if check := (Want{CRC32C: 0xe3069283, HasCRC32C: true}).Verify(9, 0, []byte("123456789")); check != nil { // the check value of RFC 3720's CRC32C
		t.Error(check)
	}
	for _, c := range []struct {
		name       string
		w          Want
		total, off int64
		data       []byte
		want       error
	}{
		{"nothing known", Want{}, 10, 0, data, nil},
		{"size", Want{Size: 10, HasSize: true}, 10, 0, data, nil},
		{"empty object", Want{HasSize: true}, 0, 0, nil, nil},
		{"smaller", Want{Size: 11, HasSize: true}, 10, 0, data, ErrTruncated},
		{"empty instead", Want{Size: 1, HasSize: true}, 0, 0, nil, ErrTruncated},
		{"larger", Want{Size: 9, HasSize: true}, 10, 0, data, ErrCorrupt},
		{"should be empty", Want{HasSize: true}, 10, 0, data, ErrCorrupt},
		{"a part of a smaller one", Want{Size: 11, HasSize: true}, 10, 3, data[3:5], ErrTruncated},
		{"checksum", Want{CRC32C: sum, HasCRC32C: true}, 10, 0, data, nil},
		{"wrong checksum", Want{CRC32C: sum + 1, HasCRC32C: true}, 10, 0, data, ErrCorrupt},
		{"wrong checksum, zero", Want{HasCRC32C: true}, 10, 0, data, ErrCorrupt},
		{"checksum of the empty object", Want{HasCRC32C: true}, 0, 0, nil, nil},
		{"wrong checksum of the empty object", Want{CRC32C: 1, HasCRC32C: true}, 0, 0, nil, ErrCorrupt},
		{"the checksum says nothing about the beginning", Want{CRC32C: 1, HasCRC32C: true}, 10, 0, data[:9], nil},
		{"the checksum says nothing about the end", Want{CRC32C: 1, HasCRC32C: true}, 10, 1, data[1:], nil},
		{"size first", Want{Size: 11, HasSize: true, CRC32C: 1, HasCRC32C: true}, 10, 0, data, ErrTruncated},
	} {
		if err := c.w.Verify(c.total, c.off, c.data); KindOf(err) != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err := c.w.VerifySize(c.total); (err != nil) != (c.w.HasSize && c.w.Size != c.total) {
			t.Errorf("%s: VerifySize is %v", c.name, err)
		}
	}
}
