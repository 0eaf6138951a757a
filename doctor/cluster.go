package doctor

import (
	"fmt"
	"iter"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// Need is something that checks read.
type Need string

// What checks read.
const (
	needClasses    Need = "RuntimeClasses"
	needNodes      Need = "nodes"
	needNamespaces Need = "namespaces"
	needPods       Need = "pods"
	needPolicy     Need = "the policy"
	needSettings   Need = "the configuration"
	needWebhooks   Need = "webhook configurations"
	needGuards     Need = "admission policies"
	needParameters Need = "the guards' parameters"
	needSecret     Need = "the certificate"
)

// lack is why something was not read, and what to do.
type lack struct{ message, next string }

// Release is an installation of the chart.
type Release struct {
	// Name is what the names of its objects begin with.
	Name, Namespace string
}

// Cluster is what was read. What could not be is among lacks, and its field is empty; a
// named object that is not there is nil.
type Cluster struct {
	Release Release
	Now     time.Time

	classes    []*nodev1.RuntimeClass
	nodes      []*corev1.Node
	namespaces map[string]*catalog.Namespace

	mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	validating *admissionregistrationv1.ValidatingWebhookConfiguration
	policies   map[string]*admissionregistrationv1.ValidatingAdmissionPolicy
	bindings   map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	fallback   *admissionregistrationv1.MutatingAdmissionPolicy
	bound      *admissionregistrationv1.MutatingAdmissionPolicyBinding
	parameters *corev1.ServiceAccount
	secret     *corev1.Secret

	side  *survey.Side
	items func() iter.Seq2[*survey.Item, error]
	ended func() error // what ended the list of pods early
	// exempt are namespaces whose pods nobody looks at, where no webhook configuration says.
	exempt []string
	// config is what the policy goes by, and selfSigned whether the product makes its own
	// certificate.
	config     policies.Config
	selfSigned bool
	// secretName is where the certificate is kept.
	secretName string

	lacks   map[Need]lack
	catalog *catalog.Catalog
	scanned *scan
	// whyFlags are what the command why takes to find what this cluster is of.
	whyFlags string
}

// Catalog is what the cluster can run. Policies are loaded over it.
func (c *Cluster) Catalog() *catalog.Catalog { return c.catalog }

// Policy is the policy that pods are held against, and what it goes by.
type Policy struct {
	Side   *survey.Side
	Config policies.Config
	// SelfSigned: the product makes its certificate. SecretName is where it is kept.
	SelfSigned bool
	SecretName string
}

// Hold holds pods against a policy.
func (c *Cluster) Hold(p *Policy) {
	c.side, c.config, c.selfSigned, c.secretName = p.Side, p.Config, p.SelfSigned, p.SecretName
}

// Unsettled says that the configuration of the release could not be read: another stands in.
func (c *Cluster) Unsettled(message, next string) { c.lacks[needSettings] = lack{message, next} }

// Unheld says that there is no policy to hold pods against.
func (c *Cluster) Unheld(message, next string) { c.lacks[needPolicy] = lack{message, next} }

// helm is a command that puts the release's objects back, with values set as given.
func (c *Cluster) helm(set ...string) string {
	command := fmt.Sprintf("helm upgrade %s charts/runtimeclass-router --namespace %s --reuse-values", c.Release.Name, c.Release.Namespace)
	for _, value := range set {
		command += " --set " + value
	}
	return command
}

// restore is [Cluster.helm] for fields that somebody else has changed, which Helm 4 leaves to
// them unless it is told.
func (c *Cluster) restore(set ...string) string { return c.helm(set...) + " --force-conflicts" }

// logs is a command that shows what the product says.
func (c *Cluster) logs() string {
	return fmt.Sprintf("kubectl logs --namespace %s deployment/%s", c.Release.Namespace, c.Release.Name)
}
