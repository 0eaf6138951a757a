package sources

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/open-policy-agent/opa/v1/plugins/rest"

	"github.com/runtimeclass-router/runtimeclass-router/remote"
)

// What a bundle may be. Policies are text of some hundred kilobytes; the limits keep a
// server that is broken or not ours from filling the memory.
const (
	maxDownloadBytes = 8 << 20
	maxFileBytes     = 4 << 20
	maxUnpackedBytes = 64 << 20
)

// transport is a client of one poll, and OPA's plugin for credentials.
type transport struct {
	base   *http.Transport
	access remote.Access
}

func newTransport(o *BundleOptions) (*transport, error) {
	base, err := o.access().Transport()
	if err != nil {
		return nil, err
	}
	return &transport{base: base, access: o.access()}, nil
}

func (t *transport) close() { t.base.CloseIdleConnections() }

// NewClient implements OPA's [rest.HTTPAuthPlugin].
func (t *transport) NewClient(rest.Config) (*http.Client, error) {
	return &http.Client{Transport: bounded{t.base}, CheckRedirect: remote.CheckRedirect}, nil
}

// Prepare implements OPA's [rest.HTTPAuthPlugin]: it adds the credentials. A registry may
// send a client on to where the data is stored, and that host does not get them.
func (t *transport) Prepare(request *http.Request) error {
	if request.Response != nil {
		return nil
	}
	return t.access.Authorize(request)
}

// bounded reads an answer whole, and refuses one that is too large or unpacks to too
// much. OPA bounds single files only.
type bounded struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.base.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK || request.Method == http.MethodHead {
		return response, err
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxDownloadBytes+1))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if len(raw) > maxDownloadBytes {
		return nil, fmt.Errorf("the answer of %s has more than %d bytes", request.URL.Host, maxDownloadBytes)
	}
	if err := checkUnpacked(raw); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(raw))
	return response, nil
}

// checkUnpacked passes what is not compressed, or not well: reading it finds that.
func checkUnpacked(raw []byte) error {
	unpacked, err := gzip.NewReader(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return nil //nolint:nilerr // no gzip
	}
	if n, _ := io.Copy(io.Discard, io.LimitReader(unpacked, maxUnpackedBytes+1)); n > maxUnpackedBytes {
		return fmt.Errorf("the bundle unpacks to more than %d bytes", maxUnpackedBytes)
	}
	return nil
}
