package fakeaz

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
)

const (
	maxCommitted   = 50_000  // blocks of one blob
	maxUncommitted = 100_000 // blocks on their way to one blob
	maxBlockList   = 16 << 20
)

func (c *call) putBlock() (*response, *apiError) {
	id := c.query.Get("blockid")
	if err := decodeID(id); err != nil {
		return nil, err
	}
	b, err := c.body(c.s.opts.MaxBlock)
	if err != nil {
		return nil, err
	}
	if len(b.data) == 0 { // "Put Block": Content-Length must not be zero
		return nil, fail(http.StatusBadRequest, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.").
			elem("HeaderName", "Content-Length").elem("HeaderValue", "0")
	}
	if err := c.stage(&block{id: id, data: b.data, added: c.s.now()}); err != nil {
		return nil, err
	}
	resp := newResponse(http.StatusCreated)
	b.echo(resp, c.header)
	resp.Set("x-ms-request-server-encrypted", "true")
	return resp, nil
}

// stage adds a block, or replaces the one of its id. The blob itself is not touched; where there is none, one with
// uncommitted blocks only comes to be.
func (c *call) stage(b *block) *apiError {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	e := c.c.make(c.s, c.blob)
	if err := e.fits(b.id, c.s.Knobs()); err != nil {
		return err
	}
	if _, again := e.blocks[b.id]; !again {
		if len(e.blocks) >= c.s.opts.MaxUncommitted {
			return fail(http.StatusConflict, "BlockCountExceedsLimit", "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.")
		}
		e.order = append(e.order, b.id)
	}
	e.blocks[b.id] = b
	e.touched = b.added
	return nil
}

// fits checks that all block ids of one blob have one length ("Put Block"). The document does not say whether committed
// blocks count; reports of this error are about leftovers of other uploads.
func (e *entry) fits(id string, k *Knobs) *apiError {
	wrong := len(e.order) > 0 && len(e.order[0]) != len(id)
	if k.CommittedIDs && e.current != nil && len(e.current.blocks) > 0 {
		wrong = wrong || len(e.current.blocks[0].id) != len(id)
	}
	if wrong {
		return fail(http.StatusBadRequest, "InvalidBlobOrBlock", "The specified blob or block content is invalid.")
	}
	return nil
}

// listed is one element of the body of Put Block List.
type listed struct{ where, id string }

// parseBlockList reads the document in order: which list an id is looked up in is told by the name of its element.
func parseBlockList(data []byte) ([]listed, *apiError) {
	var out []listed
	d := xml.NewDecoder(newReader(data))
	depth := 0
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && len(data) > 0 {
			return out, nil
		}
		if err != nil {
			return nil, errXML()
		}
		switch t := t.(type) {
		case xml.StartElement:
			if depth++; depth == 1 && t.Name.Local == "BlockList" {
				continue
			}
			id := ""
			if d.DecodeElement(&id, &t) != nil || depth != 2 || !slices.Contains([]string{"Committed", "Uncommitted", "Latest"}, t.Name.Local) {
				return nil, errXML()
			}
			depth--
			out = append(out, listed{t.Name.Local, id})
		case xml.EndElement:
			depth--
		}
	}
}

func (c *call) putBlockList() (*response, *apiError) {
	cd, err := c.writing()
	if err != nil {
		return nil, err
	}
	r, err := c.described(false)
	if err != nil {
		return nil, err
	}
	b, err := c.body(maxBlockList)
	if err != nil {
		return nil, err
	}
	list, err := parseBlockList(b.data)
	if err != nil {
		return nil, err
	}
	if len(list) > c.s.opts.MaxCommitted {
		return nil, fail(http.StatusBadRequest, "BlockListTooLong", "The block list may not contain more than 50,000 blocks.")
	}
	// It is stored and not compared with the content ("Put Block List"): each block was verified on its own.
	if v := c.header.Get("x-ms-blob-content-md5"); v != "" {
		raw, derr := base64.StdEncoding.DecodeString(v)
		if derr != nil || len(raw) != 16 {
			return nil, errHeader("x-ms-blob-content-md5", v)
		}
		r.md5 = raw
	}
	if err := c.assemble(r, list, cd); err != nil {
		return nil, err
	}
	resp := newResponse(http.StatusCreated)
	c.describe(resp, r)
	b.echo(resp, c.header) // about the list, not about the blob
	resp.Set("x-ms-request-server-encrypted", "true")
	return resp, nil
}

// assemble makes the blob of the listed blocks if the conditions hold and every block is there, in one step.
func (c *call) assemble(r *revision, list []listed, cd conditions) *apiError {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	e := c.c.entry(c.s, r.name)
	if e == nil {
		e = &entry{}
	}
	if err := cd.write(e.current); err != nil {
		return err
	}
	committed := map[string]*block{}
	if e.current != nil {
		for _, b := range e.current.blocks {
			committed[b.id] = b
		}
	}
	r.blocks = []*block{}
	for _, l := range list {
		b := e.blocks[l.id]
		if l.where == "Committed" || b == nil && l.where == "Latest" {
			b = committed[l.id]
		}
		if b == nil {
			return fail(http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid.")
		}
		r.blocks = append(r.blocks, b)
		r.data = append(r.data, b.data)
	}
	r.size = r.data.Size()
	c.c.make(c.s, r.name).put(c.s, r)
	return nil
}

func (c *call) getBlockList() (*response, *apiError) {
	kind := c.query.Get("blocklisttype")
	if !slices.Contains([]string{"", "committed", "uncommitted", "all"}, kind) {
		return nil, errQuery("blocklisttype", kind, "")
	}
	c.c.mu.Lock()
	e := c.c.entry(c.s, c.blob)
	r := e.find(c.query.Get("versionid"), c.query.Get("snapshot"))
	var loose []*block
	if e != nil {
		for _, id := range e.order {
			loose = append(loose, e.blocks[id])
		}
	}
	c.c.mu.Unlock()
	if r == nil && len(loose) == 0 {
		return nil, errBlobNotFound()
	}
	d := newDoc("BlockList")
	size := int64(0)
	if r != nil {
		size = r.size
	}
	if kind != "uncommitted" {
		var bs []*block
		if r != nil {
			bs = r.blocks
		}
		d.blocks("CommittedBlocks", bs)
	}
	if kind == "uncommitted" || kind == "all" {
		d.blocks("UncommittedBlocks", loose)
	}
	resp := docResponse(d)
	if r != nil {
		c.describe(resp, r)
	}
	resp.Set("x-ms-blob-content-length", strconv.FormatInt(size, 10))
	return resp, nil
}

func (d *xmlDoc) blocks(name string, bs []*block) {
	d.begin(name)
	for _, b := range bs {
		d.begin("Block")
		d.text("Name", b.id)
		d.text("Size", strconv.Itoa(len(b.data)))
		d.end()
	}
	d.end()
}

// serverID is the id of a block that PutObject makes.
func serverID(i int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "block-%08d", i))
}
