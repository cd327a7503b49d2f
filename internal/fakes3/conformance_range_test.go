package fakes3_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// ranged checks one ranged GET of "k": the piece [off, end) of data.
func (f *conf) ranged(spec string, data []byte, off, end int) error {
	g, err := f.get("k", func(in *s3.GetObjectInput) { in.Range = &spec })
	if err != nil {
		return fmt.Errorf("%s: %w", spec, err)
	}
	return all(
		same(spec+" content", string(g.data), string(data[off:end])),
		same(spec+" Content-Range", aws.ToString(g.ContentRange), fmt.Sprintf("bytes %d-%d/%d", off, end-1, len(data))),
		same(spec+" length", aws.ToInt64(g.ContentLength), int64(end-off)),
	)
}

// unsatisfiable checks that a range is refused.
func (f *conf) unsatisfiable(spec string) error {
	_, err := f.get("k", func(in *s3.GetObjectInput) { in.Range = &spec })
	return refused(err, 416, "InvalidRange")
}

func byPart(n int32) func(*s3.GetObjectInput) {
	return func(in *s3.GetObjectInput) { in.PartNumber = &n }
}

var rangeChecks = []check{
	{"ranges", func(f *conf) error {
		data := noise(1000)
		_, err := f.put("k", data)
		return all(err,
			f.ranged("bytes=0-0", data, 0, 1),
			f.ranged("bytes=10-19", data, 10, 20),
			f.ranged("bytes=990-", data, 990, 1000),
			f.ranged("bytes=999-5000", data, 999, 1000),
			f.ranged("bytes=-10", data, 990, 1000),
			f.ranged("bytes=-5000", data, 0, 1000),
		)
	}},
	{"range-past-the-end", func(f *conf) error {
		_, err := f.put("k", noise(1000))
		return all(err, f.unsatisfiable("bytes=1000-"), f.unsatisfiable("bytes=5000-6000"))
	}},
	{"range-past-the-end-names-the-size", func(f *conf) error {
		_, err := f.put("k", noise(1000))
		_, gerr := f.get("k", func(in *s3.GetObjectInput) { in.Range = aws.String("bytes=1000-") })
		return all(err, same("Content-Range", headerOf(gerr, "Content-Range"), "bytes */1000"))
	}},
	{"range-suffix-of-nothing", func(f *conf) error {
		_, err := f.put("k", noise(1000))
		return all(err, f.unsatisfiable("bytes=-0"))
	}},
	{"range-of-an-empty-object", func(f *conf) error {
		_, err := f.put("k", nil)
		return all(err, f.unsatisfiable("bytes=0-"))
	}},
	{"suffix-of-an-empty-object", func(f *conf) error {
		_, err := f.put("k", nil)
		g, gerr := f.get("k", func(in *s3.GetObjectInput) { in.Range = aws.String("bytes=-10") })
		if err := all(err, gerr); err != nil {
			return err
		}
		return same("content", len(g.data), 0)
	}},
	{"range-that-is-no-range-is-ignored", func(f *conf) error {
		data := noise(100)
		_, err := f.put("k", data)
		g, gerr := f.get("k", func(in *s3.GetObjectInput) { in.Range = aws.String("bytes=9-5") })
		if err := all(err, gerr); err != nil {
			return err
		}
		return all(same("content", string(g.data), string(data)), same("Content-Range", aws.ToString(g.ContentRange), ""))
	}},
	{"head-range", func(f *conf) error {
		_, err := f.put("k", noise(1000))
		h, herr := f.head("k", func(in *s3.HeadObjectInput) { in.Range = aws.String("bytes=10-19") })
		if err := all(err, herr); err != nil {
			return err
		}
		return same("length", aws.ToInt64(h.ContentLength), 10)
	}},
	{"part-of-a-plain-object", func(f *conf) error {
		data := noise(1000)
		_, err := f.put("k", data)
		g, gerr := f.get("k", byPart(1))
		if err := all(err, gerr); err != nil {
			return err
		}
		_, beyond := f.get("k", byPart(2))
		return all(
			same("content", string(g.data), string(data)),
			same("Content-Range", aws.ToString(g.ContentRange), "bytes 0-999/1000"),
			same("parts count", aws.ToInt32(g.PartsCount), 0),
			refused(beyond, 416, "InvalidPartNumber"),
		)
	}},
	{"part-of-an-empty-object", func(f *conf) error {
		_, err := f.put("k", nil)
		g, gerr := f.get("k", byPart(1))
		if err := all(err, gerr); err != nil {
			return err
		}
		return all(same("content", len(g.data), 0), same("Content-Range", aws.ToString(g.ContentRange), ""))
	}},
	{"part-number-out-of-bounds", func(f *conf) error {
		_, err := f.put("k", nil)
		_, low := f.get("k", byPart(0))
		_, high := f.get("k", byPart(10_001))
		return all(err, refused(low, 400, "InvalidArgument"), refused(high, 400, "InvalidArgument"))
	}},
	{"part-and-range-together", func(f *conf) error {
		_, err := f.put("k", noise(10))
		_, gerr := f.get("k", byPart(1), func(in *s3.GetObjectInput) { in.Range = aws.String("bytes=0-1") })
		return all(err, refused(gerr, 400, "InvalidRequest"))
	}},
}
