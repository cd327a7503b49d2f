package fakeaz

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash/crc64"
	"net/http"
)

// content is a request body that was read whole and found right.
type content struct {
	data []byte
	md5  []byte
}

// crcTable is the polynomial that Azure Storage uses for x-ms-content-crc64 (bit-reversed, as CRC-64/NVME).
var crcTable = crc64.MakeTable(0x9A6C9329AC4BC9B5)

// crc64Of is the header's form: base64 of the eight bytes, the lowest first.
func crc64Of(pieces rope) string {
	var sum uint64
	for _, b := range pieces {
		sum = crc64.Update(sum, crcTable, b)
	}
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, sum))
}

func md5Of(pieces rope) []byte {
	h := md5.New()
	for _, b := range pieces {
		h.Write(b)
	}
	return h.Sum(nil)
}

// check compares a body with the checksums that came with it ("Put Blob", "Put Block": Content-MD5 or
// x-ms-content-crc64, not both).
func check(data []byte, h http.Header) (*content, *apiError) {
	b := &content{data: data, md5: md5Of(rope{data})}
	wantMD5, wantCRC := h.Get("Content-MD5"), h.Get("x-ms-content-crc64")
	if wantMD5 != "" && wantCRC != "" {
		return nil, errInput("Both Content-MD5 and x-ms-content-crc64 are specified.")
	}
	if err := sameMD5(wantMD5, b.md5); err != nil {
		return nil, err
	}
	if wantCRC == "" {
		return b, nil
	}
	if raw, err := base64.StdEncoding.DecodeString(wantCRC); err != nil || len(raw) != 8 {
		return nil, errHeader("x-ms-content-crc64", wantCRC)
	}
	if got := crc64Of(rope{data}); got != wantCRC {
		return nil, fail(http.StatusBadRequest, "Crc64Mismatch", "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.").
			elem("UserSpecifiedCrc", wantCRC).elem("ServerCalculatedCrc", got)
	}
	return b, nil
}

// sameMD5 compares a digest with the base64 form of one, "" for none.
func sameMD5(want string, have []byte) *apiError {
	if want == "" {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(want)
	if err != nil || len(raw) != md5.Size {
		return fail(http.StatusBadRequest, "InvalidMd5", "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and Base64-encoded.")
	}
	if string(raw) != string(have) {
		return fail(http.StatusBadRequest, "Md5Mismatch", "The MD5 value specified in the request did not match with the MD5 value calculated by the server.").
			elem("UserSpecifiedMd5", want).elem("ServerCalculatedMd5", encodeMD5(have))
	}
	return nil
}

func encodeMD5(sum []byte) string {
	if sum == nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString(sum)
}

// echo tells the client what was received: the MD5 when it sent one, else the CRC64 ("Put Block", from 2019-02-02 on).
func (b *content) echo(resp *response, h http.Header) {
	if h.Get("Content-MD5") != "" {
		resp.Set("Content-MD5", encodeMD5(b.md5))
		return
	}
	resp.Set("x-ms-content-crc64", crc64Of(rope{b.data}))
}
