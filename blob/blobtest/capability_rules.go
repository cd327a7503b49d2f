package blobtest

import "github.com/wholeblob/wholeblob/blob"

func capabilityRules() []rule {
	return []rule{
		{name: "capabilities/named", says: "Capabilities names the store.", run: func(e *env) {
			if e.store.Capabilities().Store == "" {
				e.Errorf("Capabilities().Store is empty")
			}
		}},
		{name: "capabilities/same-always", says: "Capabilities gives the same answer always, without I/O.", run: capabilitiesSame},
		{name: "capabilities/max-object", says: "MaxObject is 0 or the largest object; a larger one is ErrTooLarge before any I/O.", run: capabilitiesMaxObject},
	}
}

func capabilitiesSame(e *env) {
	e.mustSet(e.key("a"), e.data("a", 10), nil)
	var after blob.Capabilities
	e.noRequests("Capabilities", func() { after = e.store.Capabilities() })
	if after != e.caps {
		e.Errorf("Capabilities is %+v, was %+v", after, e.caps)
	}
}

func capabilitiesMaxObject(e *env) {
	limit := e.caps.MaxObject
	if limit < 0 {
		e.Fatalf("MaxObject is negative: %d", limit)
	}
	if limit == 0 || limit+1 < 0 {
		return
	}
	src, reads := untouched(limit + 1)
	e.noRequests("Set above MaxObject", func() {
		_, err := e.store.Set(e.ctx, e.key("large"), src, nil)
		e.refused(err, blob.OpSet, e.key("large"), blob.ErrTooLarge)
	})
	if reads.Load() != 0 {
		e.Errorf("the source was read")
	}
}
