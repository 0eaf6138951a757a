package chart

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
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

// certificates runs two replicas as the chart's ServiceAccount, from an empty Secret
// to a renewed leaf.
func (c *cluster) certificates(t *testing.T) {
	options := configuration(t, c.objects).Certs
	account := c.serviceAccount(t)
	replicas := []*replica{c.startReplica(t, options, account), c.startReplica(t, options, account)}
	await(t, "caBundle is injected", func() error {
		_, configuration := c.published(t)
		if len(configuration.Webhooks[0].ClientConfig.CABundle) == 0 {
			return fmt.Errorf("caBundle is empty")
		}
		for _, webhook := range c.validating(t).Webhooks {
			if !bytes.Equal(webhook.ClientConfig.CABundle, configuration.Webhooks[0].ClientConfig.CABundle) {
				return fmt.Errorf("caBundle of %s is another", webhook.Name)
			}
		}
		return nil
	})
	for _, r := range replicas {
		select {
		case address := <-r.address:
			t.Fatalf("replica at %s serves before its Secret is mounted", address)
		case <-time.After(2 * time.Second): // longer than it takes to look again
		}
	}
	for _, r := range replicas {
		r.mount(t)
	}
	var addresses []string
	for _, r := range replicas {
		addresses = append(addresses, r.serving(t))
	}
	ca := c.accepted(t, &options, addresses)

	secret, _ := c.published(t)
	before := string(secret.Data["tls.crt"])
	delete(secret.Data, "tls.crt")
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	await(t, "the leaf is renewed", func() error {
		secret, _ := c.published(t)
		if now := string(secret.Data["tls.crt"]); now == "" || now == before {
			return fmt.Errorf("tls.crt has %d bytes, which are old or none", len(now))
		}
		return nil
	})
	if renewed := c.accepted(t, &options, addresses); renewed != ca {
		t.Error("the CA was replaced with the leaf")
	}
}

// accepted waits until every replica serves the Secret's leaf, is ready, and is
// accepted by a client that trusts the caBundle and calls the Service by each of its
// names. It returns the caBundle.
func (c *cluster) accepted(t *testing.T, o *certs.Options, addresses []string) string {
	t.Helper()
	service := o.ServiceName + "." + o.Namespace
	var bundle string
	for _, address := range addresses {
		for _, name := range []string{service + ".svc", service + ".svc.cluster.local", service, o.ServiceName} {
			await(t, "the API server would accept "+address+" as "+name, func() error {
				secret, configuration := c.published(t)
				ca := configuration.Webhooks[0].ClientConfig.CABundle
				bundle = string(ca)
				pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
				if err != nil {
					return err
				}
				return call(t.Context(), address, name, ca, pair.Certificate[0])
			})
		}
	}
	return bundle
}

// call returns an error unless the server at address is ready and serves the leaf,
// and the CA vouches for it by that name.
func call(ctx context.Context, address, name string, ca, leaf []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return fmt.Errorf("no certificate in caBundle")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	if served := response.TLS.PeerCertificates[0].Raw; string(served) != string(leaf) {
		return fmt.Errorf("it serves another certificate than the Secret's")
	}
	return nil
}

// replica is a process that runs [runReplica].
type replica struct {
	control io.Writer
	address <-chan string
}

func (c *cluster) startReplica(t *testing.T, options certs.Options, kubeconfig string) *replica {
	t.Helper()
	options.Directory = t.TempDir()
	raw, err := json.Marshal(replicaOptions{Certs: options, Kubeconfig: kubeconfig, KubeletKubeconfig: c.KubeconfigPath})
	if err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// t.Context ends before a test's cleanup, and would kill what can end by itself.
	ctx, kill := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, executable)
	cmd.Env = append(os.Environ(), replicaVariable+"="+string(raw))
	cmd.Stderr = t.Output()
	control, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		if lines := bufio.NewScanner(out); lines.Scan() {
			address <- lines.Text()
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() {
		defer kill()
		defer time.AfterFunc(patience, kill).Stop()
		_ = control.Close()
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("replica: %v", err)
		}
	})
	return &replica{control: control, address: address}
}

// mount lets the stand-in for the kubelet mount the Secret.
func (r *replica) mount(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(r.control, "mount\n"); err != nil {
		t.Fatal(err)
	}
}

// serving waits for the replica's address.
func (r *replica) serving(t *testing.T) string {
	t.Helper()
	select {
	case address := <-r.address:
		return address
	case <-time.After(patience):
		t.Fatal("replica does not serve")
		return ""
	}
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
