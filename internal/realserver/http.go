package realserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// getOK returns an error unless a GET of url is answered with 200.
func getOK(ctx context.Context, url string) error { return askOK(ctx, http.MethodGet, url, nil) }

// askOK returns an error unless a request with body, in JSON, is answered with 200. A nil body: none.
func askOK(ctx context.Context, method, url string, body any) error {
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, &content)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // keeps no connection and with it no goroutine
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return fmt.Errorf("%s: %s: %s", url, resp.Status, text)
	}
	return nil
}
