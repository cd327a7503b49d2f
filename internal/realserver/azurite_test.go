package realserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

func TestAzuriteStoresListsAndDeletes(t *testing.T) {
	s := Azurite(t)
	service, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	container, ctx := service.NewContainerClient(s.NewContainer(t)), t.Context()
	want := bytes.Repeat([]byte("wholeblob"), 1000)
	for _, name := range []string{"a", "dir/b"} {
		body := streaming.NopCloser(bytes.NewReader(want))
		if _, err := container.NewBlockBlobClient(name).Upload(ctx, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := container.NewBlobClient("dir/b").DownloadStream(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(got.Body)
	if err := errors.Join(err, got.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(body, want) {
		t.Errorf("read %d bytes that are not the %d written", len(body), len(want))
	}
	if _, err := container.NewBlobClient("a").Delete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	page, err := container.NewListBlobsFlatPager(nil).NextPage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if items := page.Segment.BlobItems; len(items) != 1 || *items[0].Name != "dir/b" {
		t.Errorf("listed %v, want dir/b", items)
	}
}

func TestAzuriteChecksSignatures(t *testing.T) {
	other := *Azurite(t)
	other.Key = "d3Jvbmc="
	_, err := other.CreateContainer(t.Context(), t.Name())
	var reply *azcore.ResponseError
	if !errors.As(err, &reply) || reply.StatusCode != http.StatusForbidden {
		t.Errorf("a client with the wrong key: %v", err)
	}
}

// What it would do by itself: report to its makers, keep files, heed what the user has set for it and for Node.js.
func TestAzuriteKeepsToItself(t *testing.T) {
	t.Setenv("NODE_OPTIONS", "--no-such-option")
	s := Azurite(t)
	for _, flag := range []string{"--disableTelemetry", "--inMemoryPersistence"} {
		if !slices.Contains(s.proc.cmd.Args, flag) {
			t.Errorf("no %s in %q", flag, s.proc.cmd.Args)
		}
	}
	for _, v := range s.proc.cmd.Env {
		if strings.HasPrefix(v, "NODE_") {
			t.Errorf("it sees %s", v)
		}
	}
}
