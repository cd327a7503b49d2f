package main

import (
	"fmt"

	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

const embeddedBucket = "bench"

// embedded starts a fake S3 server in this process and returns a store on it, so that the command shows the
// whole path through the S3 client on a machine that has no server. The caller calls stop.
func embedded() (target, error) {
	server, err := fakes3.Start(fakes3.Options{
		Buckets:  []string{embeddedBucket},
		FastETag: true, // MD5 sums would be half of the processor time
		NoLog:    true,
	})
	if err != nil {
		return target{}, fmt.Errorf("starting the embedded S3 server: %w", err)
	}
	credentials := fakes3.DefaultCredentials()
	open := s3Opener(embeddedBucket, &s3blob.Options{
		Endpoint:  server.URL(),
		Region:    server.Region(),
		PathStyle: true,
		AccessKey: credentials.AccessKey,
		SecretKey: credentials.SecretKey,
	})
	name := fmt.Sprintf("s3://%s on %s", embeddedBucket, server.URL())
	return target{name: name, embedded: true, open: open, stop: server.Close}, nil
}
