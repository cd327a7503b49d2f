package fakes3_test

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

var conditionChecks = []check{
	{"if-none-match-star-on-absent", func(f *conf) error {
		_, err := f.put("k", []byte("1"), ifAbsent)
		return all(err, f.holds("k", []byte("1")))
	}},
	{"if-none-match-star-on-present", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, perr := f.put("k", []byte("2"), ifAbsent)
		return all(err, refused(perr, 412, "PreconditionFailed"), f.holds("k", []byte("1")))
	}},
	{"if-match-right", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, perr := f.put("k", []byte("2"), ifMatch(md5ETag([]byte("1"))))
		return all(err, perr, f.holds("k", []byte("2")))
	}},
	{"if-match-wrong", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, perr := f.put("k", []byte("2"), ifMatch(md5ETag([]byte("x"))))
		return all(err, refused(perr, 412, "PreconditionFailed"), f.holds("k", []byte("1")))
	}},
	{"if-match-absent", func(f *conf) error {
		_, err := f.put("k", []byte("2"), ifMatch(md5ETag([]byte("x"))))
		return refused(err, 404, "NoSuchKey")
	}},
	{"delete-if-match-wrong", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, derr := f.del("k", func(in *s3.DeleteObjectInput) { in.IfMatch = aws.String(md5ETag([]byte("x"))) })
		return all(err, refused(derr, 412, "PreconditionFailed"), f.holds("k", []byte("1")))
	}},
	{"delete-if-match-right", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, derr := f.del("k", func(in *s3.DeleteObjectInput) { in.IfMatch = aws.String(md5ETag([]byte("1"))) })
		_, gerr := f.get("k")
		return all(err, derr, refused(gerr, 404, "NoSuchKey"))
	}},
	{"delete-if-match-absent", func(f *conf) error {
		_, err := f.del("k", func(in *s3.DeleteObjectInput) { in.IfMatch = aws.String(md5ETag([]byte("1"))) })
		return refused(err, 404, "NoSuchKey")
	}},
	{"get-if-match", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, yes := f.get("k", func(in *s3.GetObjectInput) { in.IfMatch = aws.String(md5ETag([]byte("1"))) })
		_, no := f.get("k", func(in *s3.GetObjectInput) { in.IfMatch = aws.String(md5ETag([]byte("2"))) })
		return all(err, yes, refused(no, 412, "PreconditionFailed"))
	}},
	{"get-if-none-match", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		_, no := f.get("k", func(in *s3.GetObjectInput) { in.IfNoneMatch = aws.String(md5ETag([]byte("1"))) })
		_, yes := f.get("k", func(in *s3.GetObjectInput) { in.IfNoneMatch = aws.String(md5ETag([]byte("2"))) })
		return all(err, yes, refused(no, 304, ""))
	}},
	{"get-if-modified-since", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		h, herr := f.head("k")
		if err := all(err, herr); err != nil {
			return err
		}
		old := h.LastModified.Add(-3600e9)
		_, yes := f.get("k", func(in *s3.GetObjectInput) { in.IfModifiedSince = &old })
		_, un := f.get("k", func(in *s3.GetObjectInput) { in.IfUnmodifiedSince = &old })
		return all(yes, refused(un, 412, "PreconditionFailed"))
	}},
	{"get-not-modified-since-its-own-date", func(f *conf) error {
		_, err := f.put("k", []byte("1"))
		h, herr := f.head("k")
		if err := all(err, herr); err != nil {
			return err
		}
		_, gerr := f.get("k", func(in *s3.GetObjectInput) { in.IfModifiedSince = h.LastModified })
		return refused(gerr, 304, "")
	}},
	{"racing-creators-one-wins", func(f *conf) error {
		const racers = 8
		won := make(chan error, racers)
		for i := range racers {
			go func() {
				_, err := f.put("k", []byte{byte(i)}, ifAbsent)
				won <- err
			}()
		}
		winners := 0
		for range racers {
			err := <-won
			switch st := statusOf(err); {
			case err == nil:
				winners++
			case st != http.StatusPreconditionFailed && st != http.StatusConflict:
				return err
			}
		}
		return same("winners", winners, 1)
	}},
}

func ifAbsent(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") }

func ifMatch(v string) func(*s3.PutObjectInput) {
	return func(in *s3.PutObjectInput) { in.IfMatch = &v }
}
