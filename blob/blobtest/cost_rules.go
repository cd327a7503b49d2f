package blobtest

import "github.com/wholeblob/wholeblob/blob"

func costRules() []rule {
	needs := func(c *Config, _ blob.Capabilities) string {
		if c.Requests == nil {
			return "Config.Requests is nil"
		}
		return ""
	}
	return []rule{
		{name: "cost/get", says: "A Get of an object of one segment costs one request, and so does an empty range.", needs: needs, run: costGet},
		{name: "cost/set", says: "A Set below the multipart threshold costs one request.", needs: needs, run: costSet},
		{name: "cost/stat-delete", says: "Stat and Delete cost one request each, for a missing key too.", needs: needs, run: costStat},
		{name: "cost/list", says: "A List costs one request per 1000 keys.", needs: needs, run: costList},
		{name: "cost/deleteall", says: "DeleteAll costs one request with a batch call, one per key without.", needs: needs, run: costDeleteAll},
	}
}

func costGet(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 100), nil)
	for _, r := range []blob.Range{{}, blob.Span(10, 10), blob.From(50), blob.Span(10, 0), blob.Last(0)} {
		e.requests("Get "+r.String(), 1, func() { e.mustGet(k, &blob.GetOptions{Range: r}) })
	}
}

func costSet(e *env) {
	e.mustSet(e.key("first"), nil, nil) // endpoints nobody vouches for are asked a question at the first Set
	for _, size := range []int64{0, 1, min(100, e.PartSize-1)} {
		e.requests("Set", 1, func() { e.mustSet(e.key("x"), e.data("x", size), nil) })
	}
}

func costStat(e *env) {
	k := e.key("x")
	e.mustSet(k, nil, nil)
	e.requests("Stat", 1, func() { e.mustStat(k) })
	e.requests("Stat of a missing key", 1, func() { _, _ = e.store.Stat(e.ctx, e.key("missing")) })
	e.requests("Delete", 1, func() { e.mustDelete(k) })
	e.requests("Delete of a missing key", 1, func() { e.mustDelete(k) })
}

func costList(e *env) {
	e.setKeys("a", "b", "c/d")
	e.requests("List of 3 keys", 1, func() { e.keys(e.prefix, nil) })
	e.requests("List of 3 keys with a delimiter", 1, func() { e.keys(e.prefix, byDelimiter("/")) })
}

func costDeleteAll(e *env) {
	e.setKeys("a", "b", "c")
	n := int64(3)
	if e.caps.BatchDelete {
		n = 1
	}
	e.requests("DeleteAll of 3 keys", n, func() {
		if err := e.store.DeleteAll(e.ctx, []string{e.key("a"), e.key("b"), e.key("c")}); err != nil {
			e.Errorf("DeleteAll: %v", err)
		}
	})
}
