package fakeaz

import (
	"net/http"
	"strings"
	"time"
)

// conditions are the conditional headers of a request, as "Specifying conditional headers for Blob service operations"
// has them.
type conditions struct {
	match, noneMatch string
	since, notSince  time.Time // If-Modified-Since, If-Unmodified-Since; zero: absent
}

func (c *call) conditions() (conditions, *apiError) {
	cd, err := parseConditions(c.header, "If-")
	if c.shape.IgnoreIfMatch {
		cd.match = ""
	}
	if c.shape.IgnoreIfNoneMatch {
		cd.noneMatch = ""
	}
	return cd, err
}

func parseConditions(h http.Header, prefix string) (conditions, *apiError) {
	cd := conditions{match: h.Get(prefix + "Match"), noneMatch: h.Get(prefix + "None-Match")}
	for _, d := range []struct {
		name string
		into *time.Time
	}{{prefix + "Modified-Since", &cd.since}, {prefix + "Unmodified-Since", &cd.notSince}} {
		values := h.Values(d.name)
		if len(values) == 0 {
			continue
		}
		t, err := http.ParseTime(values[0])
		if err != nil || len(values) > 1 {
			return cd, errHeader(d.name, strings.Join(values, ","))
		}
		*d.into = t
	}
	return cd, nil
}

func (cd conditions) any() bool {
	return cd.match != "" || cd.noneMatch != "" || !cd.since.IsZero() || !cd.notSince.IsZero()
}

// combined refuses what the document does not allow of writes: of several conditions only If-Match with
// If-Unmodified-Since, and If-None-Match with If-Modified-Since.
func (cd conditions) combined() *apiError {
	first := cd.match != "" || !cd.notSince.IsZero()
	second := cd.noneMatch != "" || !cd.since.IsZero()
	if first && second || strings.Contains(cd.match, ",") || strings.Contains(cd.noneMatch, ",") {
		return fail(http.StatusBadRequest, "MultipleConditionHeadersNotSupported", "Multiple condition headers are not supported.")
	}
	return nil
}

// etagIn compares a list of ETags, or "*", with an ETag; quotes may be missing.
func etagIn(list, etag string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if t = strings.TrimSpace(t); t == "*" || strings.Trim(t, `"`) == strings.Trim(etag, `"`) {
			return true
		}
	}
	return false
}

// read checks the conditions of Get Blob and Get Blob Properties on a blob that exists:
//
//	If-Match && If-Unmodified-Since && (If-None-Match || If-Modified-Since)
func (cd conditions) read(r *revision) *apiError {
	if cd.noneMatch == "*" {
		return fail(http.StatusBadRequest, "UnsatisfiableCondition", "The request includes an unsatisfiable condition for this operation.")
	}
	if cd.match != "" && !etagIn(cd.match, r.etag) || !cd.notSince.IsZero() && second(r.modTime).After(cd.notSince) {
		return errCondition()
	}
	if !cd.changed(r) {
		return errNotModified()
	}
	return nil
}

// changed is (If-None-Match || If-Modified-Since), true when neither is there.
func (cd conditions) changed(r *revision) bool {
	if cd.noneMatch == "" && cd.since.IsZero() {
		return true
	}
	return cd.noneMatch != "" && !etagIn(cd.noneMatch, r.etag) || !cd.since.IsZero() && second(r.modTime).After(cd.since)
}

// write checks the conditions of an operation that replaces cur, nil when there is no blob: then the dates, which it has
// none of, hold (RFC 9110), and no ETag matches. A blob with uncommitted blocks only is none. "*" for a blob that exists
// is refused with 409, not 412.
func (cd conditions) write(cur *revision) *apiError {
	switch {
	case cur == nil && cd.match != "":
		return errCondition()
	case cur == nil:
		return nil
	case cd.noneMatch == "*":
		return errBlobExists()
	case cd.match != "" && !etagIn(cd.match, cur.etag), !cd.notSince.IsZero() && second(cur.modTime).After(cd.notSince), !cd.changed(cur):
		return errCondition()
	}
	return nil
}

// missing is the answer to a read or a delete of a blob that is not there. The documents do not say whether a condition
// goes before that.
func (c *call) missing(cd conditions) *apiError {
	if c.s.Knobs().ConditionsFirst && cd.match != "" {
		return errCondition()
	}
	return errBlobNotFound()
}

// existing checks the conditions of an operation on a blob that exists and is not replaced, such as Delete Blob.
func (cd conditions) existing(cur *revision) *apiError {
	if cd.noneMatch == "*" {
		return errCondition()
	}
	return cd.write(cur)
}
