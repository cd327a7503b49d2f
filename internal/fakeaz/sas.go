package fakeaz

import (
	"net/http"
	"strings"
	"time"
)

// authenticateSAS checks a service SAS of a container or a blob ("Create a service SAS") or an account SAS ("Create an
// account SAS"), of version 2018-11-09 or later, signed with a key of the account. User delegation SAS, stored access
// policies, address ranges and directories are not supported and are refused.
func (s *Server) authenticateSAS(r *request) (principal, *apiError) {
	q := r.query
	for _, name := range []string{"skoid", "si", "sip", "sdd"} {
		if q.Get(name) != "" {
			return principal{}, errAuth("this server does not support " + name)
		}
	}
	if q.Get("sv") < "2018-11-09" || r.account != s.opts.Account {
		return principal{}, errAuth("version or account not supported")
	}
	who := principal{kind: bySAS, permissions: q.Get("sp")}
	var text string
	if q.Get("srt") != "" {
		who.types = q.Get("srt")
		text = accountSAS(s.opts.Account, q.Get)
	} else {
		if err := covers(r); err != nil {
			return principal{}, err
		}
		text = serviceSAS(s.opts.Account, r)
	}
	if !s.signed(text, q.Get("sig")) {
		return principal{}, errAuth("Signature did not match. String to sign used was " + text)
	}
	if !within(s.now(), q.Get("st"), q.Get("se")) {
		return principal{}, errAuth("Signature not valid in the specified time frame: Start [" + q.Get("st") + "] - Expiry [" + q.Get("se") + "]")
	}
	if q.Get("spr") == "https" && !r.tls {
		return principal{}, fail(http.StatusForbidden, "AuthorizationProtocolMismatch", "This request is not authorized to perform this operation using this protocol.")
	}
	if who.types != "" && !strings.Contains(q.Get("ss"), "b") {
		return principal{}, fail(http.StatusForbidden, "AuthorizationServiceMismatch", "This request is not authorized to perform this operation using this service.")
	}
	return who, nil
}

// covers is whether the signed resource can be about what the request names.
func covers(r *request) *apiError {
	q := r.query
	ok := false
	switch q.Get("sr") {
	case "c":
		ok = r.container != ""
	case "b":
		ok = r.blob != "" && q.Get("snapshot") == "" && q.Get("versionid") == ""
	case "bv":
		ok = r.blob != "" && q.Get("versionid") != ""
	case "bs":
		ok = r.blob != "" && q.Get("snapshot") != ""
	}
	if !ok {
		return errAuth("the signed resource is not what the request names")
	}
	return nil
}

func serviceSAS(account string, r *request) string {
	q := r.query
	resource := "/blob/" + account + "/" + r.container
	if q.Get("sr") != "c" {
		resource += "/" + r.blob
	}
	moment := ""
	switch q.Get("sr") {
	case "bv":
		moment = q.Get("versionid")
	case "bs":
		moment = q.Get("snapshot")
	}
	fields := []string{
		q.Get("sp"), q.Get("st"), q.Get("se"), resource, q.Get("si"), q.Get("sip"), q.Get("spr"), q.Get("sv"), q.Get("sr"), moment,
	}
	if q.Get("sv") >= "2020-12-06" {
		fields = append(fields, q.Get("ses"))
	}
	return strings.Join(append(fields, q.Get("rscc"), q.Get("rscd"), q.Get("rsce"), q.Get("rscl"), q.Get("rsct")), "\n")
}

func accountSAS(account string, get func(string) string) string {
	fields := []string{
		account, get("sp"), get("ss"), get("srt"), get("st"), get("se"), get("sip"), get("spr"), get("sv"),
	}
	if get("sv") >= "2020-12-06" {
		fields = append(fields, get("ses"))
	}
	return strings.Join(append(fields, ""), "\n")
}

// within compares a time with a start, which may be missing, and an expiry, which may not.
func within(now time.Time, start, expiry string) bool {
	parse := func(v string) (time.Time, bool) {
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z", time.DateOnly} {
			if t, err := time.Parse(layout, v); err == nil {
				return t, true
			}
		}
		return time.Time{}, false
	}
	if start != "" {
		if t, ok := parse(start); !ok || now.Before(t) {
			return false
		}
	}
	t, ok := parse(expiry)
	return ok && now.Before(t)
}

// rights are, per operation, the permissions of which a SAS needs one and the type of resource that an account SAS must
// be for ("Create an account SAS", table of permissions by operation).
var rights = map[string]struct{ any, resource string }{
	"GetBlob":                  {"r", "o"},
	"GetBlobProperties":        {"r", "o"},
	"GetBlockList":             {"r", "o"},
	"PutBlob":                  {"wc", "o"},
	"PutBlock":                 {"wc", "o"},
	"PutBlockList":             {"wc", "o"},
	"CopyBlob":                 {"wc", "o"},
	"CopyBlobFromURL":          {"wc", "o"},
	"SnapshotBlob":             {"wc", "o"},
	"DeleteBlob":               {"d", "o"},
	"DeleteBlobVersion":        {"x", "o"},
	"UndeleteBlob":             {"w", "o"},
	"ListBlobs":                {"l", "c"},
	"CreateContainer":          {"wc", "c"},
	"DeleteContainer":          {"d", "c"},
	"GetContainerProperties":   {"r", "c"},
	"ListContainers":           {"l", "s"},
	"GetBlobServiceProperties": {"r", "s"},
}

// may is whether a SAS allows an operation; others allow all. A service SAS allows nothing on a container but to list
// it. Every part of a batch is checked by itself, the batch as a whole is not.
func (p principal) may(op string, overwrites bool) *apiError {
	if p.kind != bySAS || op == "BlobBatch" {
		return nil
	}
	need := rights[op]
	if p.types != "" && !strings.Contains(p.types, need.resource) {
		return fail(http.StatusForbidden, "AuthorizationResourceTypeMismatch", "This request is not authorized to perform this operation using this resource type.")
	}
	denied := fail(http.StatusForbidden, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission.")
	if p.types == "" && need.resource != "o" && op != "ListBlobs" {
		return denied
	}
	if overwrites { // c is for new blobs only
		need.any = strings.ReplaceAll(need.any, "c", "")
	}
	if need.any == "" || !strings.ContainsAny(p.permissions, need.any) {
		return denied
	}
	return nil
}
