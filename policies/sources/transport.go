package sources

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/open-policy-agent/opa/v1/plugins/rest"
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
	base        *http.Transport
	credentials string // the directory
}

func newTransport(o *BundleOptions) (*transport, error) {
	base := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the CA: no certificate in %s", o.CAFile)
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &transport{base: base, credentials: o.CredentialsDirectory}, nil
}

func (t *transport) close() { t.base.CloseIdleConnections() }

// NewClient implements OPA's [rest.HTTPAuthPlugin].
func (t *transport) NewClient(rest.Config) (*http.Client, error) {
	return &http.Client{Transport: bounded{t.base}, CheckRedirect: checkRedirect}, nil
}

// checkRedirect takes the credentials off a request to another server. Go leaves them
// where only the port or the scheme is another.
func checkRedirect(request *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if first.Scheme == "https" && request.URL.Scheme != "https" {
		return fmt.Errorf("%s redirects to %s, unencrypted", first.Host, request.URL.Host)
	}
	if request.URL.Host != first.Host {
		request.Header.Del("Authorization")
	}
	return nil
}

// Prepare implements OPA's [rest.HTTPAuthPlugin]: it adds the credentials. A registry may
// send a client on to where the data is stored, and that host does not get them.
func (t *transport) Prepare(request *http.Request) error {
	if t.credentials == "" || request.Response != nil {
		return nil
	}
	token, err := t.read("token")
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	username, err := t.read("username")
	if err != nil {
		return fmt.Errorf("credentials need the file token, or username and password: %w", err)
	}
	password, err := t.read("password")
	if err != nil {
		return fmt.Errorf("credentials need the file token, or username and password: %w", err)
	}
	request.SetBasicAuth(username, password)
	return nil
}

func (t *transport) read(name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(t.credentials, name))
	return strings.TrimSpace(string(raw)), err
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
