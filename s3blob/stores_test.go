package s3blob_test

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/internal/realserver"
)

var updateStores = flag.Bool("update", false, "rewrite the table of docs/stores.md; needs every server")

// The table stands between these lines of storesFile.
const (
	storesFile = "../docs/stores.md"
	tableBegin = "<!-- made by TestStoresTable: go test ./s3blob -run TestStoresTable -update -->\n"
	tableEnd   = "<!-- end of what TestStoresTable makes -->\n"
)

// probed is a server that the questions are put to.
type probed struct {
	name  string                          // its column
	start func(t *testing.T) *probeTarget // may skip the test
}

var probedServers = []probed{
	{"versitygw", func(t *testing.T) *probeTarget { return realTarget(t, realserver.VersityGW(t)) }},
	{"SeaweedFS", func(t *testing.T) *probeTarget { return realTarget(t, realserver.SeaweedFS(t)) }},
	{"the fake of the tests", fakeTarget},
}

// Docs say of each server what it answers today; a server that is not to be had keeps its column.
func TestStoresTable(t *testing.T) {
	text, err := os.ReadFile(storesFile)
	if err != nil {
		t.Fatal(err)
	}
	before, table, after := cutTable(t, string(text))
	answers := map[string][]string{}
	for _, s := range probedServers {
		t.Run(s.name, func(t *testing.T) {
			target := s.start(t)
			got := make([]string, len(quirks))
			for i, q := range quirks {
				got[i] = q.ask(&probe{T: t, probeTarget: target, prefix: fmt.Sprintf("q%d-", i)})
			}
			answers[s.name] = got
			if !*updateStores {
				wantColumn(t, table, s.name, got)
			}
		})
	}
	if !*updateStores {
		return
	}
	for _, s := range probedServers {
		if answers[s.name] == nil {
			t.Fatalf("no update: %s was not asked", s.name)
		}
	}
	if err := os.WriteFile(storesFile, []byte(before+makeTable(answers)+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func cutTable(t *testing.T, text string) (before, table, after string) {
	t.Helper()
	before, rest, ok1 := strings.Cut(text, tableBegin)
	table, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no lines that say where the table begins and ends", storesFile)
	}
	return before + tableBegin, table, tableEnd + after
}

// makeTable has a row for each question: what Amazon documents, and what each server answers, emphasized where that is
// something else.
func makeTable(answers map[string][]string) string {
	var b strings.Builder
	b.WriteString("| question | Amazon S3 documents |")
	for _, s := range probedServers {
		b.WriteString(" " + s.name + " |")
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", 2+len(probedServers)) + "\n")
	for i, q := range quirks {
		fmt.Fprintf(&b, "| %s | %s |", q.question, q.amazon)
		for _, s := range probedServers {
			b.WriteString(" " + cell(q, answers[s.name][i]) + " |")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func cell(q quirk, answer string) string {
	switch q.amazon {
	case answer:
		return "same"
	case undocumented:
		return answer
	}
	return "**" + answer + "**"
}

// wantColumn compares one column of the table, and the questions.
func wantColumn(t *testing.T, table, server string, got []string) {
	t.Helper()
	rows := strings.Split(strings.TrimSpace(table), "\n")
	head := cells(rows[0])
	column := slices.Index(head, server)
	if column < 0 || len(rows) != len(quirks)+2 {
		t.Fatalf("the table has the columns %q and %d rows; want a column %q and %d rows: run with -update", head, len(rows)-2, server, len(quirks))
	}
	for i, q := range quirks {
		row := cells(rows[i+2])
		if want := []string{q.question, q.amazon}; !slices.Equal(row[:2], want) {
			t.Errorf("row %d of the table asks %q, want %q: run with -update", i, row[:2], want)
		} else if want := cell(q, got[i]); row[column] != want {
			t.Errorf("%s: %s answers %q, the table says %q", q.question, server, want, row[column])
		}
	}
}

// cells are those of a row.
func cells(row string) []string {
	var list []string
	for _, c := range strings.Split(strings.Trim(row, "|"), "|") {
		list = append(list, strings.TrimSpace(c))
	}
	return list
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
