package chart

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/certs"
)

// patience bounds a wait; it is no expectation.
const patience = 2 * time.Minute

func (c *cluster) as(t *testing.T, kubeconfig string) client.WithWatch {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	account, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return account
}

// certificates runs two replicas as the chart's ServiceAccount, from an empty Secret over
// a renewed leaf to another CA.
func (c *cluster) certificates(t *testing.T) {
	options := configuration(t, c.objects).Certs
	replicas := []*replica{c.startReplica(t), c.startReplica(t)}
	ca := c.accepted(t, &options, replicas)
	for _, webhook := range c.validating(t).Webhooks {
		if string(webhook.ClientConfig.CABundle) != ca {
			t.Errorf("caBundle of %s is another", webhook.Name)
		}
	}

	secret, _ := c.published(t)
	before := secret.Data["tls.crt"]
	delete(secret.Data, "tls.crt")
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	await(t, "the leaf is renewed", func() error {
		secret, _ := c.published(t)
		if now := secret.Data["tls.crt"]; len(now) == 0 || bytes.Equal(now, before) {
			return fmt.Errorf("tls.crt has %d bytes, which are old or none", len(now))
		}
		return nil
	})
	if renewed := c.accepted(t, &options, replicas); renewed != ca {
		t.Error("the CA was replaced with the leaf")
	}
	c.rotated(t, &options, replicas, ca)
}

// rotated has the CA replaced, and asks for a certificate all the while: whatever a replica
// serves, the caBundle of the moment vouches for.
func (c *cluster) rotated(t *testing.T, o *certs.Options, replicas []*replica, old string) {
	t.Helper()
	secret, _ := c.published(t)
	leaf := secret.Data["tls.crt"]
	delete(secret.Data, "ca.key")
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	calls, both := 0, false
	await(t, "the CA is replaced", func() error {
		_, configuration := c.published(t)
		bundle := configuration.Webhooks[0].ClientConfig.CABundle
		for _, r := range replicas {
			if err := call(t.Context(), r.address, o.ServiceName+"."+o.Namespace+".svc", bundle, nil); err != nil {
				t.Errorf("while the CA is replaced, call %d: %v", calls, err)
			}
			if err := r.ready(t.Context()); err != nil {
				t.Errorf("while the CA is replaced: %v", err)
			}
			calls++
		}
		both = both || bytes.HasSuffix(bundle, []byte(old)) && len(bundle) > len(old)
		secret, _ := c.published(t)
		if !both || bytes.Equal(secret.Data["tls.crt"], leaf) {
			return errors.New("the leaf is of the old CA")
		}
		return nil
	})
	bundle := c.accepted(t, o, replicas)
	t.Logf("%d calls while the CA was replaced", calls)
	block, _ := pem.Decode([]byte(bundle))
	secret, _ = c.published(t)
	leafBlock, _ := pem.Decode(secret.Data["tls.crt"])
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err := x509.ParseCertificate(leafBlock.Bytes); err != nil || cert.CheckSignatureFrom(ca) != nil {
		t.Errorf("the new CA did not sign the leaf: %v", err)
	}
}

// accepted waits until every replica serves the Secret's leaf, is ready, and is
// accepted by a client that trusts the caBundle and calls the Service by each of its
// names. It returns the caBundle.
func (c *cluster) accepted(t *testing.T, o *certs.Options, replicas []*replica) string {
	t.Helper()
	service := o.ServiceName + "." + o.Namespace
	var bundle string
	for _, r := range replicas {
		for _, name := range []string{service + ".svc", service + ".svc.cluster.local", service, o.ServiceName} {
			await(t, "the API server would accept "+r.address+" as "+name, func() error {
				secret, configuration := c.published(t)
				ca := configuration.Webhooks[0].ClientConfig.CABundle
				bundle = string(ca)
				pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
				if err != nil {
					return err
				}
				return errors.Join(call(t.Context(), r.address, name, ca, pair.Certificate[0]), r.ready(t.Context()))
			})
		}
	}
	return bundle
}

// await waits until check returns nil.
func await(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v (last: %v)", what, err, last)
	}
}
