package fakeaz

import (
	"net/http"
	"slices"
	"strconv"
)

// deleteBlob is Delete Blob. With versioning the blob becomes a previous version; else with soft delete it is kept for
// the retention; else it is gone.
func (c *call) deleteBlob() (*response, *apiError) {
	cd, err := c.writing()
	if err != nil {
		return nil, err
	}
	mode := c.header.Get("x-ms-delete-snapshots")
	if mode != "" && mode != "include" && mode != "only" {
		return nil, errHeader("x-ms-delete-snapshots", mode)
	}
	version, snapshot := c.query.Get("versionid"), c.query.Get("snapshot")
	if mode != "" && (version != "" || snapshot != "") {
		return nil, errInput("x-ms-delete-snapshots is for the blob itself only.")
	}
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	e := c.c.entry(c.s, c.blob)
	r := e.find(version, snapshot)
	if r == nil {
		return nil, c.missing(cd)
	}
	if err := cd.existing(r); err != nil {
		return nil, err
	}
	k := c.s.Knobs()
	if version != "" || snapshot != "" {
		err = e.deletePast(c.s, r)
	} else {
		err = e.deleteBase(c.s, mode)
	}
	if err != nil {
		return nil, err
	}
	if e.empty() {
		delete(c.c.mu.entries, c.blob)
	}
	resp := newResponse(http.StatusAccepted)
	kept := k.Retention > 0 || k.Versioning && version == "" && snapshot == ""
	resp.Set("x-ms-delete-type-permanent", strconv.FormatBool(!kept))
	return resp, nil
}

// deletePast deletes one version or snapshot. The current version cannot be deleted by its id.
func (e *entry) deletePast(s *Server, r *revision) *apiError {
	if r == e.current {
		return fail(http.StatusForbidden, "OperationNotAllowedOnRootBlob", "The operation is not allowed on a root blob.")
	}
	i := slices.IndexFunc(e.past, func(p *past) bool { return p.revision == r })
	if s.retention() > 0 {
		e.past[i] = &past{revision: r, deleted: s.now()}
	} else {
		e.past = slices.Delete(slices.Clone(e.past), i, i+1)
	}
	return nil
}

// deleteBase deletes the blob, its snapshots, or both. Blocks on their way to it go with it.
func (e *entry) deleteBase(s *Server, mode string) *apiError {
	k := s.Knobs()
	if mode == "" && e.snapshots() {
		return fail(http.StatusConflict, "SnapshotsPresent", "This operation is not permitted because the blob has snapshots.")
	}
	if mode != "" {
		e.deleteSnapshots(s)
	}
	if mode == "only" {
		return nil
	}
	old := e.current
	e.current = nil
	e.discardBlocks()
	switch {
	case k.Versioning:
		e.pastVersion(s, old)
	case k.Retention > 0:
		e.gone = &past{revision: old, deleted: s.now()}
	}
	return nil
}

func (e *entry) deleteSnapshots(s *Server) {
	var kept []*past
	for _, p := range e.past {
		switch {
		case p.snapshot == "" || !p.deleted.IsZero():
			kept = append(kept, p)
		case s.retention() > 0:
			kept = append(kept, &past{revision: p.revision, deleted: s.now()})
		}
	}
	e.past = kept
}

func (c *call) undeleteBlob() (*response, *apiError) {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	e := c.c.entry(c.s, c.blob)
	if e == nil || e.current == nil && e.gone == nil && len(e.past) == 0 {
		return nil, errBlobNotFound()
	}
	e.undelete()
	return newResponse(http.StatusOK), nil
}
