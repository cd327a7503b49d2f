package fakeaz

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// containerName is the rule of "Naming and referencing containers, blobs, and metadata".
var containerName = regexp.MustCompile(`^(\$root|\$web|\$logs|[a-z0-9](-?[a-z0-9])*)$`)

func (c *call) createContainer() (*response, *apiError) {
	if n := len(c.container); n < 3 || n > 63 || !containerName.MatchString(c.container) {
		return nil, fail(http.StatusBadRequest, "InvalidResourceName", "The specified resource name contains invalid characters.")
	}
	if !c.s.CreateContainer(c.container) {
		return nil, fail(http.StatusConflict, "ContainerAlreadyExists", "The specified container already exists.")
	}
	resp := newResponse(http.StatusCreated)
	c.s.container(c.container).describe(resp)
	return resp, nil
}

func (c *container) describe(resp *response) {
	resp.Set("ETag", c.etag)
	resp.Set("Last-Modified", httpDate(c.created))
}

func (c *call) containerProperties() (*response, *apiError) {
	resp := newResponse(http.StatusOK)
	c.c.describe(resp)
	resp.Set("x-ms-lease-status", "unlocked")
	resp.Set("x-ms-lease-state", "available")
	resp.Set("x-ms-has-immutability-policy", "false")
	resp.Set("x-ms-has-legal-hold", "false")
	return resp, nil
}

func (c *call) deleteContainer() (*response, *apiError) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	delete(c.s.mu.containers, c.container)
	return newResponse(http.StatusAccepted), nil
}

func (c *call) listContainers() (*response, *apiError) {
	c.s.mu.RLock()
	var ks []*container
	for _, k := range c.s.mu.containers {
		if strings.HasPrefix(k.name, c.query.Get("prefix")) {
			ks = append(ks, k)
		}
	}
	c.s.mu.RUnlock()
	slices.SortFunc(ks, func(a, b *container) int { return strings.Compare(a.name, b.name) })
	d := newDoc("EnumerationResults", attr{"ServiceEndpoint", c.s.Endpoint() + "/"})
	d.begin("Containers")
	for _, k := range ks {
		d.begin("Container")
		d.text("Name", k.name)
		d.begin("Properties")
		d.date("Last-Modified", k.created)
		d.text("Etag", k.etag)
		d.end()
		d.end()
	}
	d.end()
	d.text("NextMarker", "")
	return docResponse(d), nil
}

// serviceProperties tells of soft delete. That versioning is on is not told here but by Azure Resource Manager.
func (c *call) serviceProperties() (*response, *apiError) {
	keep := c.s.retention()
	d := newDoc("StorageServiceProperties")
	d.begin("DeleteRetentionPolicy")
	d.flag("Enabled", keep > 0)
	if keep > 0 {
		d.number("Days", max(1, int64(keep/(24*time.Hour))))
	}
	return docResponse(d), nil
}
