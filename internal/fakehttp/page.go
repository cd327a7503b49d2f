package fakehttp

// Page is one page of a listing on its way out.
type Page struct {
	// Keys may be removed, repeated and put in another order.
	Keys     []string
	Prefixes []string
	// Truncated says that there are more pages, Token where they begin.
	Truncated bool
	Token     string
	// Asked is the marker that the request carried.
	Asked string
	// Here is a marker that leads to this page again.
	Here string
}

// TruncatedNoToken is a value for Shape.List: more to come, but no way on.
func TruncatedNoToken(p *Page) { p.Truncated, p.Token = true, "" }

// SameToken sends the client back to the page it just got.
func SameToken(p *Page) {
	if p.Asked != "" {
		p.Truncated, p.Token = true, p.Asked
	}
}

// EmptyPage replaces the page by one without entries whose token leads to the
// same entries again, so that a client which goes on misses nothing. Use it
// with Times: as a steady trait it never ends.
func EmptyPage(p *Page) {
	p.Keys, p.Prefixes = nil, nil
	p.Truncated, p.Token = true, p.Here
}

// TokenAtEnd sends a token with the last page.
func TokenAtEnd(p *Page) {
	if !p.Truncated {
		p.Token = "t-after-the-end"
	}
}
