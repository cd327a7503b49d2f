package fakegcs

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// bucketResource is the Bucket resource of the JSON API, as far as this server has it.
type bucketResource struct {
	Kind           string      `json:"kind,omitempty"`
	ID             string      `json:"id,omitempty"`
	Name           string      `json:"name,omitempty"`
	TimeCreated    string      `json:"timeCreated,omitempty"`
	Location       string      `json:"location,omitempty"`
	StorageClass   string      `json:"storageClass,omitempty"`
	Metageneration string      `json:"metageneration,omitempty"`
	Versioning     *versioning `json:"versioning,omitempty"`
	SoftDelete     *softDelete `json:"softDeletePolicy,omitempty"`
}

type versioning struct {
	Enabled bool `json:"enabled"`
}

type softDelete struct {
	Seconds string `json:"retentionDurationSeconds"`
}

func (b *bucket) resource() *bucketResource {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return &bucketResource{
		Kind: "storage#bucket", ID: b.name, Name: b.name, TimeCreated: stamp(b.created), Location: "US",
		StorageClass: "STANDARD", Metageneration: "1", Versioning: &versioning{b.mu.versioning},
		SoftDelete: &softDelete{itoa(int64(b.mu.retention / time.Second))},
	}
}

func (c *call) getBucket() (*fakehttp.Answer, *apiError) { return c.document(c.b.resource()) }

// bucketDocument reads the resource that comes with a request.
func (c *call) bucketDocument() (*bucketResource, *apiError) {
	body, err := c.readBody(maxDocument)
	if err != nil {
		return nil, err
	}
	r := &bucketResource{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fail(http.StatusBadRequest, "parseError", "InvalidArgument", "Parse Error: %v", err)
	}
	return r, nil
}

func (b *bucket) apply(r *bucketResource) *apiError {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.SoftDelete != nil {
		n, err := strconv.ParseInt(r.SoftDelete.Seconds, 10, 64)
		if err != nil || n < 0 {
			return errInvalid("Invalid value for: softDeletePolicy")
		}
		b.mu.retention = time.Duration(n) * time.Second
	}
	if r.Versioning != nil {
		b.mu.versioning = r.Versioning.Enabled
	}
	return nil
}

func (c *call) insertBucket() (*fakehttp.Answer, *apiError) {
	r, err := c.bucketDocument()
	if err != nil {
		return nil, err
	}
	if n := len(r.Name); n < 3 || n > 63 {
		return nil, errInvalid("Invalid bucket name: %q", r.Name)
	}
	if !c.s.CreateBucket(r.Name) {
		return nil, fail(http.StatusConflict, "conflict", "BucketAlreadyOwnedByYou",
			"Your previous request to create the named bucket succeeded and you already own it.")
	}
	b := c.s.bucket(r.Name)
	if err := b.apply(r); err != nil {
		return nil, err
	}
	return c.document(b.resource())
}

func (c *call) patchBucket() (*fakehttp.Answer, *apiError) {
	r, err := c.bucketDocument()
	if err != nil {
		return nil, err
	}
	if err := c.b.apply(r); err != nil {
		return nil, err
	}
	return c.document(c.b.resource())
}

func (c *call) deleteBucket() (*fakehttp.Answer, *apiError) {
	c.b.mu.RLock()
	empty := len(c.b.mu.live)+len(c.b.mu.old) == 0
	c.b.mu.RUnlock()
	if !empty {
		return nil, fail(http.StatusConflict, "conflict", "BucketNotEmpty", "The bucket you tried to delete is not empty.")
	}
	c.s.mu.Lock()
	delete(c.s.mu.buckets, c.Bucket)
	c.s.mu.Unlock()
	return fakehttp.NewAnswer(http.StatusNoContent), nil
}
