package sources

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// signer signs bundles with a key of its own.
type signer struct {
	config *bundle.SigningConfig
	public []byte // PEM
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{
		config: bundle.NewSigningConfig(string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})), "ES256", ""),
		public: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	}
}

// pack makes a bundle, signed where there is a signer, with the key ID "policy".
func pack(t *testing.T, modules policies.Modules, revision string, by *signer) []byte {
	t.Helper()
	b := bundle.Bundle{Data: map[string]any{}}
	b.Manifest.Revision = revision
	b.Manifest.Init()
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		b.Modules = append(b.Modules, bundle.ModuleFile{URL: "/" + name, Path: "/" + name, Raw: []byte(modules[name])})
	}
	if by != nil {
		if err := b.GenerateSignature(by.config, "policy", true); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := bundle.Write(&out, b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bomb is small, and not when it is unpacked.
func bomb(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	zeros := make([]byte, 1<<20)
	for range maxUnpackedBytes/len(zeros) + 1 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func caFile(t *testing.T, s *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newRegistry is an OCI registry in this process.
func newRegistry(t *testing.T) *bundleServer {
	t.Helper()
	s := &bundleServer{}
	behind := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.Server = httptest.NewTLSServer(s.intercepted(behind.ServeHTTP))
	t.Cleanup(s.Close)
	s.url = "oci://" + strings.TrimPrefix(s.URL, "https://") + "/platform/policies:v1"
	s.put = func(raw []byte) { push(t, behind, raw) }
	return s
}

// push stores a bundle as `oras push` would, past whatever the server is told to answer.
func push(t *testing.T, registry http.Handler, raw []byte) {
	t.Helper()
	const repository = "/v2/platform/policies/"
	send := func(method, path, kind string, body []byte) {
		t.Helper()
		request := httptest.NewRequest(method, repository+path, bytes.NewReader(body))
		request.Header.Set("Content-Type", kind)
		response := httptest.NewRecorder()
		registry.ServeHTTP(response, request)
		if response.Code != http.StatusCreated {
			t.Fatalf("%s %s: %d %s", method, path, response.Code, response.Body)
		}
	}
	blob := func(kind string, content []byte) map[string]any {
		t.Helper()
		name := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
		send(http.MethodPost, "blobs/uploads/?digest="+name, "application/octet-stream", content)
		return map[string]any{"mediaType": kind, "digest": name, "size": len(content)}
	}
	const manifestKind = "application/vnd.oci.image.manifest.v1+json"
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestKind,
		"config": blob("application/vnd.oci.image.config.v1+json", []byte("{}")),
		"layers": []any{blob("application/vnd.oci.image.layer.v1.tar+gzip", raw)},
	})
	if err != nil {
		t.Fatal(err)
	}
	send(http.MethodPut, "manifests/v1", manifestKind, manifest)
}

// merge adds a file to a bundle.
func merge(t *testing.T, raw []byte, name, content string) []byte {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	to, from := tar.NewWriter(packed), tar.NewReader(unpacked)
	add := func(header *tar.Header, content io.Reader) {
		t.Helper()
		if err := to.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(to, content); err != nil {
			t.Fatal(err)
		}
	}
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		add(header, from)
	}
	add(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}, strings.NewReader(content))
	if err := errors.Join(to.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func replaceHost(url, from, to string) string { return strings.Replace(url, from, to, 1) }
