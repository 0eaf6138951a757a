package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/runtimeclass-router/runtimeclass-router/registration"
)

// start runs it until the test is over.
func start(t *testing.T, c *Certificates) *Certificates {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}

func newDirectory(t *testing.T, files map[string][]byte) (c *Certificates, directory string) {
	t.Helper()
	directory = t.TempDir()
	write(t, directory, files)
	return start(t, New(Config{Options: Options{Mode: Directory, Directory: directory}, Log: testr.New(t)})), directory
}

func (c *Certificates) isReady() bool {
	select {
	case <-c.Ready():
		return true
	default:
		return false
	}
}

func TestDirectoryNotReady(t *testing.T) {
	t.Parallel()
	valid, validKey := pemPair(t, -time.Hour, time.Hour)
	_, otherKey := pemPair(t, -time.Hour, time.Hour)
	expired, expiredKey := pemPair(t, -2*time.Hour, -time.Hour)
	future, futureKey := pemPair(t, time.Hour, 2*time.Hour)
	for name, test := range map[string]struct {
		files map[string][]byte
		want  string
	}{
		"empty":         {want: "tls.crt: no such file"},
		"no key":        {files: map[string][]byte{"tls.crt": valid}, want: "tls.key: no such file"},
		"not PEM":       {files: map[string][]byte{"tls.crt": []byte("?"), "tls.key": validKey}, want: "failed to find any PEM data"},
		"mismatched":    {files: map[string][]byte{"tls.crt": valid, "tls.key": otherKey}, want: "private key does not match"},
		"expired":       {files: map[string][]byte{"tls.crt": expired, "tls.key": expiredKey}, want: "certificate expired at"},
		"not yet valid": {files: map[string][]byte{"tls.crt": future, "tls.key": futureKey}, want: "not valid before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, test.files)
			c := New(Config{Options: Options{Mode: Directory, Directory: dir}, Log: testr.New(t)})
			if err := c.step(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if _, err := c.GetCertificate(nil); !errors.Is(err, errNotReady) || !errors.Is(c.Check(nil), errNotReady) || c.isReady() {
				t.Errorf("a certificate is served: %v", err)
			}
		})
	}
}

// TestDirectoryChanges follows a pair that is waited for, breaks, expires and is renewed:
// the last good one is served on, for as long as it is valid.
func TestDirectoryChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, directory := newDirectory(t, nil)
		if time.Sleep(time.Minute); c.isReady() {
			t.Fatal("ready without a certificate")
		}
		cert, key := pemPair(t, -time.Hour, 2*time.Hour)
		renewed, renewedKey := pemPair(t, -time.Hour, time.Hour)
		expired, expiredKey := pemPair(t, -2*time.Hour, -time.Hour)
		for _, step := range []struct {
			name              string
			cert, key, served []byte
		}{
			{"first", cert, key, cert},
			{"as before", cert, key, cert},
			{"half renewed", renewed, key, cert},
			{"renewed", renewed, renewedKey, renewed},
			{"expired", expired, expiredKey, renewed},
		} {
			write(t, directory, map[string][]byte{"tls.crt": step.cert, "tls.key": step.key})
			time.Sleep(poll + time.Second)
			got, err := c.GetCertificate(nil)
			if err != nil || !bytes.Equal(got.Leaf.Raw, parseBundle(step.served)[0].Raw) {
				t.Errorf("%s: another certificate is served, %v", step.name, err)
			}
			if err := c.Check(nil); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
		}
		time.Sleep(time.Hour)
		if err := c.Check(nil); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("what is served has expired: %v", err)
		}
	})
}

// apiServer is what the API server knows: caBundles, and what its members have not heard
// of yet.
type apiServer struct {
	mu      sync.Mutex
	bundle  []byte
	before  []byte
	changed time.Time
	refuses bool // to change the caBundle
}

// lag is how long a member of the control plane may not have heard of a change.
const lag = 2 * time.Second

// trusted is the caBundle.
func (s *apiServer) trusted() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bundle
}

// trust makes somebody else write the caBundle.
func (s *apiServer) trust(bundle []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bundle = bundle
}

func (s *apiServer) Hooks(context.Context) ([]registration.Hook, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hooks []registration.Hook
	for _, kind := range []string{"mutating", "validating"} {
		hooks = append(hooks, registration.Hook{Kind: kind, Name: "pods", ServerName: testOptions.dnsName(), CABundle: s.bundle})
	}
	return hooks, nil
}

func (s *apiServer) Inject(_ context.Context, _ []registration.Hook, bundle []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses {
		return errors.New("no")
	}
	s.bundle, s.before, s.changed = bundle, s.bundle, time.Now()
	return nil
}

// accepts returns an error unless every member accepts what is served.
func (s *apiServer) accepts(c *Certificates) error {
	served, err := c.GetCertificate(nil)
	if err != nil {
		return err
	}
	p := &pair{tls: served}
	p.chain = append(p.chain, served.Leaf)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := p.verify(s.bundle, testOptions.dnsName(), time.Now()); err != nil {
		return err
	}
	if s.before == nil || time.Since(s.changed) > lag {
		return nil
	}
	_, err = p.verify(s.before, testOptions.dnsName(), time.Now())
	return err
}

func newReplicas(t *testing.T, n int, o Options, server *apiServer, data map[string][]byte) (*fake.Clientset, []*Certificates) {
	t.Helper()
	clients := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.SecretName}, Data: data})
	var replicas []*Certificates
	for range n {
		replicas = append(replicas, start(t, New(Config{Options: o, Secrets: clients.CoreV1().Secrets(o.Namespace), Registry: server, Log: logr.Discard()})))
		time.Sleep(1300 * time.Millisecond) // they start one after the other
	}
	return clients, replicas
}

// TestCARotationIsNotNoticed: three replicas, each looking at a time of its own and none of
// them a leader, replace a CA. Whatever any serves in any second, every member of the
// control plane accepts.
func TestCARotationIsNotNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(&testOptions)
		due := time.Now().Add(2 * time.Minute)
		ca, err := a.generator.CreateCACert(due.Add(-caLife*2/3), due.Add(caLife/3))
		if err != nil {
			t.Fatal(err)
		}
		data, _ := mustNext(t, a, map[string][]byte{caCertKey: ca.CertPEM, caKeyKey: ca.KeyPEM}, time.Now(), trust{})
		server := &apiServer{}
		_, replicas := newReplicas(t, 3, testOptions, server, data)
		leaves, bundles := map[string]bool{}, map[string]bool{}
		for range 75 * 60 / 2 {
			time.Sleep(2 * time.Second)
			bundles[string(server.trusted())] = true
			for i, r := range replicas {
				if err := server.accepts(r); err != nil {
					t.Fatalf("replica %d, %s: %v", i, time.Until(due), err)
				}
				if err := r.Check(nil); err != nil {
					t.Fatalf("replica %d, %s: %v", i, time.Until(due), err)
				}
				leaves[string(r.current().leaf().Raw)] = true
			}
		}
		if len(leaves) != 2 || len(bundles) != 3 || len(parseBundle(server.trusted())) != 1 {
			t.Errorf("%d leaves and %d bundles were seen, want 2 and 3: old, both, new", len(leaves), len(bundles))
		}
		if cas := parseBundle(server.trusted()); cas[0].Equal(ca.Cert) {
			t.Error("the CA is the old one")
		}
		for i, r := range replicas {
			if !r.current().equal(replicas[0].current()) {
				t.Errorf("replica %d serves another leaf than the first", i)
			}
		}
	})
}

// TestStaleServedCertificate: a leaf that was renewed by another replica is served within
// seconds, with nothing mounted or restarted in between.
func TestStaleServedCertificate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{}
		clients, replicas := newReplicas(t, 2, testOptions, server, nil)
		secrets := clients.CoreV1().Secrets(testOptions.Namespace)
		before := replicas[1].current()
		secret, err := secrets.Get(t.Context(), testOptions.SecretName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		delete(secret.Data, certKey)
		if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * poll)
		for i, r := range replicas {
			if r.current().equal(before) || !r.current().equal(replicas[0].current()) || r.Check(nil) != nil {
				t.Errorf("replica %d: stale, or not ready: %v", i, r.Check(nil))
			}
		}
		// A replica that stays behind is not ready.
		replicas[1].mu.Lock()
		replicas[1].served = before
		replicas[1].mu.Unlock()
		if err := replicas[1].Check(nil); err == nil || !strings.Contains(err.Error(), "not the one that is stored") {
			t.Errorf("a stale one: %v", err)
		}
	})
}

// TestWaitDeadlock: helm install --wait waits for a replica that is ready, and a replica
// must not wait for anything that comes after. It needs no leader, no mounted file, and no
// second replica; the Secret is empty and caBundle absent.
func TestWaitDeadlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, replicas := newReplicas(t, 1, testOptions, &apiServer{}, nil)
		<-replicas[0].Ready()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the first replica is ready after %s", took)
		}
	})
}

// TestServesWhatIsAccepted: a pair that no caBundle vouches for is not served, and the one
// before it is.
func TestServesWhatIsAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := Options{Mode: Secret, Namespace: "router", SecretName: "tls"}
		cert, key := pemPair(t, -time.Hour, 24*time.Hour)
		next, nextKey := pemPair(t, -time.Hour, 24*time.Hour)
		server := &apiServer{}
		clients, replicas := newReplicas(t, 1, o, server, map[string][]byte{certKey: cert, keyKey: key})
		c := replicas[0]
		if time.Sleep(time.Minute); c.isReady() {
			t.Fatal("served before there is a caBundle")
		}
		server.trust(cert)
		<-c.Ready()
		if err := server.accepts(c); err != nil {
			t.Error(err)
		}
		if _, err := clients.CoreV1().Secrets("router").Update(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "router", Name: "tls"}, Data: map[string][]byte{certKey: next, keyKey: nextKey},
		}, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := errors.Join(server.accepts(c), c.Check(nil)); err != nil {
			t.Errorf("before its CA is trusted: %v", err)
		}
		server.trust(next)
		time.Sleep(poll + time.Second)
		if err := errors.Join(server.accepts(c), c.Check(nil)); err != nil {
			t.Errorf("after: %v", err)
		}
		hooks, _ := server.Hooks(t.Context())
		if err := c.Accepts(hooks); err != nil {
			t.Error(err)
		}
		updates := 0
		for _, action := range clients.Actions() {
			if action.GetVerb() != "get" {
				updates++
			}
		}
		if updates != 1 {
			t.Errorf("%d writes of somebody else's Secret, want the test's own", updates)
		}
	})
}

// TestInjectionThatIsRefused keeps the pair that is served.
func TestInjectionThatIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{refuses: true}
		_, replicas := newReplicas(t, 1, testOptions, server, nil)
		if time.Sleep(time.Minute); replicas[0].isReady() {
			t.Fatal("ready without a caBundle")
		}
		server.mu.Lock()
		server.refuses = false
		server.mu.Unlock()
		<-replicas[0].Ready()
		server.mu.Lock()
		server.refuses, server.bundle = true, nil // somebody empties it, and it cannot be put back
		server.mu.Unlock()
		time.Sleep(time.Minute)
		if err := replicas[0].Check(nil); err != nil {
			t.Error(err)
		}
	})
}

func TestExpiryIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, replicas := newReplicas(t, 1, testOptions, &apiServer{}, nil)
		c := replicas[0]
		<-c.Ready()
		registry := prometheus.NewRegistry()
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "runtimeclass_router_certificate_expiry_timestamp_seconds" {
			t.Fatalf("%v, %v", families, err)
		}
		for i, want := range []time.Time{c.ca.NotAfter, c.current().leaf().NotAfter} { // sorted by label
			if got := families[0].GetMetric()[i].GetGauge().GetValue(); got != float64(want.Unix()) {
				t.Errorf("series %d: %f, want %d", i, got, want.Unix())
			}
		}
		if end := c.ca.NotAfter; !end.After(c.current().leaf().NotAfter) {
			t.Errorf("the CA ends %s, the leaf %s", end, c.current().leaf().NotAfter)
		}
	})
}

// TestCheckServed asks servers, one with the certificate and one with another.
func TestCheckServed(t *testing.T) {
	t.Parallel()
	cert, key := pemPair(t, -time.Hour, time.Hour)
	other, otherKey := pemPair(t, -time.Hour, time.Hour)
	c, _ := newDirectory(t, map[string][]byte{"tls.crt": cert, "tls.key": key})
	<-c.Ready()
	for name, test := range map[string]struct {
		cert, key []byte
		want      string
	}{"the same": {cert, key, ""}, "another": {other, otherKey, "stale certificate"}} {
		p, err := tls.X509KeyPair(test.cert, test.key)
		if err != nil {
			t.Fatal(err)
		}
		listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{p}})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := listener.Accept(); err == nil {
				_ = conn.(*tls.Conn).Handshake()
				_ = conn.Close()
			}
		}()
		err = c.CheckServed(t.Context(), listener.Addr().String())
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := c.CheckServed(t.Context(), (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}).String()); err == nil {
		t.Error("nobody answers, and that is no error")
	}
}
