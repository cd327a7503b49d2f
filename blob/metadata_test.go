package blob

import (
	"bytes"
	"encoding/hex"
	"errors"
	"maps"
	"strings"
	"testing"
)

// Format v1 is frozen: objects written by any release carry these very entries. This test must never change.
func TestMetadataFormatV1(t *testing.T) {
	s := Stamp{Token: "000102030405060708090a0b0c0d0e0f", CRC32C: 0x0a1b2c3d, HasCRC32C: true, HasSHA256: true}
	for i := range s.SHA256 {
		s.SHA256[i] = byte(0xe0 + i)
	}
	want := map[string]string{
		"wholeblobtoken":  "1-000102030405060708090a0b0c0d0e0f",
		"wholeblobcrc32c": "0a1b2c3d",
		"wholeblobsha256": "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
		"origin":          "flush",
	}
	if got := s.Seal(map[string]string{"origin": "flush"}); !maps.Equal(got, want) {
		t.Errorf("sealed: %v", got)
	}
	user, back := Unseal(want)
	if back != s || !maps.Equal(user, map[string]string{"origin": "flush"}) {
		t.Errorf("unsealed: %v and %+v", user, back)
	}
}

func TestSealHoldsOnlyWhatIsKnown(t *testing.T) {
	user := map[string]string{"a": "1"}
	if got := (Stamp{CRC32C: 7}).Seal(user); !maps.Equal(got, user) {
		t.Errorf("an empty stamp: %v", got)
	}
	got := Stamp{Token: NewToken(), HasCRC32C: true}.Seal(user)
	if len(got) != 3 || got[metaCRC32C] != "00000000" {
		t.Errorf("%v", got)
	}
	if len(user) != 1 {
		t.Errorf("the caller's map changed: %v", user)
	}
	if got := (Stamp{}).Seal(nil); got == nil || len(got) != 0 {
		t.Errorf("nothing at all: %v", got)
	}
}

func TestUnsealHidesWhatIsOursAndIgnoresWhatItDoesNotKnow(t *testing.T) {
	token := NewToken()
	for _, c := range []struct {
		name, value string
		want        Stamp
		user        map[string]string
	}{
		{name: "wholeblobtoken", value: "1-" + token, want: Stamp{Token: token}},
		{name: "Wholeblobtoken", value: "1-" + token, want: Stamp{Token: token}}, // as a header's name comes back
		{name: "wholeblobtoken", value: "2-" + token},                            // a later format
		{name: "wholeblobtoken", value: token},
		{name: "wholeblobtoken", value: "1-"},
		{name: "wholeblobtoken", value: "1-" + token[1:]},
		{name: "wholeblobtoken", value: "1-" + strings.Repeat("A", 32)},
		{name: "WHOLEBLOBCRC32C", value: "ffffffff", want: Stamp{CRC32C: 0xffffffff, HasCRC32C: true}},
		{name: "wholeblobcrc32c", value: "FFFFFFFF"},
		{name: "wholeblobcrc32c", value: "fffffff"},
		{name: "wholeblobcrc32c", value: "0xffffff"},
		{name: "wholeblobcrc32c", value: "+fffffff"},
		{name: "wholeblobcrc32c", value: ""},
		{name: "wholeblobsha256", value: strings.Repeat("0", 63)},
		{name: "wholeblobsha256", value: strings.Repeat("g", 64)},
		{name: "wholeblob", value: "reserved"},
		{name: "wholeblobnew", value: "of a later format"},
		{name: "wholeblo", value: "v", user: map[string]string{"wholeblo": "v"}},
		{name: "Foreign-Name_of.another", value: "tool \u00e9", user: map[string]string{"foreign-name_of.another": "tool \u00e9"}},
	} {
		user, s := Unseal(map[string]string{c.name: c.value})
		if s != c.want || !maps.Equal(user, c.user) || (user == nil) != (c.user == nil) {
			t.Errorf("%q: %q: %v and %+v", c.name, c.value, user, s)
		}
	}
	if user, s := Unseal(nil); user != nil || s != (Stamp{}) {
		t.Errorf("nothing: %v and %+v", user, s)
	}
}

func TestTokensAreWellFormedAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		token := NewToken()
		if b, err := hex.DecodeString(token); err != nil || len(b) != 16 || strings.ToLower(token) != token {
			t.Fatalf("%q", token)
		}
		if seen[token] {
			t.Fatalf("%q twice", token)
		}
		seen[token] = true
	}
}

func TestMetadataThatSetAccepts(t *testing.T) {
	longest := map[string]string{}
	for _, k := range []string{"a", "b"} { // 512 bytes exactly
		longest[strings.Repeat(k, MaxMetadataKey)] = strings.Repeat("v", MaxMetadata/2-MaxMetadataKey)
	}
	for _, m := range []map[string]string{
		nil, {}, {"a": "1"}, {"a1b2": "x y"}, {"z": "!~"}, {"wholeblo": "v"}, {"xwholeblob": "v"}, longest,
	} {
		if err := CheckMetadata(m); err != nil {
			t.Errorf("%v: %v", m, err)
		}
	}
}

func TestMetadataThatSetRefuses(t *testing.T) {
	tooMuch := map[string]string{"a": strings.Repeat("v", MaxMetadata)}
	for _, c := range []struct {
		m    map[string]string
		says string
	}{
		{map[string]string{"": "v"}, `metadata key "" is not of the form [a-z][a-z0-9]{0,31}`},
		{map[string]string{"A": "v"}, `metadata key "A" is not of the form [a-z][a-z0-9]{0,31}`},
		{map[string]string{"1a": "v"}, `metadata key "1a" is not of the form [a-z][a-z0-9]{0,31}`},
		{map[string]string{"a_b": "v"}, `metadata key "a_b" is not of the form [a-z][a-z0-9]{0,31}`},
		{map[string]string{"a-b": "v"}, `metadata key "a-b" is not of the form [a-z][a-z0-9]{0,31}`},
		{map[string]string{"\u00e9": "v"}, "metadata key \"\u00e9\" is not of the form [a-z][a-z0-9]{0,31}"},
		{map[string]string{strings.Repeat("a", 33): "v"}, `metadata key "` + strings.Repeat("a", 33) + `" is not of the form [a-z][a-z0-9]{0,31}`},
		{map[string]string{"wholeblob": "v"}, `metadata key "wholeblob": names that begin with "wholeblob" are reserved`},
		{map[string]string{"wholeblobx": "v"}, `metadata key "wholeblobx": names that begin with "wholeblob" are reserved`},
		{map[string]string{"a": ""}, `value of metadata "a": "" is not printable ASCII without edge spaces, or empty`},
		{map[string]string{"a": " v"}, `value of metadata "a": " v" is not printable ASCII without edge spaces, or empty`},
		{map[string]string{"a": "v "}, `value of metadata "a": "v " is not printable ASCII without edge spaces, or empty`},
		{map[string]string{"a": "\t"}, `value of metadata "a": "\t" is not printable ASCII without edge spaces, or empty`},
		{map[string]string{"a": "x\r\ny"}, `value of metadata "a": "x\r\ny" is not printable ASCII without edge spaces, or empty`},
		{map[string]string{"a": "\x7f"}, `value of metadata "a": "\x7f" is not printable ASCII without edge spaces, or empty`},
		{map[string]string{"a": "\u00e9"}, "value of metadata \"a\": \"\u00e9\" is not printable ASCII without edge spaces, or empty"},
		{map[string]string{"c": "", "b": "", "a": "ok"}, `value of metadata "b": "" is not printable ASCII without edge spaces, or empty`}, // always the same one
		{tooMuch, "metadata has 513 bytes, at most 512"},
	} {
		for range 5 {
			if err := CheckMetadata(c.m); !errors.Is(err, ErrInvalidOption) || err.Error() != "invalid option: "+c.says {
				t.Errorf("%v: %v, want %s", c.m, err, c.says)
				break
			}
		}
	}
}

// FuzzUnsealReturnsWhatWasSealed covers metadata a Set accepts with any stamp, and names in the case of HTTP headers.
func FuzzUnsealReturnsWhatWasSealed(f *testing.F) {
	f.Add("a", "1", "b", "2", []byte("token"), uint32(0), true, true)
	f.Add("wholeblo", "x", "wholeblobx", "y", []byte{}, uint32(1<<31), false, true)
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string, seed []byte, crc uint32, hasCRC, hasSHA bool) {
		user := map[string]string{}
		for k, v := range map[string]string{k1: v1, k2: v2} {
			if CheckMetadata(map[string]string{k: v}) == nil {
				user[k] = v
			}
		}
		s := Stamp{HasCRC32C: hasCRC, HasSHA256: hasSHA}
		if hasCRC {
			s.CRC32C = crc
		}
		if hasSHA {
			copy(s.SHA256[:], seed)
		}
		if len(seed) > 0 {
			s.Token = hex.EncodeToString(append(seed, make([]byte, 16)...)[:16])
		}
		sealed := s.Seal(user)
		asHeaders := map[string]string{}
		for k, v := range sealed {
			asHeaders[string(bytes.ToUpper([]byte(k[:1])))+k[1:]] = v
		}
		for _, stored := range []map[string]string{sealed, asHeaders} {
			back, stamp := Unseal(stored)
			if stamp != s || !maps.Equal(back, user) {
				t.Errorf("sealed %v and %+v, unsealed %v and %+v", user, s, back, stamp)
			}
		}
	})
}

// FuzzUnsealAnything feeds what another program may have stored: nothing of ours may reach the caller.
func FuzzUnsealAnything(f *testing.F) {
	f.Add("wholeblobtoken", "1-", "WholeBlobSHA256", strings.Repeat("z", 64))
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		user, s := Unseal(map[string]string{k1: v1, k2: v2})
		for k := range user {
			if strings.HasPrefix(strings.ToLower(k), "wholeblob") {
				t.Errorf("%q reaches the caller", k)
			}
		}
		if s.Token != "" && !isHex(s.Token, 32) || !s.HasCRC32C && s.CRC32C != 0 || !s.HasSHA256 && s.SHA256 != [32]byte{} {
			t.Errorf("%+v", s)
		}
	})
}
