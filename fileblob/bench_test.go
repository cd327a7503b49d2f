package fileblob

import (
	"fmt"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

func BenchmarkSet(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		for _, noSync := range []bool{false, true} {
			b.Run(fmt.Sprintf("size=%d/nosync=%v", size, noSync), func(b *testing.B) {
				s := open(b, b.TempDir(), Options{NoSync: noSync})
				data := make([]byte, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, err := s.Set(b.Context(), fmt.Sprintf("a/b/%d", i%16), blob.Bytes(data), nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			s := open(b, b.TempDir(), Options{NoSync: true})
			if _, err := s.Set(b.Context(), "a/b/k", blob.Bytes(make([]byte, size)), nil); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Get(b.Context(), "a/b/k", nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	s := open(b, b.TempDir(), Options{NoSync: true})
	for i := range 1000 {
		set(b, s, fmt.Sprintf("a/b/%d", i), "")
	}
	for b.Loop() {
		if n := len(list(b, s, "a/", nil)); n != 1000 {
			b.Fatal(n)
		}
	}
}
