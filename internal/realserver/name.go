package realserver

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// bucketName makes a name that S3, Google Cloud Storage and Azure allow: 3 to
// 63 of a-z, 0-9 and "-", without "-" at an end or next to another.
func bucketName(hint string) string {
	var name strings.Builder
	for _, r := range strings.ToLower(hint) {
		switch {
		case name.Len() == 40:
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			name.WriteRune(r)
		case !strings.HasSuffix(name.String(), "-") && name.Len() > 0:
			name.WriteByte('-')
		}
	}
	return strings.TrimPrefix(strings.TrimSuffix(name.String(), "-")+"-wb-"+randomHex()[:12], "-")
}

// randomHex returns 128 random bits.
func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see its documentation
	return hex.EncodeToString(b[:])
}
