package realserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// Azure is a running server of the Azure Blob Storage API.
type Azure struct {
	Server         // Endpoint is http://127.0.0.1:port/account
	Account string // name of the storage account
	Key     string // of the account, in base64; random per process, so no client can reach the wrong server unnoticed
}

func newAzure(note string) *Azure {
	return &Azure{
		Server: Server{Note: note}, Account: "wholeblobtest",
		Key: base64.StdEncoding.EncodeToString([]byte(randomHex())),
	}
}

// NewContainer creates a container that no other test has. It is gone with the
// server.
func (s *Azure) NewContainer(t testing.TB) string {
	t.Helper()
	name, err := s.CreateContainer(t.Context(), t.Name())
	if err != nil {
		t.Fatalf("realserver: %v: %v", s, err)
	}
	return name
}

// CreateContainer creates a container whose name is unique and begins with
// what can be kept of hint.
func (s *Azure) CreateContainer(ctx context.Context, hint string) (string, error) {
	name := bucketName(hint)
	client, err := s.Client()
	if err != nil {
		return "", err
	}
	if _, err := client.CreateContainer(ctx, name, nil); err != nil {
		return "", fmt.Errorf("create container %s: %w", name, err)
	}
	return name, nil
}

// Client returns a client of the service's own SDK, for setting up and for
// looking at what really is in the store. It never retries and keeps no
// connection, so it leaves no goroutine behind.
func (s *Azure) Client() (*service.Client, error) {
	key, err := service.NewSharedKeyCredential(s.Account, s.Key)
	if err != nil {
		return nil, err
	}
	var o service.ClientOptions
	o.Retry = policy.RetryOptions{MaxRetries: -1}
	o.Transport = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return service.NewClientWithSharedKeyCredential(s.Endpoint, key, &o)
}

// knowsTheKey asks something signed, to which no other server at the endpoint would agree.
func (s *Azure) knowsTheKey(ctx context.Context) error {
	client, err := s.Client()
	if err != nil {
		return err
	}
	_, err = client.NewListContainersPager(nil).NextPage(ctx)
	return err
}

// Env returns the environment with which the tools of Azure reach the server,
// as NAME=value.
func (s *Azure) Env() []string {
	return []string{
		"AZURE_STORAGE_ACCOUNT=" + s.Account,
		"AZURE_STORAGE_KEY=" + s.Key,
		"AZURE_STORAGE_CONNECTION_STRING=DefaultEndpointsProtocol=http;AccountName=" + s.Account + ";AccountKey=" + s.Key +
			";BlobEndpoint=" + s.Endpoint + ";",
		"AZURE_STORAGE_SAS_TOKEN=", "AZURE_STORAGE_AUTH_MODE=", // what the user has set must not mix in
	}
}
