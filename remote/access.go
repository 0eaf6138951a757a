package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Access is what a server is reached with. Files are read when they are needed: they may
// change.
type Access struct {
	// CredentialsDirectory has the files username and password, or token; empty for none.
	CredentialsDirectory string
	// CAFile holds the certificates, PEM, that the server's is verified with; empty for
	// those of the system.
	CAFile string
}

// Transport returns a transport that verifies servers as the access says. The caller closes
// its idle connections.
func (a Access) Transport() (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's
	if a.CAFile == "" {
		return transport, nil
	}
	pem, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the CA: no certificate in %s", a.CAFile)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}

// Authorize adds the credentials to a request.
func (a Access) Authorize(request *http.Request) error {
	if a.CredentialsDirectory == "" {
		return nil
	}
	token, err := a.read("token")
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	username, err := a.read("username")
	if err != nil {
		return fmt.Errorf("credentials need the file token, or username and password: %w", err)
	}
	password, err := a.read("password")
	if err != nil {
		return fmt.Errorf("credentials need the file token, or username and password: %w", err)
	}
	request.SetBasicAuth(username, password)
	return nil
}

func (a Access) read(name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(a.CredentialsDirectory, name))
	return strings.TrimSpace(string(raw)), err
}

// CheckRedirect is for [http.Client]. It takes the credentials off a request to another
// server; Go leaves them where only the port or the scheme is another. It follows nobody
// out of TLS.
func CheckRedirect(request *http.Request, via []*http.Request) error {
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
