package integration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/open-policy-agent/opa/v1/bundle"
)

// publisher signs bundles and serves the last one.
type publisher struct {
	*httptest.Server
	keys, ca string // a directory, and a file
	private  string
	bundle   atomic.Pointer[[]byte] // nil: the server fails
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{keys: t.TempDir(), ca: filepath.Join(t.TempDir(), "ca.crt")}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		raw := p.bundle.Load()
		if raw == nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(*raw)
	}))
	t.Cleanup(p.Close)
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
	p.private = string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))
	for path, block := range map[string]*pem.Block{
		filepath.Join(p.keys, "2026.pem"): {Type: "PUBLIC KEY", Bytes: public},
		p.ca:                              {Type: "CERTIFICATE", Bytes: p.Certificate().Raw},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// publish serves a bundle of one file.
func (p *publisher) publish(t *testing.T, revision, source string, signed bool) {
	t.Helper()
	b := bundle.Bundle{Data: map[string]any{}, Modules: []bundle.ModuleFile{{URL: "/custom.rego", Path: "/custom.rego", Raw: []byte(source)}}}
	b.Manifest.Revision = revision
	b.Manifest.Init()
	if signed {
		if err := b.GenerateSignature(bundle.NewSigningConfig(p.private, "ES256", ""), "2026", true); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := bundle.Write(&out, b); err != nil {
		t.Fatal(err)
	}
	raw := out.Bytes()
	p.bundle.Store(&raw)
}

// reader prepares a process that takes its policy from the publisher.
func (p *publisher) reader(t *testing.T, name string) *author {
	t.Helper()
	router, err := shared.NewRouter(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	kept := t.TempDir()
	if err := router.Configure(func(config map[string]any) {
		config["policies"] = map[string]any{"bundle": map[string]any{
			"url": p.URL + "/policy.tar.gz", "pollInterval": "1s", "persistDirectory": kept, "keysDirectory": p.keys, "caFile": p.ca,
		}}
	}); err != nil {
		t.Fatal(err)
	}
	return &author{t: t, pods: newNamespace(t, "trust=untrusted"), router: router}
}

// A signed bundle is in force, and its successor; one that is not signed is not. When the
// process starts anew while the server fails, it comes up with the last one in force.
func TestBundleOutlivesItsServer(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.publish(t, "r1", "package router.custom\n\ncandidates contains [\"kata-fc\"]\n", true)
	a := p.reader(t, "bundle")
	router := a.router
	if err := router.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := router.Stop(); err != nil {
			t.Error(err)
		}
	})
	if got := a.class(); got != "kata-fc" {
		t.Errorf("with r1 a pod got %q", got)
	}
	p.publish(t, "r2", goodPolicies["extend"], true)
	a.inForce()
	p.publish(t, "r3", "package router.custom\n", false)
	a.says("bundle missing .signatures.json file")
	if got := a.class(); got != "kata-qemu" {
		t.Errorf("after a bundle without a signature a pod got %q", got)
	}

	p.bundle.Store(nil)
	a.says("status 500: server replied with Internal Server Error")
	if err := router.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := router.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := a.class(); got != "kata-qemu" {
		t.Errorf("after the restart a pod got %q", got)
	}
	s := a.status()
	if source := s.Sources[1]; source.State != "persisted" || source.Revision != "r2" || !strings.Contains(strings.Join(source.Errors, "\n"), "status 500") {
		t.Errorf("source %+v", source)
	}
	p.publish(t, "r4", "package router.custom\n", true)
	poll(t, func(context.Context) (bool, error) { return a.class() == "gvisor", nil }, a.dump)
	if source := a.status().Sources[1]; source.State != "live" || source.Revision != "r4" || len(source.Errors) > 0 {
		t.Errorf("source %+v", source)
	}
}

// Without the bundle that it is to decide with, the webhook does not answer: it is not
// ready, says why, and goes on asking.
func TestNothingIsDecidedWithoutTheBundle(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	a := p.reader(t, "no-bundle")
	router := a.router
	ready := make(chan error, 1)
	go func() { ready <- router.Start(t.Context()) }()
	poll(t, func(ctx context.Context) (bool, error) {
		text, err := router.Status(ctx)
		return err == nil && strings.Contains(text, "waiting for policy sources: bundle "+p.URL) && strings.Contains(text, "status 500"), nil
	}, func() string { return "the status does not say what is waited for" })
	if answer, err := post(t.Context(), router.HTTP, router.URL, reviewOf(t, a.pods, newPod(), "early")); err == nil {
		t.Errorf("answered without a policy: %+v", answer.response)
	}
	select {
	case err := <-ready:
		t.Fatalf("ready without a policy, or ended: %v", err)
	default:
	}
	p.publish(t, "r1", goodPolicies["extend"], true)
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := router.Stop(); err != nil {
			t.Error(err)
		}
	})
	a.inForce()
}

// says waits until /statusz does.
func (a *author) says(want string) {
	a.t.Helper()
	poll(a.t, func(context.Context) (bool, error) {
		s := a.status()
		return slices.ContainsFunc(s.problems(), func(line string) bool { return strings.Contains(line, want) }), nil
	}, func() string { return "want " + want + " in the " + a.dump() })
}
