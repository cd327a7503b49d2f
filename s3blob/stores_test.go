package s3blob_test

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/internal/realserver"
	"github.com/wholeblob/wholeblob/internal/realserver/storetable"
)

var updateStores = flag.Bool("update", false, "rewrite the table of docs/stores.md; needs every server")

var probedServers = []storetable.Server[*probeTarget]{
	{Name: "versitygw", Start: func(t *testing.T) *probeTarget { return realTarget(t, realserver.VersityGW(t)) }},
	{Name: "SeaweedFS", Start: func(t *testing.T) *probeTarget { return realTarget(t, realserver.SeaweedFS(t)) }},
	{Name: "the fake of the tests", Start: fakeTarget},
}

// Docs say of each server what it answers today; a server that is not to be had keeps its column.
func TestStoresTable(t *testing.T) {
	var questions []storetable.Question[*probeTarget]
	for _, q := range quirks {
		questions = append(questions, storetable.Question[*probeTarget]{Text: q.question, Documented: q.amazon, Ask: func(t *testing.T, target *probeTarget, key string) string {
			return q.ask(&probe{T: t, probeTarget: target, prefix: key})
		}})
	}
	table := storetable.Table{File: "../docs/stores.md", Package: "s3blob", Service: "Amazon S3"}
	storetable.Run(t, table, *updateStores, questions, probedServers)
}

// probeTarget is a server with what it takes to ask it.
type probeTarget struct {
	version   string
	client    *s3.Client // one request a call, checksums as in users' clients
	tls       *s3.Client // the same server over TLS
	bucket    string
	versioned string
}

func realTarget(t *testing.T, srv *realserver.S3) *probeTarget {
	front, transport := srv.TLSFront(t, nil)
	return target(t, &probeTarget{version: srv.Version, bucket: srv.NewBucket(t), versioned: srv.NewBucket(t, realserver.Versioned)},
		srv.Endpoint, front.Endpoint, transport, srv.AccessKey, srv.SecretKey)
}

func fakeTarget(t *testing.T) *probeTarget {
	// One store over plain HTTP; over TLS another, as nothing that is asked there needs the same objects.
	plain := fake(t, fakes3.Options{Buckets: []string{"b", "v"}})
	plain.SetVersioning("v", true)
	tls := fake(t, fakes3.Options{TLS: true})
	transport := tls.Transport()
	t.Cleanup(transport.CloseIdleConnections)
	c := fakes3.DefaultCredentials()
	return target(t, &probeTarget{version: "this repository's", bucket: "b", versioned: "v"}, plain.URL(), tls.URL(), transport, c.AccessKey, c.SecretKey)
}

func target(t *testing.T, p *probeTarget, endpoint, tlsEndpoint string, tls *http.Transport, access, secret string) *probeTarget {
	t.Helper()
	options := s3.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1", UsePathStyle: true, Retryer: aws.NopRetryer{},
		Credentials:                credentials.NewStaticCredentialsProvider(access, secret, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
		HTTPClient:                 &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}},
	}
	p.client = s3.New(options)
	p.tls = s3.New(options, func(o *s3.Options) {
		o.BaseEndpoint, o.HTTPClient = &tlsEndpoint, &http.Client{Transport: tls}
	})
	return p
}

// probe is one question put to one server. Its methods fail the test where a server gives no answer to what is only the
// preparation of a question.
type probe struct {
	*testing.T
	*probeTarget
	prefix string // of the question's keys
}

func (p *probe) key(name string) *string { return aws.String(p.prefix + name) }

func (p *probe) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// outcome is how a server answered: its status and error code, or yes.
func outcome(err error, yes string) string {
	var reply *awshttp.ResponseError
	var api smithy.APIError
	switch {
	case err == nil:
		return yes
	case !errors.As(err, &reply):
		return "no answer"
	case errors.As(err, &api) && api.ErrorCode() != "" && !strings.HasPrefix(api.ErrorCode(), "UnknownError"):
		return fmt.Sprintf("%d %s", reply.HTTPStatusCode(), api.ErrorCode())
	default:
		return fmt.Sprint(reply.HTTPStatusCode())
	}
}
