package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/download"
	"github.com/open-policy-agent/opa/v1/logging"
	"github.com/open-policy-agent/opa/v1/plugins"
	"github.com/open-policy-agent/opa/v1/plugins/rest"
	"oras.land/oras-go/v2/content/oci"
)

// downloader is what the two of OPA's have in common.
type downloader interface {
	Trigger(context.Context) error
	SetCache(etag string)
}

// download makes OPA fetch, verify and read the bundle once. A downloader lives for one
// poll, so that keys, credentials and certificates are read anew each time. The bundle
// is nil if it is the one with the etag that is known.
func (b *bundleSource) download(ctx context.Context) (download.Update, error) {
	verification, err := b.options.verification()
	if err != nil {
		return download.Update{}, err
	}
	transport, err := newTransport(&b.options)
	if err != nil {
		return download.Update{}, err
	}
	defer transport.close()
	manual := plugins.TriggerManual
	config := download.Config{Trigger: &manual}
	if err := config.ValidateAndInjectDefaults(); err != nil {
		return download.Update{}, err
	}
	updates := make(chan download.Update, 1)
	callback := func(_ context.Context, update download.Update) error {
		updates <- update
		return nil
	}
	parser := ast.ParserOptions{RegoVersion: ast.RegoV1}
	location, err := url.Parse(b.options.URL)
	if err != nil {
		return download.Update{}, err
	}
	var d downloader
	store := ""
	if b.options.oci() {
		client, err := transport.restClient("https://"+location.Host, "oci")
		if err != nil {
			return download.Update{}, err
		}
		if store, err = b.options.ociStore(); err != nil {
			return download.Update{}, err
		}
		d = download.NewOCI(config, client, b.options.reference(), store).WithCallback(callback).WithBundlePersistence(true).
			WithBundleVerificationConfig(verification).WithBundleParserOpts(parser).WithSizeLimitBytes(maxFileBytes)
	} else {
		client, err := transport.restClient(location.Scheme+"://"+location.Host, "")
		if err != nil {
			return download.Update{}, err
		}
		d = download.New(config, client, location.RequestURI()).WithCallback(callback).WithBundlePersistence(true).
			WithBundleVerificationConfig(verification).WithBundleParserOpts(parser).WithSizeLimitBytes(maxFileBytes)
	}
	d.SetCache(b.etag)
	// The error is the update's too. Trigger may return before a request that ctx ended
	// does; the callback is the end.
	_ = d.Trigger(ctx)
	update := <-updates
	if store != "" && (update.Error != nil || update.Bundle != nil) {
		// A store keeps every bundle that it has seen. One that goes on holding the
		// current one spares a download, and no more.
		update.Error = errors.Join(update.Error, os.RemoveAll(store))
	}
	var status download.HTTPError
	if errors.As(update.Error, &status) {
		update.Error = fmt.Errorf("status %d: %w", status.StatusCode, update.Error)
	}
	return update, update.Error
}

// ociStore is where OPA keeps what a registry sends. A process that was killed may have left it
// half written, which OPA answers by a panic, and so at every start: what cannot be read is
// thrown away, and fetched again.
func (b *BundleOptions) ociStore() (string, error) {
	store, err := b.writable("oci")
	if err != nil {
		return "", err
	}
	if _, err := oci.New(store); err == nil {
		return store, nil
	}
	if err := os.RemoveAll(store); err != nil {
		return "", err
	}
	if store, err = b.writable("oci"); err != nil {
		return "", err
	}
	_, err = oci.New(store)
	return store, err
}

// restClient is OPA's client, with the transport as its plugin.
func (t *transport) restClient(url, kind string) (rest.Client, error) {
	raw, err := json.Marshal(map[string]any{
		"name": "bundle", "url": url, "type": kind,
		"credentials": map[string]any{"plugin": "files"},
	})
	if err != nil {
		return rest.Client{}, err
	}
	return rest.New(raw, nil, rest.Logger(logging.NewNoOpLogger()),
		rest.AuthPluginLookup(func(string) rest.HTTPAuthPlugin { return t }))
}

// newReader reads a bundle as a downloader does.
func newReader(loader bundle.DirectoryLoader, verification *bundle.VerificationConfig) *bundle.Reader {
	return bundle.NewCustomReader(loader.WithSizeLimitBytes(maxFileBytes)).WithSizeLimitBytes(maxFileBytes).
		WithRegoVersion(ast.RegoV1).WithBundleVerificationConfig(verification).WithBundlePersistence(true)
}

// writable returns a directory below the one for persistence, made where it is missing,
// once a file could be written into it.
func (b *BundleOptions) writable(name string) (string, error) {
	dir := filepath.Join(b.PersistDirectory, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("keep bundles in %s: %w", b.PersistDirectory, err)
	}
	probe, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return "", fmt.Errorf("keep bundles in %s: %w", b.PersistDirectory, err)
	}
	return dir, errors.Join(probe.Close(), os.Remove(probe.Name()))
}
