package fakes3_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// start runs a server that ends with the test.
func start(t *testing.T, opts fakes3.Options) *fakes3.Server {
	t.Helper()
	if opts.Buckets == nil {
		opts.Buckets = []string{"bucket"}
	}
	s := fakes3.New(opts)
	t.Cleanup(s.Close)
	return s
}

// sdkClient is a client as a program of a user has it, but for retries: one
// call is one request.
func sdkClient(t *testing.T, s *fakes3.Server, change ...func(*s3.Options)) *s3.Client {
	t.Helper()
	cred := fakes3.DefaultCredentials()
	o := sdkOptions(t, s.Client(), s.URL(), s.Region(), cred.AccessKey, cred.SecretKey)
	for _, f := range change {
		f(&o)
	}
	return s3.New(o)
}

func sdkOptions(t *testing.T, hc *http.Client, endpoint, region, access, secret string) s3.Options {
	t.Helper()
	t.Cleanup(hc.CloseIdleConnections)
	return s3.Options{
		Region:                     region,
		BaseEndpoint:               &endpoint,
		UsePathStyle:               true,
		HTTPClient:                 hc,
		Credentials:                credentials.NewStaticCredentialsProvider(access, secret, ""),
		Retryer:                    aws.NopRetryer{},
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}
}

func closeBody(t *testing.T, resp *http.Response) {
	t.Helper()
	if err := resp.Body.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
