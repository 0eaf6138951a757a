package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// healthy is a cluster in which the checks under test find nothing.
func healthy() *Cluster {
	ready := corev1.NodeStatus{
		Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		RuntimeHandlers: []corev1.NodeRuntimeHandler{{Name: "runsc"}},
	}
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "kube-node-lease", "system"},
	}}}
	service := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "router", Namespace: "system"}}
	return &Cluster{
		Release: Release{Name: "router", Namespace: "system"}, Now: time.Now(), config: policies.DefaultConfig(), secretName: "router-tls", selfSigned: true,
		classes: []*nodev1.RuntimeClass{{
			ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc", Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"pool": "gvisor"}},
		}},
		nodes:      []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"pool": "gvisor"}}, Status: ready}},
		namespaces: map[string]*catalog.Namespace{}, lacks: map[Need]lack{},
		mutating: &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "router"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "pods.runtimeclass-router.io", NamespaceSelector: selector, ClientConfig: service, Rules: []admissionregistrationv1.RuleWithOperations{{}},
		}}},
		validating: &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "router"}},
		secret:     &corev1.Secret{Data: map[string][]byte{}},
	}
}

// issue is a CA and a certificate of it for a name, both as PEM.
func issue(t *testing.T, name string, caEnd time.Time) (ca, leaf []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: caEnd, IsCA: true, BasicConstraintsValid: true}
	child := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: parent.NotBefore, NotAfter: time.Now().AddDate(1, 0, 0), DNSNames: []string{name}}
	encode := func(of *x509.Certificate) []byte {
		der, err := x509.CreateCertificate(rand.Reader, of, parent, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	return encode(parent), encode(child)
}

func TestChecks(t *testing.T) {
	t.Parallel()
	later := time.Now().AddDate(1, 0, 0)
	ca, leaf := issue(t, "router.system.svc", later)
	otherCA, otherLeaf := issue(t, "elsewhere.system.svc", later)
	pair := func(bundle, certificate []byte) func(*Cluster) {
		return func(c *Cluster) {
			c.mutating.Webhooks[0].ClientConfig.CABundle = bundle
			c.secret.Data[corev1.TLSCertKey] = certificate
		}
	}
	for name, test := range map[string]struct {
		check    string
		edit     func(*Cluster)
		severity Severity
		message  string // a part of it
		next     string
	}{
		"pools":                    {"pools", func(*Cluster) {}, OK, "every RuntimeClass", ""},
		"a node that is not ready": {"pools", func(c *Cluster) { c.nodes[0].Status.Conditions = nil }, Warning, "its node n is not ready", "kubectl describe node n"},
		"a taint": {"pools", func(c *Cluster) {
			c.nodes[0].Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
		}, Warning, "has a taint that the class does not tolerate", "kubectl describe node n"},
		"floors":               {"floors", func(*Cluster) {}, OK, "", ""},
		"a floor out of use":   {"floors", func(c *Cluster) { c.nodes = nil }, Error, "none has a ready node: gvisor", "kubectl get nodes -o custom-columns="},
		"a floor out of reach": {"floors", func(c *Cluster) { c.classes[0].Handler = "runc" }, Error, "no RuntimeClass meets its floor, user-space-kernel", "kubectl get runtimeclasses"},
		"silent nodes":         {"handlers", func(c *Cluster) { c.nodes[0].Status.RuntimeHandlers = nil }, Warning, "1 of 1 nodes report no handlers", "kubectl get node n"},
		"webhooks":             {"webhooks", func(*Cluster) {}, OK, "", ""},
		"no webhooks":          {"webhooks", func(c *Cluster) { c.mutating, c.validating = nil, nil }, Error, "neither webhook configuration", "helm status router --namespace system"},
		"exempt":               {"exempt", func(*Cluster) {}, OK, "", ""},
		"not exempt":           {"exempt", func(c *Cluster) { c.Release.Namespace = "other" }, Error, "does not leave namespace other out", "helm upgrade router"},
		"exempt by a label": {"exempt", func(c *Cluster) {
			s := c.mutating.Webhooks[0].NamespaceSelector
			s.MatchLabels = map[string]string{"team": "x"}
		}, Error, "labels other than their name", "helm upgrade router"},
		"an exempt namespace that is trusted": {"exempt", func(c *Cluster) {
			c.namespaces["system"] = &catalog.Namespace{Labels: map[string]string{catalog.LabelTrust: "trusted"}}
		}, OK, "", ""},
		"no CA":         {"ca-bundle", func(*Cluster) {}, Error, "has no CA", "kubectl logs --namespace system deployment/router"},
		"a CA of a URL": {"ca-bundle", func(c *Cluster) { c.mutating.Webhooks[0].ClientConfig.Service = nil }, OK, "", ""},
		"an expired CA": {"ca-bundle", func(c *Cluster) {
			old, _ := issue(t, "x", time.Now().AddDate(0, 0, -1))
			c.mutating.Webhooks[0].ClientConfig.CABundle = old
		}, Error, "expired on", "kubectl patch secret router-tls --namespace system --type=json"},
		"somebody else's CA": {"ca-bundle", func(c *Cluster) {
			old, _ := issue(t, "x", time.Now().AddDate(0, 0, 3))
			c.mutating.Webhooks[0].ClientConfig.CABundle, c.selfSigned = old, false
		}, Warning, "expires on", "kubectl describe secret router-tls --namespace system"},
		"a CA that changes": {"ca-bundle", func(c *Cluster) {
			old, _ := issue(t, "x", time.Now().AddDate(0, 0, -1))
			c.mutating.Webhooks[0].ClientConfig.CABundle = slices.Concat(old, ca)
		}, OK, "", ""},
		"a certificate":       {"certificate", pair(ca, leaf), OK, "", ""},
		"of another CA":       {"certificate", pair(otherCA, leaf), Error, "does not vouch for the certificate", "kubectl logs"},
		"of another name":     {"certificate", pair(otherCA, otherLeaf), Error, "does not vouch for the certificate", "kubectl logs"},
		"an empty Secret":     {"certificate", func(*Cluster) {}, Error, "holds no certificate", "kubectl logs"},
		"no Secret":           {"certificate", func(c *Cluster) { c.secret = nil }, Error, "is not there", "helm upgrade router"},
		"no parameters":       {"parameters", func(*Cluster) {}, Error, "is not there", "helm upgrade router"},
		"what was not read":   {"parameters", func(c *Cluster) { c.lacks[needParameters] = lack{"needs a", "b"} }, Unknown, "needs a", "b"},
		"the last day":        {"exceptions", excepted(0), Warning, "ends on", "helm get values router"},
		"the day after":       {"exceptions", excepted(-1), Warning, "expired on", "helm get values router"},
		"in two weeks":        {"exceptions", excepted(14), Warning, "ends on", "helm get values router"},
		"in more than that":   {"exceptions", excepted(15), OK, "", ""},
		"no custody at all":   {"custody", func(*Cluster) {}, Warning, "whoever may label a namespace may trust it", "--set custody.enabled=true"},
		"no backstop, Ignore": {"backstop", ignoring, Error, "is not there", "--set backstop.enabled=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := healthy()
			test.edit(c)
			c.catalog = catalog.Build(c.classes, c.nodes)
			checks := Checks()
			check := checks[slices.IndexFunc(checks, func(check Check) bool { return check.Name == test.check })]
			found, err := check.findings(context.Background(), c)
			if err != nil || len(found) != 1 {
				t.Fatalf("%v: %+v", err, found)
			}
			f := found[0]
			if f.Check != test.check || f.Severity != test.severity || !strings.Contains(f.Message, test.message) || !strings.Contains(f.Next, test.next) || (f.Next == "") != (test.next == "") {
				t.Errorf("%+v", f)
			}
		})
	}
}

func excepted(days int) func(*Cluster) {
	return func(c *Cluster) {
		c.config.Exceptions = []policies.Exception{{Name: "e", Until: c.Now.UTC().AddDate(0, 0, days).Format(time.DateOnly)}}
	}
}

func ignoring(c *Cluster) {
	ignore := admissionregistrationv1.Ignore
	c.mutating.Webhooks[0].FailurePolicy = &ignore
}

// TestTheTableOfChecks: names are told apart, and each says what fine is.
func TestTheTableOfChecks(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, check := range Checks() {
		if seen[check.Name] || check.Fine == "" || len(check.Needs) == 0 {
			t.Errorf("%s: seen %t, fine %q, needs %v", check.Name, seen[check.Name], check.Fine, check.Needs)
		}
		seen[check.Name] = true
	}
}

func TestWorst(t *testing.T) {
	t.Parallel()
	var findings []Finding
	if got := Worst(findings); got != OK {
		t.Errorf("of none: %s", got)
	}
	for _, severity := range Severities() {
		findings = append(findings, Finding{Severity: severity}, Finding{Severity: OK})
		if got := Worst(findings); got != severity {
			t.Errorf("%s, want %s", got, severity)
		}
	}
	if got := sorted(findings); got[0].Severity != Error || got[len(got)-1].Severity != OK {
		t.Errorf("order %v", got)
	}
}
