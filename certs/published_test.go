package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestPublished(t *testing.T) {
	t.Parallel()
	options := Options{Namespace: "router", SecretName: "tls", ServiceName: "router", WebhookConfiguration: "pods"}
	mounted := selfSigned(t, "router.router.svc")
	other := selfSigned(t, "router.router.svc")
	misnamed := selfSigned(t, "router.elsewhere.svc")
	secret := func(p *pair) client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "router", Name: "tls"},
			Data:       map[string][]byte{certFile: p.cert, keyFile: p.key},
		}
	}
	configuration := func(bundles ...[]byte) client.Object {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "pods"}}
		for i, bundle := range bundles {
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{
				Name:         fmt.Sprint(i),
				ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle},
			})
		}
		return c
	}
	validating := func(bundles ...[]byte) client.Object {
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "pods"}}
		for i, bundle := range bundles {
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{
				Name:         fmt.Sprint(i),
				ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle},
			})
		}
		return c
	}
	for name, test := range map[string]struct {
		mounted *pair
		objects []client.Object
		want    string // "" is published
	}{
		"published":           {mounted, []client.Object{secret(mounted), configuration(mounted.cert), validating(mounted.cert)}, ""},
		"no secret":           {mounted, []client.Object{configuration(mounted.cert), validating(mounted.cert)}, "get secret"},
		"stale mount":         {mounted, []client.Object{secret(other), configuration(other.cert), validating(mounted.cert)}, "not yet what is mounted"},
		"no configuration":    {mounted, []client.Object{secret(mounted)}, "get mutating webhook configuration"},
		"no validating one":   {mounted, []client.Object{secret(mounted), configuration(mounted.cert)}, "get validating webhook configuration"},
		"validating, none":    {mounted, []client.Object{secret(mounted), configuration(mounted.cert), validating()}, "no webhooks"},
		"validating, not yet": {mounted, []client.Object{secret(mounted), configuration(mounted.cert), validating(mounted.cert, nil)}, "validating webhook 1"},
		"no webhooks":         {mounted, []client.Object{secret(mounted), configuration(), validating(mounted.cert)}, "no webhooks"},
		"not injected":        {mounted, []client.Object{secret(mounted), configuration(nil), validating(mounted.cert)}, "no certificate"},
		"other CA":            {mounted, []client.Object{secret(mounted), configuration(other.cert), validating(mounted.cert)}, "unknown authority"},
		"one of two":          {mounted, []client.Object{secret(mounted), configuration(mounted.cert, nil), validating(mounted.cert)}, "no certificate"},
		"two CAs in a bundle": {mounted, []client.Object{secret(mounted), configuration(append(other.cert, mounted.cert...)), validating(mounted.cert)}, ""},
		"for another Service": {misnamed, []client.Object{secret(misnamed), configuration(misnamed.cert), validating(misnamed.cert)}, "valid for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &published{reader: fake.NewClientBuilder().WithObjects(test.objects...).Build(), options: options}
			err := p.matches(t.Context(), test.mounted)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("matches: %v, want %q", err, test.want)
			}
		})
	}
}

func selfSigned(t *testing.T, name string) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		DNSNames:              []string{name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), chain: []*x509.Certificate{cert}}
}
