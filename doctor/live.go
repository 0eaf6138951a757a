package doctor

import (
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// Live are the options of [Read].
type Live struct {
	Config  *rest.Config
	Release Release
	// Namespace, if it is not empty, is the only one whose pods are looked at.
	Namespace string
	// Exempt are namespaces whose pods nobody looks at, if no webhook configuration says.
	Exempt []string
	// Notes take what the list of pods may lack, Progress how far it is read.
	Notes    io.Writer
	Progress survey.Progress
}

// reader reads a cluster with the rights of one user.
type reader struct {
	Live
	client kubernetes.Interface
	c      *Cluster
}

// right is a right as RBAC has it; name and namespace may be empty.
type right struct{ verb, resource, name, namespace string }

// String is the right as `kubectl auth can-i` takes it.
func (r right) String() string {
	said := r.verb + " " + r.resource
	if r.name != "" {
		said += "/" + r.name
	}
	if r.namespace != "" {
		said += " --namespace " + r.namespace
	}
	return said
}

// Read reads what the user may read of a cluster. An error is of a cluster that does not
// answer.
func Read(ctx context.Context, o Live) (*Cluster, error) {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	r := &reader{Live: o, client: client, c: &Cluster{
		Release: o.Release, Now: time.Now(), exempt: o.Exempt, lacks: map[Need]lack{},
		policies: map[string]*admissionregistrationv1.ValidatingAdmissionPolicy{},
		bindings: map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
	}}
	for _, read := range []func(context.Context) error{r.readClasses, r.readNodes, r.readNamespaces, r.readPods, r.readWebhooks, r.readGuards, r.readParameters} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	r.c.catalog = catalog.Build(r.c.classes, r.c.nodes)
	return r.c, nil
}

// missing takes down that a need could not be read for want of a right. An object that is
// not there is no error, and any other is returned.
func (r *reader) missing(need Need, right right, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		if before, ok := r.c.lacks[need]; ok { // and another
			r.c.lacks[need] = lack{before.message + ", " + right.String(), before.next}
		} else {
			r.c.lacks[need] = lack{"needs " + right.String(), "kubectl auth can-i " + right.String()}
		}
		return nil
	}
	return fmt.Errorf("%s: %w", right, err)
}

func (r *reader) readClasses(ctx context.Context) error {
	list, err := r.client.NodeV1().RuntimeClasses().List(ctx, metav1.ListOptions{})
	if err == nil {
		r.c.classes = pointers(list.Items)
	}
	return r.missing(needClasses, right{"list", "runtimeclasses.node.k8s.io", "", ""}, err)
}

func (r *reader) readNodes(ctx context.Context) error {
	list, err := r.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err == nil {
		r.c.nodes = pointers(list.Items)
	}
	return r.missing(needNodes, right{"list", "nodes", "", ""}, err)
}

func (r *reader) readNamespaces(ctx context.Context) error {
	r.c.namespaces = map[string]*catalog.Namespace{}
	if r.Namespace != "" {
		ns, err := r.client.CoreV1().Namespaces().Get(ctx, r.Namespace, metav1.GetOptions{})
		if err == nil {
			r.c.addNamespace(ns)
		}
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("get namespace %s: %w", r.Namespace, err)
		}
		return r.missing(needNamespaces, right{"get", "namespaces", r.Namespace, ""}, err)
	}
	list, err := r.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err == nil {
		for i := range list.Items {
			r.c.addNamespace(&list.Items[i])
		}
	}
	return r.missing(needNamespaces, right{"list", "namespaces", "", ""}, err)
}

func (c *Cluster) addNamespace(ns *corev1.Namespace) {
	c.namespaces[ns.Name] = &catalog.Namespace{Name: ns.Name, Labels: ns.Labels, Annotations: ns.Annotations}
}

// readPods asks for one pod: whether all may be listed. They are read when they are judged.
func (r *reader) readPods(ctx context.Context) error {
	_, err := r.client.CoreV1().Pods(r.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err := r.missing(needPods, r.podsRight(), err); err != nil {
		return err
	}
	pods, err := survey.NewPods(r.Config, r.Namespace, "", r.Notes)
	if err != nil {
		return err
	}
	r.c.items = func() iter.Seq2[*survey.Item, error] { return pods.Items(ctx, r.Progress) }
	r.c.ended = pods.Err
	return nil
}

func (r *reader) podsRight() right {
	if r.Namespace == "" {
		return right{"list", "pods --all-namespaces", "", ""}
	}
	return right{"list", "pods", "", r.Namespace}
}

func (r *reader) readWebhooks(ctx context.Context) error {
	name := r.Release.Name
	mutating, err := r.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		r.c.mutating = mutating
	}
	if err := r.missing(needWebhooks, right{"get", "mutatingwebhookconfigurations", name, ""}, err); err != nil {
		return err
	}
	validating, err := r.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		r.c.validating = validating
	}
	return r.missing(needWebhooks, right{"get", "validatingwebhookconfigurations", name, ""}, err)
}

func (r *reader) readGuards(ctx context.Context) error {
	client := r.client.AdmissionregistrationV1()
	for _, guard := range []string{backstopGuard, custodyGuard} {
		name := r.Release.Name + "-" + guard
		policy, err := client.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			r.c.policies[guard] = policy
		}
		if err := r.missing(needGuards, right{"get", "validatingadmissionpolicies", name, ""}, err); err != nil {
			return err
		}
		binding, err := client.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			r.c.bindings[guard] = binding
		}
		if err := r.missing(needGuards, right{"get", "validatingadmissionpolicybindings", name, ""}, err); err != nil {
			return err
		}
	}
	name := r.Release.Name + "-" + fallbackGuard
	fallback, err := client.MutatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		r.c.fallback = fallback
	}
	if err := r.missing(needGuards, right{"get", "mutatingadmissionpolicies", name, ""}, err); err != nil {
		return err
	}
	bound, err := client.MutatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		r.c.bound = bound
	}
	return r.missing(needGuards, right{"get", "mutatingadmissionpolicybindings", name, ""}, err)
}

func (r *reader) readParameters(ctx context.Context) error {
	name, namespace := r.Release.Name+"-guards", r.Release.Namespace
	account, err := r.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		r.c.parameters = account
	}
	return r.missing(needParameters, right{"get", "serviceaccounts", name, namespace}, err)
}

// ReadCertificate reads the Secret that the policy's configuration names. It is apart, since
// the name is known only then.
func (c *Cluster) ReadCertificate(ctx context.Context, o Live) error {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	secret, err := client.CoreV1().Secrets(o.Release.Namespace).Get(ctx, c.secretName, metav1.GetOptions{})
	if err == nil {
		c.secret = secret
	}
	return (&reader{Live: o, client: client, c: c}).missing(needSecret, right{"get", "secrets", c.secretName, o.Release.Namespace}, err)
}

func pointers[T any](items []T) []*T {
	out := make([]*T, 0, len(items))
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}
