package azblob

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/wholeblob/wholeblob/internal/param"
)

// publicSuffix is where the accounts of Azure's public cloud are.
const publicSuffix = "core.windows.net"

// clouds are the suffixes of Azure's own blob endpoints, the second kind with a DNS zone between ("Storage account overview").
var clouds = []string{
	".blob." + publicSuffix, ".blob.core.usgovcloudapi.net", ".blob.core.chinacloudapi.cn",
	".blob.storage.azure.net",
}

// azure reports whether the endpoint is one of Azure's own.
func azure(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return slices.ContainsFunc(clouds, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

// account resolves account, endpoint and kind of credentials: afterwards Endpoint is set, and ConnectionString is not.
func (o *Options) account() error {
	if err := o.oneCredential(); err != nil {
		return err
	}
	if o.ConnectionString != "" {
		if err := o.connectionString(); err != nil {
			return err
		}
	}
	if err := o.endpoint(); err != nil {
		return err
	}
	if o.SAS != "" {
		o.SAS = strings.TrimPrefix(o.SAS, "?")
		// The text of url's own error would quote from it.
		if q, err := url.ParseQuery(o.SAS); err != nil || !q.Has("sig") || strings.ContainsAny(o.SAS, "?#") {
			return invalid("SAS is no shared access signature: want the query string of a URL, with sig=")
		}
	}
	if o.AccountKey != "" {
		if _, err := base64.StdEncoding.DecodeString(o.AccountKey); err != nil {
			return invalid("AccountKey is not base64")
		}
		if o.Account == "" {
			return invalid("AccountKey without Account: a signature names the account")
		}
	}
	switch {
	case o.usesTokens() && strings.HasPrefix(o.Endpoint, "http://"):
		return invalid("tokens are not sent over plain HTTP to %s: set AccountKey, SAS or Anonymous, or an https:// Endpoint", param.Redact(o.Endpoint))
	case o.SAS != "" && o.inClear():
		return invalid("a SAS is not sent over plain HTTP to %s: set AccountKey, or an https:// Endpoint", param.Redact(o.Endpoint))
	}
	return nil
}

// inClear reports whether what is sent can be read on the way. (The signature of an AccountKey can be, and is good for one request only.)
func (o *Options) inClear() bool {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme == "https" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && !ip.IsLoopback()
}

func (o *Options) oneCredential() error {
	var given []string
	for _, c := range []struct {
		name string
		set  bool
	}{
		{"AccountKey", o.AccountKey != ""},
		{"SAS", o.SAS != ""},
		{"ConnectionString", o.ConnectionString != ""},
		{"Credential", o.Credential != nil},
		{"ManagedIdentity", o.ManagedIdentity},
		{"Anonymous", o.Anonymous},
	} {
		if c.set {
			given = append(given, c.name)
		}
	}
	if len(given) > 1 {
		return invalid("%s exclude each other", strings.Join(given, " and "))
	}
	return nil
}

// usesTokens reports whether requests carry a token.
func (o *Options) usesTokens() bool { return o.AccountKey == "" && o.SAS == "" && !o.Anonymous }

// endpoint fills in Endpoint from Account, or the other way round.
func (o *Options) endpoint() error {
	if o.Endpoint == "" {
		switch {
		case o.Account == "":
			return invalid("neither Account nor Endpoint is set")
		case len(o.Account) < 3, len(o.Account) > 24, strings.Trim(o.Account, "abcdefghijklmnopqrstuvwxyz0123456789") != "":
			return invalid("Account is %q: want 3 to 24 lower-case letters and digits", o.Account)
		}
		o.Endpoint = fmt.Sprintf("https://%s.blob.%s", o.Account, publicSuffix)
		return nil
	}
	endpoint, err := param.ParseEndpoint(o.Endpoint)
	if err != nil {
		return fmt.Errorf("field Endpoint: %w", err)
	}
	o.Endpoint = endpoint
	if o.Account != "" {
		if strings.Trim(o.Account, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return invalid("Account is %q: want letters, digits, '-' and '_'", o.Account)
		}
		return nil
	}
	u, err := url.Parse(endpoint)
	switch path := strings.Trim(u.Path, "/"); {
	case err != nil:
		return invalid("Endpoint cannot be parsed")
	case azure(endpoint):
		o.Account, _, _ = strings.Cut(u.Hostname(), ".")
	case path != "" && !strings.Contains(path, "/"):
		o.Account = path
	}
	return nil
}

// connectionString takes ConnectionString apart ("Configure Azure Storage connection strings"). Of the other services only the names of their
// endpoints are known: they are passed over.
func (o *Options) connectionString() error {
	if o.Account != "" || o.Endpoint != "" {
		return invalid("ConnectionString excludes Account and Endpoint")
	}
	protocol, suffix := "https", publicSuffix
	seen := make(map[string]bool)
	for pair := range strings.SplitSeq(o.ConnectionString, ";") {
		if pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if !ok || value == "" {
			return invalid("ConnectionString has a part that is no Name=value") // which may be a piece of a key
		}
		if seen[name] {
			return invalid("ConnectionString has %s twice", name)
		}
		seen[name] = true
		switch name {
		case "AccountName":
			o.Account = value
		case "AccountKey":
			o.AccountKey = value
		case "SharedAccessSignature":
			o.SAS = value
		case "BlobEndpoint":
			o.Endpoint = strings.TrimSuffix(value, "/")
		case "EndpointSuffix":
			suffix = value
		case "DefaultEndpointsProtocol":
			protocol = value
		case "QueueEndpoint", "TableEndpoint", "FileEndpoint", "DfsEndpoint", "WebEndpoint", "BlobSecondaryEndpoint",
			"QueueSecondaryEndpoint", "TableSecondaryEndpoint", "FileSecondaryEndpoint":
		default:
			return invalid("ConnectionString has an unknown name: want AccountName, AccountKey, SharedAccessSignature, BlobEndpoint, EndpointSuffix, DefaultEndpointsProtocol")
		}
	}
	switch {
	case o.AccountKey == "" && o.SAS == "":
		return invalid("ConnectionString has neither AccountKey nor SharedAccessSignature")
	case o.AccountKey != "" && o.SAS != "":
		return invalid("ConnectionString has both AccountKey and SharedAccessSignature")
	}
	if o.Endpoint == "" && o.Account != "" {
		o.Endpoint = fmt.Sprintf("%s://%s.blob.%s", protocol, o.Account, suffix)
	}
	o.ConnectionString = ""
	return nil
}

// secrets are the values that no error may show.
func (o *Options) secrets() []string {
	var out []string
	if o.AccountKey != "" {
		out = append(out, o.AccountKey)
	}
	if q, err := url.ParseQuery(o.SAS); err == nil && q.Get("sig") != "" {
		sig := q.Get("sig")
		out = append(out, sig, url.QueryEscape(sig), url.PathEscape(sig))
		for pair := range strings.SplitSeq(o.SAS, "&") {
			if given, ok := strings.CutPrefix(pair, "sig="); ok {
				out = append(out, given) // escaped in another way, as with lower-case digits
			}
		}
	}
	return out
}
