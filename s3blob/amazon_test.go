package s3blob

import "testing"

// What depends on whose endpoint it is: trust in conditions, the SDK's checksums, the smallest part.
func TestAmazonIsTrustedAndOthersAreNot(t *testing.T) {
	for endpoint, want := range map[string]struct{ amazon, checksums bool }{
		"":                                       {true, true},
		"https://s3.eu-central-1.amazonaws.com":  {true, true},
		"https://s3.cn-north-1.amazonaws.com.cn": {true, true},
		"https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com": {true, true},
		"http://s3.eu-central-1.amazonaws.com":                  {true, false},
		"https://s3.example.com":                                {},
		"https://amazonaws.com.example.com":                     {},
		"https://notamazonaws.com":                              {},
		"http://127.0.0.1:9000":                                 {},
	} {
		o, err := complete("bucket", &Options{Endpoint: endpoint})
		if err != nil {
			t.Fatal(err)
		}
		tr := o.traits()
		if o.amazon() != want.amazon || tr.SetConditions != want.amazon || tr.DeleteConditions != want.amazon || (tr.MinPart > 0) != want.amazon {
			t.Errorf("%q: amazon %t, traits %+v", endpoint, o.amazon(), tr)
		}
		if o.checksums() != want.checksums {
			t.Errorf("%q: checksums %t", endpoint, o.checksums())
		}
	}
}
