package fakes3_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// BenchmarkServer is the server as the bench demo embeds it, with a client
// that does as little as net/http lets it.
func BenchmarkServer(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		data := noise(size)
		s := fakes3.New(fakes3.Options{Buckets: []string{"bucket"}, Anonymous: true, NoLog: true, FastETag: true})
		c := s.Client()
		buf := make([]byte, size)
		for _, method := range []string{"PUT", "GET"} {
			b.Run(fmt.Sprintf("%s/%dKiB", method, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					var body io.Reader
					if method == "PUT" {
						body = bytes.NewReader(data)
					}
					req, err := http.NewRequestWithContext(b.Context(), method, s.URL()+"/bucket/k", body)
					if err != nil {
						b.Fatal(err)
					}
					resp, err := c.Do(req)
					if err != nil {
						b.Fatal(err)
					}
					if method == "GET" {
						if _, err := io.ReadFull(resp.Body, buf); err != nil {
							b.Fatal(err)
						}
					}
					if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
						b.Fatal(resp.Status, err)
					}
				}
			})
		}
		c.CloseIdleConnections()
		s.Close()
	}
}
