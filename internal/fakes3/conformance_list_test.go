package fakes3_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// list collects all pages: keys and prefixes (marked by a star) without the
// check's own prefix.
func (f *conf) list(in s3.ListObjectsV2Input) ([]string, error) {
	in.Bucket = &f.bucket
	in.Prefix = f.key(aws.ToString(in.Prefix))
	if in.StartAfter != nil {
		in.StartAfter = f.key(*in.StartAfter)
	}
	var names []string
	for range 100 {
		out, err := f.c.ListObjectsV2(f, &in)
		if err != nil {
			return nil, err
		}
		if n := aws.ToInt32(out.KeyCount); int(n) != len(out.Contents)+len(out.CommonPrefixes) {
			return nil, fmt.Errorf("KeyCount %d of %d entries", n, len(out.Contents)+len(out.CommonPrefixes))
		}
		dec := func(s *string) string {
			// Only the answer tells whether the names are encoded.
			if u, err := url.QueryUnescape(*s); err == nil && out.EncodingType == types.EncodingTypeUrl {
				s = &u
			}
			return strings.TrimPrefix(*s, f.prefix)
		}
		for _, o := range out.Contents {
			names = append(names, dec(o.Key))
		}
		for _, p := range out.CommonPrefixes {
			names = append(names, dec(p.Prefix)+"*")
		}
		if !aws.ToBool(out.IsTruncated) {
			return names, nil
		}
		if out.NextContinuationToken == nil {
			return nil, fmt.Errorf("truncated without a token")
		}
		in.ContinuationToken = out.NextContinuationToken
	}
	return nil, fmt.Errorf("the listing does not end")
}

func (f *conf) listed(in s3.ListObjectsV2Input, want ...string) error {
	have, err := f.list(in)
	if err != nil {
		return err
	}
	return same("listing", fmt.Sprintf("%q", have), fmt.Sprintf("%q", want))
}

func (f *conf) fillKeys(names ...string) error {
	for _, n := range names {
		if _, err := f.put(n, []byte(n)); err != nil {
			return fmt.Errorf("put %q: %w", n, err)
		}
	}
	return nil
}

var listChecks = []check{
	{"list-order-is-utf8-bytes", func(f *conf) error {
		want := []string{"B", "a", "a-b", "a0", "b", "é", "～", "😀"}
		return all(f.fillKeys(want[4], want[0], want[7], want[2], want[1], want[6], want[3], want[5]), f.listed(s3.ListObjectsV2Input{}, want...))
	}},
	{"list-pages", func(f *conf) error {
		want := []string{"a", "b", "c", "d", "e"}
		if err := f.fillKeys(want...); err != nil {
			return err
		}
		for n := int32(1); n <= 6; n++ {
			if err := f.listed(s3.ListObjectsV2Input{MaxKeys: &n}, want...); err != nil {
				return fmt.Errorf("pages of %d: %w", n, err)
			}
		}
		return nil
	}},
	{"list-max-keys-0", func(f *conf) error {
		return all(f.fillKeys("a"), f.listed(s3.ListObjectsV2Input{MaxKeys: aws.Int32(0)}))
	}},
	{"list-prefix-is-a-string", func(f *conf) error {
		return all(f.fillKeys("bar/1", "bar-baz/1", "other"), f.listed(s3.ListObjectsV2Input{Prefix: aws.String("bar")}, "bar-baz/1", "bar/1"))
	}},
	{"list-start-after-is-exclusive", func(f *conf) error {
		return all(f.fillKeys("a", "b", "c"),
			f.listed(s3.ListObjectsV2Input{StartAfter: aws.String("a")}, "b", "c"),
			f.listed(s3.ListObjectsV2Input{StartAfter: aws.String("aa")}, "b", "c"))
	}},
	{"list-delimiter", func(f *conf) error {
		return all(f.fillKeys("a/1", "a/2", "b", "c/1/x"),
			f.listed(s3.ListObjectsV2Input{Delimiter: aws.String("/")}, "b", "a/*", "c/*"),
			f.listed(s3.ListObjectsV2Input{Delimiter: aws.String("/"), Prefix: aws.String("c/")}, "c/1/*"))
	}},
	{"list-delimiter-pages", func(f *conf) error {
		in := s3.ListObjectsV2Input{Delimiter: aws.String("/"), MaxKeys: aws.Int32(1)}
		return all(f.fillKeys("a/1", "a/2", "b", "c/1/x"), f.listed(in, "a/*", "b", "c/*"))
	}},
	{"list-encoded", func(f *conf) error {
		want := []string{"a b", "a%2Fb", "a+b", "é"}
		slices.Sort(want)
		return all(f.fillKeys(want...), f.listed(s3.ListObjectsV2Input{EncodingType: types.EncodingTypeUrl}, want...))
	}},
	{"list-says-it-is-encoded", func(f *conf) error {
		out, err := f.c.ListObjectsV2(f, &s3.ListObjectsV2Input{Bucket: &f.bucket, Prefix: &f.prefix, EncodingType: types.EncodingTypeUrl})
		return all(err, same("encoding", out.EncodingType, types.EncodingTypeUrl))
	}},
	{"list-describes", func(f *conf) error {
		_, err := f.put("k", []byte("hello"))
		out, lerr := f.c.ListObjectsV2(f, &s3.ListObjectsV2Input{Bucket: &f.bucket, Prefix: &f.prefix})
		h, herr := f.head("k")
		if err := all(err, lerr, herr); err != nil {
			return err
		}
		if err := same("entries", len(out.Contents), 1); err != nil {
			return err
		}
		o := out.Contents[0]
		return all(
			same("size", aws.ToInt64(o.Size), 5),
			same("etag", aws.ToString(o.ETag), aws.ToString(h.ETag)),
			same("time to the second", o.LastModified.Unix(), h.LastModified.Unix()),
		)
	}},
	{"list-bad-token", func(f *conf) error {
		_, err := f.c.ListObjectsV2(f, &s3.ListObjectsV2Input{Bucket: &f.bucket, ContinuationToken: aws.String("no token")})
		return refused(err, 400, "InvalidArgument")
	}},
}

// roundTrip puts, reads, lists and deletes one key, and checks that it comes
// back byte for byte.
func (f *conf) roundTrip(key string) error {
	data := []byte("content of " + key)
	if _, err := f.put(key, data); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	err := all(f.holds(key, data), f.listed(s3.ListObjectsV2Input{EncodingType: types.EncodingTypeUrl}, key))
	if _, derr := f.del(key); derr != nil {
		err = all(err, derr)
	}
	if _, gerr := f.get(key); gerr == nil {
		err = all(err, fmt.Errorf("%q is still there after its delete", key))
	}
	return err
}

func keyCheck(name string, keys ...string) check {
	return check{"key-" + name, func(f *conf) error {
		for _, k := range keys {
			if err := f.roundTrip(k); err != nil {
				return fmt.Errorf("key %q: %w", k, err)
			}
		}
		return nil
	}}
}

var keyChecks = []check{
	keyCheck("plain", "a", "a/b/c", "k=v/p", "[f]", "~x", "a.b", "-", "_"),
	keyCheck("needs-escapes", "a b", "a+b", "a%2Fb", "a%25", "?x#y", "&<>\"'", "a*b", "a:b,c;d@e!f$g(h)", "+", "%"),
	keyCheck("unicode", "é", "e\u0301", "日本", "😀"),
	keyCheck("double-slash", "a//b"),
	keyCheck("leading-slash", "/a", "//a"),
	keyCheck("trailing-slash", "a/"),
	keyCheck("backslash", `a\b`),
	{"key-beside-key-below-it", func(f *conf) error {
		return all(f.fillKeys("x", "x/y", "x/"), f.holds("x", []byte("x")), f.holds("x/y", []byte("x/y")),
			f.listed(s3.ListObjectsV2Input{}, "x", "x/", "x/y"))
	}},
	{"key-of-1024-bytes", func(f *conf) error {
		return f.roundTrip(strings.Repeat("k", 1024-len(f.prefix)))
	}},
	{"key-of-1024-bytes-in-segments", func(f *conf) error {
		key := strings.Repeat("0123456789abcdef/", 64)[:1023-len(f.prefix)]
		return f.roundTrip(key + "k")
	}},
	{"key-of-1025-bytes", func(f *conf) error {
		_, err := f.put(strings.Repeat("0123456789abcdef/", 64)[:1024-len(f.prefix)]+"k", nil)
		return refused(err, 400, "KeyTooLongError")
	}},
	{"keys-differing-in-case", func(f *conf) error {
		return all(f.fillKeys("K", "k"), f.holds("K", []byte("K")), f.holds("k", []byte("k")))
	}},
}
